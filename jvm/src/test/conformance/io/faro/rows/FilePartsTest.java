package io.faro.rows;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.faro.BlockIds;
import io.faro.Endpoint;
import io.faro.EndpointConfig;
import io.faro.EndpointException;
import io.faro.FabricChoice;
import io.faro.FaroException;
import io.faro.MapOutputs;
import io.faro.TestLibrary;
import java.io.RandomAccessFile;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Reads parts of map outputs of this process from their files. */
class FilePartsTest {
  private static final int SHUFFLE = 3;

  @TempDir
  Path directory;

  private final FileParts parts = new FileParts(100);
  private MapOutputs outputs;
  private Endpoint endpoint;

  @BeforeAll
  static void library() throws FaroException {
    TestLibrary.load();
  }

  @BeforeEach
  void start() throws Exception {
    outputs = new MapOutputs(directory);
    endpoint = Endpoint.start(
        EndpointConfig.builder().name("own").fabric(FabricChoice.TCP).memoryLimitBytes(64L << 20).build(), outputs);
    outputs.writeBytes(SHUFFLE, 1, filled(1, 10), filled(2, 20), new byte[0], filled(3, 100));
    outputs.writeBytes(SHUFFLE, 2, filled(4, 30));
  }

  @AfterEach
  void stop() {
    endpoint.close();
  }

  private static byte[] filled(int with, int length) {
    byte[] bytes = new byte[length];
    Arrays.fill(bytes, (byte) with);
    return bytes;
  }

  private void resolve(long map) {
    endpoint.resolve(SHUFFLE, map, outputs.resolve(SHUFFLE, map));
  }

  private int read(int first, int end) {
    BlockIds ids = new BlockIds().add(SHUFFLE, 1, 0, 1).add(SHUFFLE, 1, 1, 2).add(SHUFFLE, 1, 2, 3)
        .add(SHUFFLE, 2, 0, 1).add(SHUFFLE, 1, 3, 4).add(SHUFFLE, 2, 0, 9);
    return parts.read(endpoint, ids, first, end);
  }

  private void assertRead(int at, int from, byte[] expected) {
    assertEquals(expected.length, parts.length(at));
    assertArrayEquals(expected, Arrays.copyOfRange(parts.bytes(), from, from + expected.length));
  }

  @Test
  void wholePartsUntilOneIsNotKnownOrDoesNotFit() {
    assertEquals(0, read(0, 5));
    resolve(1);
    assertEquals(3, read(0, 5));
    resolve(2);
    assertEquals(4, read(0, 5));
    assertRead(0, 0, filled(1, 10));
    assertRead(1, 10, filled(2, 20));
    assertRead(2, 30, new byte[0]);
    assertRead(3, 30, filled(4, 30));
    assertEquals(1, read(4, 6));
    assertRead(0, 0, filled(3, 100));
    // The map output has no such partition.
    assertEquals(0, read(5, 6));
    assertEquals(0, read(2, 2));
  }

  @Test
  void aFileThatEndsEarlyIsNotRead() throws Exception {
    resolve(1);
    assertEquals(1, read(4, 5));
    try (RandomAccessFile file = new RandomAccessFile(outputs.resolve(SHUFFLE, 1).data(), "rw")) {
      file.setLength(129);
    }
    assertEquals(0, read(4, 5));
  }

  @Test
  void afterTheEndpointThereIsNothingToRead() {
    endpoint.close();
    assertThrows(EndpointException.Closed.class, () -> read(0, 1));
  }
}
