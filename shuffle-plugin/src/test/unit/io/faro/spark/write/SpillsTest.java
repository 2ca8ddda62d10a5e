package io.faro.spark.write;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.function.Supplier;
import java.util.zip.Adler32;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Spills and the data file that they are joined to, without Spark's memory. */
class SpillsTest {
  @TempDir
  Path directory;
  private int names;
  private boolean killed;
  private final PartitionSums sums = new PartitionSums("ADLER32", 3);
  private final WriteContext context = new WriteContext(3, sums, false, () -> {
    if (killed) {
      throw new IllegalStateException("killed");
    }
  });
  private final Supplier<File> files = () -> directory.resolve("spill" + names++).toFile();

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private String[] left() {
    String[] found = directory.toFile().list();
    Arrays.sort(found);
    return found;
  }

  private static long adler(String text) {
    Adler32 sum = new Adler32();
    sum.update(bytes(text), 0, text.length());
    return sum.getValue();
  }

  /** A device that takes bytes cannot be forced to a disk, so that trying it fails. */
  @Test
  void filesAreForcedToTheDiskIfThatIsConfigured() throws IOException {
    // A link, because files that failed are deleted.
    File device = directory.resolve("device").toFile();
    Files.createSymbolicLink(device.toPath(), Paths.get("/dev/null"));
    try (PartitionFile out = new PartitionFile(device, context, null)) {
      out.append(0, bytes("a"));
      out.end();
    }
    WriteContext synced = new WriteContext(3, sums, true, () -> { });
    try (PartitionFile out = new PartitionFile(device, synced, null)) {
      out.append(0, bytes("a"));
      assertThrows(IOException.class, out::end);
    }
    Files.deleteIfExists(device.toPath());
    Files.createSymbolicLink(device.toPath(), Paths.get("/dev/null"));
    try (Spills spills = new Spills(() -> device, synced)) {
      assertThrows(IOException.class, () -> spills.write(file -> file.append(0, bytes("a"))));
    }
    File data = directory.resolve("data").toFile();
    try (PartitionFile out = new PartitionFile(data, synced, null)) {
      out.append(0, bytes("a"));
      out.end();
    }
    assertEquals(1, data.length());
  }

  @Test
  void eachPartitionIsJoinedInTheOrderOfTheSpills() throws IOException {
    File data = directory.resolve("data").toFile();
    try (Spills spills = new Spills(files, context); PartitionFile out = new PartitionFile(data, context, null)) {
      spills.write(file -> {
        file.append(0, bytes("a"));
        file.append(2, bytes("b"));
        file.append(2, bytes("c"));
      });
      spills.write(file -> file.append(2, bytes("dd")));
      spills.freed(100);
      spills.freed(11);
      assertEquals(111, spills.memoryBytes());
      assertEquals(5, spills.diskBytes());
      try (Spills.Open open = spills.open()) {
        for (int i = 0; i < 3; i++) {
          open.transfer(i, out);
          out.append(i, bytes("z"));
        }
      }
      out.end();
      assertArrayEquals(new long[] {2, 1, 5}, out.lengths);
      assertEquals(8, out.bytes());
    }
    assertEquals("azzbcddz", new String(Files.readAllBytes(data.toPath()), StandardCharsets.UTF_8));
    assertArrayEquals(new long[] {adler("az"), adler("z"), adler("bcddz")}, sums.values());
    assertArrayEquals(new String[] {"data"}, left());
  }

  @Test
  void afterAFailedSpillNothingIsWritten() {
    Spills spills = new Spills(files, context);
    assertThrows(IOException.class, () -> spills.write(file -> {
      // More than what the file buffers.
      file.append(0, new byte[1 << 20]);
      throw new IOException("disk full");
    }));
    assertEquals(1, left().length);
    IOException again = assertThrows(IOException.class, () -> spills.write(file -> file.append(0, bytes("a"))));
    assertEquals("disk full", again.getCause().getMessage(), again.toString());
    assertThrows(IOException.class, spills::open);
    assertEquals(0, spills.diskBytes());
    spills.close();
    assertArrayEquals(new String[0], left());
  }

  @Test
  void aSpillOfNothingIsHarmless() throws IOException {
    try (Spills spills = new Spills(files, context)) {
      spills.write(file -> { });
      spills.write(file -> file.append(1, bytes("a")));
      File data = directory.resolve("data").toFile();
      try (PartitionFile out = new PartitionFile(data, context, null); Spills.Open open = spills.open()) {
        for (int i = 0; i < 3; i++) {
          open.transfer(i, out);
        }
        out.end();
      }
      assertEquals(1, data.length());
    }
  }

  @Test
  void aShorterSpillIsAnError() throws IOException {
    try (Spills spills = new Spills(files, context)) {
      spills.write(file -> file.append(1, bytes("abc")));
      Files.write(directory.resolve("spill0"), bytes("ab"));
      try (PartitionFile out = new PartitionFile(directory.resolve("data").toFile(), context, null);
          Spills.Open open = spills.open()) {
        IOException failed = assertThrows(IOException.class, () -> open.transfer(1, out));
        assertTrue(failed.getMessage().contains("1 bytes early"), failed.toString());
      }
    }
  }

  @Test
  void aMissingSpillIsAnError() throws IOException {
    try (Spills spills = new Spills(files, context)) {
      spills.write(file -> file.append(1, bytes("abc")));
      spills.write(file -> file.append(1, bytes("abc")));
      Files.delete(directory.resolve("spill1"));
      assertThrows(IOException.class, spills::open);
    }
    assertArrayEquals(new String[0], left());
  }

  @Test
  void aKilledTaskEndsAtItsNextWrite() throws IOException {
    File data = directory.resolve("data").toFile();
    try (PartitionFile out = new PartitionFile(data, context, null)) {
      out.append(0, new byte[100]);
      killed = true;
      assertThrows(IllegalStateException.class, () -> out.append(1, new byte[1 << 20]));
      assertThrows(IllegalStateException.class, out::end);
    }
    assertFalse(data.exists(), "nothing was written before");
  }
}
