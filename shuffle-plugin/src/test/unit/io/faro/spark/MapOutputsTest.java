package io.faro.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests which files of another manager are served. */
class MapOutputsTest {
  @TempDir
  private Path directory;

  private File index(ByteBuffer content) throws IOException {
    return Files.write(directory.resolve("shuffle_0_0_0.index"), content.array()).toFile();
  }

  @Test
  void anIndexOfSparkHasNoSegments() throws IOException {
    assertFalse(MapOutputs.hasSegments(index(ByteBuffer.allocate(16))));
    assertFalse(MapOutputs.hasSegments(index(ByteBuffer.allocate(8 * 2_001))));
    assertFalse(MapOutputs.hasSegments(index(ByteBuffer.allocate(0))));
  }

  /** Gluten writes a place for each partition, its segments (offset, size), and a byte that marks the format. */
  @Test
  void anIndexOfSegmentsIsRecognised() throws IOException {
    int partitions = 4;
    int segments = 6;
    ByteBuffer index = ByteBuffer.allocate(8 * (partitions + 1) + 16 * segments + 1);
    for (int before : new int[] {0, 0, 1, 3, segments}) {
      index.putLong(8 * (partitions + 1) + 16L * before);
    }
    for (int i = 0; i < segments; i++) {
      index.putLong(10L * i).putLong(10);
    }
    index.put((byte) 1);
    assertEquals(0, index.remaining());
    assertTrue(MapOutputs.hasSegments(index(index)));
  }

  @Test
  void resolversThatKeepSparksFilesAreKnown() {
    assertTrue(OtherManager.isKnown(IndexShuffleBlockResolver.class));
    assertFalse(OtherManager.isKnown(Object.class));
  }
}
