package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.File;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A line that a native thread logs must reach an SLF4J logger (slf4j-simple writes to System.err). */
class LogBridgeLiveTest {
  @TempDir
  Path directory;

  @BeforeAll
  static void library() throws FaroException {
    Repository.loadNative();
  }

  @Test
  void aNativeWarningReachesSlf4j() throws Exception {
    File data = Files.createFile(directory.resolve("cut.data")).toFile();
    File index = Files.write(directory.resolve("cut.index"), new byte[21]).toFile();
    CountDownLatch seen = new CountDownLatch(1);
    PrintStream before = System.err;
    System.setErr(new PrintStream(new Watch("WARN io.faro.native.endpoint", "cut.index", seen, before), true));
    try (Pair pair = new Pair(FabricChoice.TCP, (shuffle, map) -> new OutputFiles(data, index))) {
      CollectedBlocks got = pair.fetch(new BlockIds().add(1, 1, 0, 1)).await();
      assertEquals(BlockStatus.BAD_INDEX, got.statuses[0]);
      seen.await();
    } finally {
      System.setErr(before);
    }
  }

  /** Passes bytes on and checks every line. */
  private static final class Watch extends OutputStream {
    private final StringBuilder line = new StringBuilder();
    private final String source;
    private final String text;
    private final CountDownLatch seen;
    private final PrintStream next;

    Watch(String source, String text, CountDownLatch seen, PrintStream next) {
      this.source = source;
      this.text = text;
      this.seen = seen;
      this.next = next;
    }

    @Override
    public synchronized void write(int value) {
      next.write(value);
      if (value != '\n') {
        line.append((char) value);
        return;
      }
      if (line.indexOf(source) >= 0 && line.indexOf(text) >= 0) {
        seen.countDown();
      }
      line.setLength(0);
    }
  }
}
