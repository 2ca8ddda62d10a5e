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

/** Calls a reader and collects its rows; checks the form of each batch, and that it stays valid as long as promised. */
final class Walk {
  private static final int HEAD_BYTES = 8;

  private final RowReader reader;
  final List<ByteBuffer> rows = new ArrayList<>();
  int batches;
  long fileBytes;
  /** The last batch. */
  private long address;
  private byte[] batch = new byte[0];

  Walk(RowReader reader) {
    this.reader = reader;
  }

  /** One call. */
  RowReader.Step step() throws IOException {
    RowReader.Step step = reader.next();
    fileBytes += reader.fileBytes();
    // Also when there is a new one.
    checkLastBatch();
    if (reader.rows() > 0) {
      takeBatch();
    }
    return step;
  }

  /** Calls until the step is not FULL. */
  RowReader.Step toEnd() throws IOException {
    RowReader.Step step = step();
    while (step == RowReader.Step.FULL) {
      assertTrue(reader.rows() > 0, "a full batch has rows");
      step = step();
    }
    return step;
  }

  /** Goes on with the same batch and no rows. */
  Walk withoutRows() {
    rows.clear();
    return this;
  }

  void checkLastBatch() throws IOException {
    assertArrayEquals(batch, NativeMemory.read(address, batch.length), "the last batch has changed");
  }

  private void takeBatch() throws IOException {
    address = reader.address();
    assertEquals(0, address % 8);
    batch = NativeMemory.read(address, (int) reader.bytes());
    ByteBuffer bytes = ByteBuffer.wrap(batch).order(ByteOrder.nativeOrder());
    for (int row = 0; row < reader.rows(); row++) {
      int length = bytes.getInt();
      assertEquals(0, bytes.getInt());
      assertEquals(0, length % 8);
      rows.add(ByteBuffer.wrap(Arrays.copyOfRange(batch, bytes.position(), bytes.position() + length)));
      bytes.position(bytes.position() + length);
    }
    assertEquals(0, bytes.remaining(), "bytes behind the last row");
    batches++;
  }
}
