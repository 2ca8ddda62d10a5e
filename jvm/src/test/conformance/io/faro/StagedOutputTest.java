package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Stages data files while they are written. */
class StagedOutputTest {
  private static final int CHUNK_BYTES = 256 << 10;

  @TempDir
  Path directory;

  @BeforeAll
  static void library() throws FaroException {
    TestLibrary.load();
  }

  private static Endpoint open(MapOutputs outputs, String regions) throws FaroException {
    return Endpoint.start(EndpointConfig.builder().name("staged").fabric(FabricChoice.TCP)
        .memoryLimitBytes(64L << 20).set("regions", regions).build(), outputs);
  }

  private static void append(StagedOutput staged, byte[] bytes) {
    for (int at = 0; at < bytes.length; at += 100_000) {
      staged.append(bytes, at, Math.min(100_000, bytes.length - at));
    }
  }

  @Test
  void whatIsStagedIsInTheArena() throws Exception {
    byte[] bytes = MapOutputs.partition(1, 0, 3 * CHUNK_BYTES + 17);
    MapOutputs outputs = new MapOutputs(directory).writeBytes(0, 1, bytes);
    try (Endpoint endpoint = open(outputs, "optimistic")) {
      try (StagedOutput staged = endpoint.stage()) {
        append(staged, bytes);
        endpoint.committed(0, 1, outputs.resolve(0, 1), staged);
        // The copy was taken over, so closing it drops nothing.
      }
      assertEquals(4, endpoint.counters().get("region.cachedChunks"));
      assertEquals(0, endpoint.counters().get("region.minorFaults"));
    }
  }

  @Test
  void whatIsNotCommittedLeavesNothing() throws Exception {
    MapOutputs outputs = new MapOutputs(directory);
    try (Endpoint endpoint = open(outputs, "optimistic")) {
      try (StagedOutput staged = endpoint.stage()) {
        append(staged, new byte[1_000_000]);
        staged.end();
        staged.append(new byte[10], 0, 10);
        assertThrows(IndexOutOfBoundsException.class, () -> {
          try (StagedOutput other = endpoint.stage()) {
            other.append(new byte[10], 5, 10);
          }
        });
      }
      assertEquals(0, endpoint.counters().get("pool.leasedBytes"));
    }
  }

  @Test
  void nothingIsStagedWithoutTheSetting() throws Exception {
    try (Endpoint endpoint = open(new MapOutputs(directory), "unpinned")) {
      assertNull(endpoint.stage());
    }
  }
}
