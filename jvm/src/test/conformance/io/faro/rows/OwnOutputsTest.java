package io.faro.rows;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.BlockIds;
import io.faro.Endpoint;
import io.faro.EndpointConfig;
import io.faro.EndpointException;
import io.faro.FabricChoice;
import io.faro.FaroException;
import io.faro.MapOutputs;
import io.faro.OutputFiles;
import io.faro.TestLibrary;
import io.faro.rows.RowReader.Step;
import java.io.File;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Native code reads map outputs of this process from their files. */
class OwnOutputsTest {
  private static final int SHUFFLE = 3;

  @TempDir
  Path directory;

  private MapOutputs outputs;
  private Endpoint endpoint;

  @BeforeAll
  static void library() throws FaroException {
    TestLibrary.load();
  }

  @BeforeEach
  void start() throws FaroException {
    outputs = new MapOutputs(directory);
    endpoint = Endpoint.start(
        EndpointConfig.builder().name("own").fabric(FabricChoice.TCP).memoryLimitBytes(64L << 20).build(), outputs);
  }

  @AfterEach
  void stop() {
    endpoint.close();
  }

  private void resolve(long map) {
    endpoint.resolve(SHUFFLE, map, outputs.resolve(SHUFFLE, map));
  }

  /** Starts an input of one part. */
  private void input(RowReader reader, long map, int start, int end) {
    reader.input(endpoint, new BlockIds().add(SHUFFLE, map, start, end), 0, 1);
  }

  /** Returns rows of about 220 KiB, which need several reads and several batches. */
  private static List<ByteBuffer> manyRows() {
    return GoldenRows.rows(4000);
  }

  @ParameterizedTest
  @EnumSource
  void rowsOfAFileOnceItIsResolved(GoldenRows.File file) throws Exception {
    byte[] bytes = file.bytes();
    outputs.writeBytes(SHUFFLE, 7, bytes, new byte[0], bytes, bytes);
    try (RowReader reader = RowReader.open(file.codec)) {
      Walk walk = new Walk(reader);
      input(reader, 7, 0, 4);
      assertEquals(Step.UNRESOLVED, walk.step());
      assertEquals(0, reader.part());
      assertEquals(0, reader.rows());
      resolve(7);
      assertEquals(Step.DONE, walk.toEnd());
      assertEquals(file.rows(3), walk.rows);
      assertEquals(3L * bytes.length, walk.fileBytes);
      assertEquals(1, reader.part());
      input(reader, 7, 1, 3);
      assertEquals(Step.DONE, walk.toEnd());
      assertEquals(file.rows(4), walk.rows);
      assertEquals(4L * bytes.length, walk.fileBytes);
    }
  }

  /** Reads some of the arrays' parts. The rows of the parts before the unresolved one come with it. */
  @Test
  void partsOfSeveralOutputs() throws Exception {
    byte[] bytes = GoldenRows.File.LZ4_SMALL.bytes();
    int each = GoldenRows.File.LZ4_SMALL.rows(1).size();
    long large = Long.MAX_VALUE;
    outputs.writeBytes(SHUFFLE, 1, bytes, bytes).writeBytes(SHUFFLE, large, new byte[0], bytes);
    outputs.writeBytes(SHUFFLE, 0, bytes);
    resolve(1);
    resolve(0);
    try (RowReader reader = RowReader.open(RowCodec.LZ4)) {
      Walk walk = new Walk(reader);
      BlockIds ids = new BlockIds().add(SHUFFLE, 99, 9, 9).add(SHUFFLE, 1, 0, 1).add(SHUFFLE, 1, 1, 2)
          .add(SHUFFLE, large, 0, 1).add(SHUFFLE, large, 0, 2).add(SHUFFLE, 0, 0, 1).add(SHUFFLE, 98, 9, 9);
      reader.input(endpoint, ids, 1, 5);
      assertEquals(Step.UNRESOLVED, walk.toEnd());
      assertEquals(2, reader.part());
      assertEquals(2 * each, walk.rows.size());
      assertEquals(Step.UNRESOLVED, walk.toEnd());
      assertEquals(2, reader.part());
      assertEquals(0, reader.fileBytes());
      resolve(large);
      assertEquals(Step.DONE, walk.toEnd());
      assertEquals(5, reader.part());
      assertEquals(GoldenRows.File.LZ4_SMALL.rows(4), walk.rows);
      assertEquals(4L * bytes.length, walk.fileBytes);
      reader.input(endpoint, ids, 7, 0);
      assertEquals(Step.DONE, walk.toEnd());
      assertEquals(0, reader.part());
    }
  }

  @Test
  void anOutputWhoseFilesAreNotThere() throws Exception {
    outputs.writeBytes(SHUFFLE, 1, GoldenRows.File.PLAIN.bytes());
    try (RowReader reader = RowReader.open(RowCodec.NONE)) {
      Walk walk = new Walk(reader);
      input(reader, 2, 0, 1);
      assertEquals(Step.UNRESOLVED, walk.step());
      File none = directory.resolve("none").toFile();
      endpoint.resolve(SHUFFLE, 2, new OutputFiles(none, none));
      assertEquals(Step.UNRESOLVED, walk.step());
      // The index belongs to another file.
      OutputFiles files = outputs.resolve(SHUFFLE, 1);
      endpoint.resolve(SHUFFLE, 2, new OutputFiles(files.data(), files.data()));
      Step step = walk.step();
      assertTrue(step == Step.UNRESOLVED || step == Step.UNREADABLE, step.name());
      assertEquals(Collections.emptyList(), walk.rows);
      assertEquals(0, walk.fileBytes);
      resolve(1);
      input(reader, 1, 0, 1);
      assertEquals(Step.DONE, walk.toEnd());
      assertEquals(GoldenRows.File.PLAIN.rows(1), walk.rows);
    }
  }

