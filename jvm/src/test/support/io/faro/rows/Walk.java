package io.faro.rows;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Calls a reader and collects its rows. Checks the form of each batch, and that it stays valid as long as promised. */
final class Walk {
  private static final int HEAD_BYTES = 8;

  private final RowReader reader;
  final List<ByteBuffer> rows = new ArrayList<>();
  int batches;
  long fileBytes;
  /** The last batch, and a copy of its content. */
  private byte[] array = new byte[0];
  private byte[] batch = new byte[0];
  /** The pieces of a long row that is not complete. */
  private ByteBuffer longRow;

  Walk(RowReader reader) {
    this.reader = reader;
  }

  /** Calls the reader once. */
  RowReader.Step step() throws IOException {
    RowReader.Step step = reader.next();
    fileBytes += reader.fileBytes();
    // The last batch must be valid even after a new one has come.
    checkLastBatch();
    if (reader.bytes() > 0) {
      takeBatch();
    }
    return step;
  }

  /** Calls the reader until the step is not FULL. */
  RowReader.Step toEnd() throws IOException {
    RowReader.Step step = step();
    while (step == RowReader.Step.FULL) {
      assertTrue(reader.bytes() > 0, "a full batch has rows");
      step = step();
    }
    return step;
  }

  /** Drops the collected rows, and keeps the last batch for its check. */
  Walk withoutRows() {
    rows.clear();
    return this;
  }

  void checkLastBatch() {
    assertArrayEquals(batch, Arrays.copyOf(array, batch.length), "the last batch has changed");
  }

  private void takeBatch() {
    array = reader.batch();
    batch = Arrays.copyOf(array, reader.bytes());
    batches++;
    if (reader.longRowBytes() > 0) {
      takePiece();
      return;
    }
    ByteBuffer bytes = ByteBuffer.wrap(batch).order(ByteOrder.nativeOrder());
    for (int row = 0; row < reader.rows(); row++) {
      int length = bytes.getInt();
      assertEquals(0, bytes.getInt());
      assertEquals(0, length % 8);
      rows.add(ByteBuffer.wrap(Arrays.copyOfRange(batch, bytes.position(), bytes.position() + length)));
      bytes.position(bytes.position() + length);
    }
    assertEquals(0, bytes.remaining(), "bytes behind the last row");
  }

  private void takePiece() {
    assertEquals(0, reader.rows());
    if (reader.pieceOffset() == 0) {
      longRow = ByteBuffer.allocate(reader.longRowBytes());
    }
    assertEquals(longRow.capacity(), reader.longRowBytes());
    assertEquals(longRow.position(), reader.pieceOffset());
    longRow.put(batch);
    if (!longRow.hasRemaining()) {
      longRow.flip();
      rows.add(longRow);
    }
  }
}
