package io.faro.rows;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.FaroException;
import io.faro.TestLibrary;
import io.faro.rows.RowReader.Step;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Native code decodes Spark's bytes from memory, and Java reads the rows. */
class RowReaderTest {
  private final PartMemory memory = new PartMemory();

  @BeforeAll
  static void library() throws FaroException {
    TestLibrary.load();
  }

  private static List<ByteBuffer> longRows(int... lengths) {
    List<ByteBuffer> rows = new ArrayList<>();
    for (int i = 0; i < lengths.length; i++) {
      byte[] row = new byte[lengths[i]];
      Arrays.fill(row, (byte) (i + 1));
      rows.add(ByteBuffer.wrap(row));
    }
    return rows;
  }

  @ParameterizedTest
  @EnumSource
  void goldenFilesInOneSlice(GoldenRows.File file) throws Exception {
    try (RowReader reader = RowReader.open(file.codec)) {
      Walk walk = new Walk(reader);
      reader.input(memory.parts(file.bytes()));
      assertEquals(Step.DONE, walk.toEnd());
      assertEquals(file.rows(1), walk.rows);
      assertEquals(1, reader.part());
      assertEquals(0, reader.fileBytes());
    }
  }

  @ParameterizedTest
  @EnumSource
  void goldenFilesInManySlicesAndParts(GoldenRows.File file) throws Exception {
    try (RowReader reader = RowReader.open(file.codec)) {
      Walk walk = new Walk(reader);
      MemorySlices slices = new MemorySlices();
      memory.cut(slices, file.bytes(), 1);
      slices.endPart();
      memory.cut(slices, file.bytes(), 21, 5, 0, 4000);
      memory.cut(slices, file.bytes(), 7);
      assertEquals(4, slices.parts());
      reader.input(slices);
      assertEquals(Step.DONE, walk.toEnd());
      assertEquals(file.rows(3), walk.rows);
      assertEquals(4, reader.part());
    }
  }

  /** Cuts a part into several inputs, as for a block that Spark delivers as a stream. */
  @ParameterizedTest
  @EnumSource
  void aPartOverSeveralInputs(GoldenRows.File file) throws Exception {
    overSeveralInputs(file, false);
  }

  @ParameterizedTest
  @EnumSource
  void aBatchStaysWhileTheNextOneIsOfAnotherInput(GoldenRows.File file) throws Exception {
    overSeveralInputs(file, true);
  }

  /** {@code strict} checks each batch again after the next one. */
  private void overSeveralInputs(GoldenRows.File file, boolean strict) throws Exception {
    try (RowReader reader = RowReader.open(file.codec)) {
      List<ByteBuffer> rows = new ArrayList<>();
      byte[] bytes = file.bytes();
      Walk walk = new Walk(reader);
      for (int at = 0; at < bytes.length; at += 100) {
        MemorySlices slices = new MemorySlices();
        memory.add(slices, Arrays.copyOfRange(bytes, at, Math.min(at + 100, bytes.length)), 100);
        reader.input(slices);
        Step step;
        do {
          step = walk.step();
          rows.addAll(walk.rows);
          walk = strict ? walk.withoutRows() : new Walk(reader);
        } while (step == Step.FULL);
        assertEquals(Step.DONE, step);
        assertEquals(0, reader.part());
      }
      reader.input(memory.parts(new byte[0]));
      assertEquals(Step.DONE, walk.toEnd());
      rows.addAll(walk.rows);
      assertEquals(file.rows(1), rows);
      assertEquals(1, reader.part());
    }
  }

  @Test
  void theLastBatchStaysWhileThereIsNoOther() throws Exception {
    try (RowReader reader = RowReader.open(RowCodec.LZ4)) {
      Walk walk = new Walk(reader);
      reader.input(memory.parts(GoldenRows.File.LZ4.bytes()));
      assertEquals(Step.DONE, walk.toEnd());
      int batches = walk.batches;
      assertTrue(batches > 1, "the file is for several batches");
      for (int i = 0; i < 3; i++) {
        // {@code Walk} checks the batch after each step.
        assertEquals(Step.DONE, walk.step());
        assertEquals(0, reader.rows());
        reader.input(memory.parts(new byte[0], new byte[0]));
        assertEquals(Step.DONE, walk.step());
        assertEquals(0, reader.rows());
      }
      reader.input(memory.parts(PartMemory.flipped(GoldenRows.File.LZ4_SMALL.bytes(), 30)));
      assertEquals(Step.CORRUPT, walk.step());
      assertEquals(0, reader.rows());
      assertEquals(batches, walk.batches);
      assertEquals(GoldenRows.File.LZ4.rows(1), walk.rows);
    }
  }