  @Test
  void aShuffleThatIsForgotten() throws Exception {
    outputs.writeBytes(SHUFFLE, 1, GoldenRows.File.PLAIN.bytes());
    resolve(1);
    endpoint.forgetShuffle(SHUFFLE);
    try (RowReader reader = RowReader.open(RowCodec.NONE)) {
      Walk walk = new Walk(reader);
      input(reader, 1, 0, 1);
      assertEquals(Step.UNRESOLVED, walk.toEnd());
      resolve(1);
      assertEquals(Step.DONE, walk.toEnd());
      assertEquals(GoldenRows.File.PLAIN.rows(1), walk.rows);
    }
  }

  @Test
  void partitionsThatTheOutputDoesNotHave() throws Exception {
    byte[] bytes = GoldenRows.File.PLAIN.bytes();
    outputs.writeBytes(SHUFFLE, 1, bytes, bytes);
    resolve(1);
    int[][] ranges = {{1, 3}, {2, 3}, {2, 2}, {1, 0}, {0, Integer.MAX_VALUE}};
    try (RowReader reader = RowReader.open(RowCodec.NONE)) {
      for (int[] range : ranges) {
        Walk walk = new Walk(reader);
        BlockIds ids = new BlockIds().add(SHUFFLE, 1, 0, 2).add(SHUFFLE, 1, range[0], range[1]).add(SHUFFLE, 1, 0, 2);
        reader.input(endpoint, ids, 0, 3);
        assertEquals(Step.UNREADABLE, walk.toEnd(), range[0] + " to " + range[1]);
        assertEquals(1, reader.part());
        assertFalse(reader.partWasHandedOut());
        assertTrue(reader.problem().contains("of map output 3/1"), reader.problem());
        assertEquals(GoldenRows.File.PLAIN.rows(2), walk.rows);
        assertEquals(Step.DONE, walk.toEnd(), "the rest is dropped");
      }
    }
  }

  @Test
  void aPartThatIsCorrupt() throws Exception {
    byte[] bytes = GoldenRows.File.LZ4_SMALL.bytes();
    byte[] corrupt = bytes.clone();
    corrupt[40] ^= 1;
    outputs.writeBytes(SHUFFLE, 1, bytes, corrupt);
    resolve(1);
    try (RowReader reader = RowReader.open(RowCodec.LZ4)) {
      Walk walk = new Walk(reader);
      reader.input(endpoint, new BlockIds().add(SHUFFLE, 1, 0, 1).add(SHUFFLE, 1, 1, 2), 0, 2);
      assertEquals(Step.CORRUPT, walk.toEnd());
      assertEquals(1, reader.part());
      assertFalse(reader.partWasHandedOut());
      assertEquals(GoldenRows.File.LZ4_SMALL.rows(1), walk.rows);
      assertEquals(2L * bytes.length, walk.fileBytes);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 70_000, 200_000})
  void aFileThatIsTruncatedWhileItIsRead(int length) throws Exception {
    outputs.writeBytes(SHUFFLE, 1, GoldenRows.stream(manyRows()));
    resolve(1);
    try (RowReader reader = RowReader.open(RowCodec.NONE)) {
      Walk walk = new Walk(reader);
      input(reader, 1, 0, 1);
      assertEquals(Step.FULL, walk.step());
      truncate(1, length);
      Step step = walk.toEnd();
      assertTrue(step == Step.UNREADABLE || step == Step.UNRESOLVED, step.name());
      assertTrue(walk.rows.size() < manyRows().size());
      assertEquals(manyRows().subList(0, walk.rows.size()), walk.rows);
      if (step == Step.UNREADABLE) {
        assertTrue(reader.partWasHandedOut());
        assertTrue(reader.problem().contains("map output 3/1"), reader.problem());
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1_000, 200_000})
  void aFileThatIsTruncatedBeforeItIsRead(int length) throws Exception {
    outputs.writeBytes(SHUFFLE, 1, GoldenRows.stream(manyRows()));
    resolve(1);
    truncate(1, length);
    try (RowReader reader = RowReader.open(RowCodec.NONE)) {
      Walk walk = new Walk(reader);
      input(reader, 1, 0, 1);
      Step step = walk.toEnd();
      assertTrue(step == Step.UNREADABLE || step == Step.UNRESOLVED, step.name());
      assertTrue(walk.rows.size() < manyRows().size());
      assertEquals(manyRows().subList(0, walk.rows.size()), walk.rows);
    }
  }

  private void truncate(long map, int length) throws Exception {
    try (RandomAccessFile data = new RandomAccessFile(outputs.resolve(SHUFFLE, map).data(), "rw")) {
      assertTrue(data.length() > length);
      data.setLength(length);
    }
  }

  @Test
  void anEndpointThatIsClosed() throws Exception {
    outputs.writeBytes(SHUFFLE, 1, GoldenRows.stream(manyRows()));
    resolve(1);
    try (RowReader reader = RowReader.open(RowCodec.NONE)) {
      Walk walk = new Walk(reader);
      input(reader, 1, 0, 1);
      assertEquals(Step.FULL, walk.step());
      endpoint.close();
      Step step = walk.toEnd();
      // The endpoint may still have the file open.
      assertTrue(step == Step.UNREADABLE || step == Step.UNRESOLVED || step == Step.DONE, step.name());
      assertEquals(manyRows().subList(0, walk.rows.size()), walk.rows);
      assertThrows(EndpointException.Closed.class, () -> input(reader, 1, 0, 1));
    }
  }
}