  @Test
  void rowsLongerThanABatch() throws Exception {
    List<ByteBuffer> rows = longRows(16, 300_000, 3_000_000, 0, 65_536, 8);
    try (RowReader reader = RowReader.open(RowCodec.NONE)) {
      MemorySlices slices = new MemorySlices();
      memory.cut(slices, GoldenRows.stream(rows), 50_000);
      reader.input(slices);
      Walk walk = new Walk(reader);
      assertEquals(Step.DONE, walk.toEnd());
      assertEquals(rows, walk.rows);
    }
  }

  /** Another thread may read rows of a reader whose task has ended, while other readers decode. */
  @Test
  void rowsStayAsTheyAreAfterTheReadersEnd() throws Exception {
    List<Walk> ended = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      RowReader reader = RowReader.open(RowCodec.NONE);
      byte[] fill = new byte[8000];
      Arrays.fill(fill, (byte) i);
      reader.input(memory.parts(GoldenRows.stream(Arrays.asList(ByteBuffer.wrap(fill), ByteBuffer.wrap(fill)))));
      Walk walk = new Walk(reader);
      assertEquals(Step.DONE, walk.toEnd());
      reader.close();
      ended.add(walk);
      for (Walk each : ended) {
        each.checkLastBatch();
      }
    }
  }

  @Test
  void aReaderThatIsClosed() throws Exception {
    RowReader reader = RowReader.open(RowCodec.LZ4);
    reader.input(memory.parts(GoldenRows.File.LZ4.bytes()));
    Walk walk = new Walk(reader);
    assertEquals(Step.FULL, walk.step());
    reader.close();
    walk.checkLastBatch();
    assertEquals(Step.CLOSED, reader.next());
    assertEquals(0, reader.rows());
    assertEquals("the reader was closed", reader.problem());
    reader.input(memory.parts(GoldenRows.File.LZ4.bytes()));
    assertEquals(Step.CLOSED, reader.next());
    reader.close();
    assertEquals(Step.CLOSED, reader.next());
  }

  @ParameterizedTest
  @EnumSource(names = {"LZ4", "ZSTD"})
  void aReaderAfterOneThatWasClosedInAPart(GoldenRows.File file) throws Exception {
    for (int i = 0; i < 20; i++) {
      try (RowReader reader = RowReader.open(file.codec)) {
        reader.input(memory.parts(file.bytes()));
        assertEquals(Step.FULL, new Walk(reader).step());
      }
      try (RowReader reader = RowReader.open(file.codec)) {
        assertEquals(Step.DONE, reader.next(), "there is no input yet");
        assertEquals(0, reader.rows());
        Walk walk = new Walk(reader);
        reader.input(memory.parts(file.bytes()));
        assertEquals(Step.DONE, walk.toEnd());
        assertEquals(file.rows(1), walk.rows);
      }
    }
  }

  @Test
  void aThreadClosesWhatAnotherOneUses() throws Exception {
    MemorySlices slices = memory.parts(GoldenRows.File.LZ4.bytes(), GoldenRows.File.LZ4.bytes());
    ExecutorService decoder = Executors.newSingleThreadExecutor();
    try {
      for (int i = 0; i < 200; i++) {
        RowReader reader = RowReader.open(RowCodec.LZ4);
        CountDownLatch underWay = new CountDownLatch(1);
        Future<Step> last = decoder.submit(() -> {
          Step step;
          do {
            reader.input(slices);
            do {
              step = reader.next();
              underWay.countDown();
            } while (step == Step.FULL);
          } while (step == Step.DONE);
          return step;
        });
        underWay.await();
        reader.close();
        assertEquals(Step.CLOSED, last.get());
      }
    } finally {
      decoder.shutdownNow();
    }
  }
}
