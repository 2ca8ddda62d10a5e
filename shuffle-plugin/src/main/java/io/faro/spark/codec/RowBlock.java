package io.faro.spark.codec;

/**
 * Decodes the bodies of row blocks into pieces of the row stream, one after the other. Its scratch is linear in the
 * longest block's original length, and stays for the next block.
 */
final class RowBlock {
  private final Columns columns = new Columns();
  private final Rows rows = new Rows();
  private final Texts texts = new Texts();
  private long[] values = new long[0];
  private byte[] tail = new byte[0];

  /**
   * Writes {@code original} bytes to the start of {@code target}, which has room for them; {@code array} begins with
   * the body of {@code length} bytes. After a fault the bytes of {@code target} mean nothing.
   */
  void decode(byte[] array, int length, int original, boolean zstd, byte[] target) throws BlockFault {
    Body body = new Body(array, length, original);
    if (values.length < body.rows) {
      values = new long[body.room(values.length)];
    }
    try {
      columns.take(body, values, body.rows);
      rows.place(body, values, original, target);
      texts.start(body);
      for (int word = 0; word < body.words; word++) {
        takeWord(body, word);
      }
      if (body.left() > 0) {
        throw new BlockFault(body.left() + " bytes follow its last column");
      }
      writeTail(body, zstd);
    } finally {
      rows.clear();
    }
  }

  private void takeWord(Body body, int word) throws BlockFault {
    int mode = body.peekMode();
    if (mode == Columns.TEXT || mode == Columns.WIDE) {
      Columns.takeTextual(body);
      columns.take(body, values, body.rows);
      texts.add(body, word, mode == Columns.WIDE, rows, values);
    } else {
      columns.take(body, values, body.rows);
      rows.write(word, values, body.rows);
    }
  }

  /** Writes what is behind the packed words. */
  private void writeTail(Body body, boolean zstd) throws BlockFault {
    int length = texts.tailBytes(body, rows);
    body.checkTail(length);
    if (body.stored == length) {
      texts.write(body, rows, body.array, body.columnsEnd);
      return;
    }
    if (tail.length < length) {
      tail = new byte[length];
    }
    if (zstd) {
      Decompressors.zstd(body.array, body.columnsEnd, body.stored, tail, length);
    } else {
      Decompressors.lz4(body.array, body.columnsEnd, body.stored, tail, length);
    }
    texts.write(body, rows, tail, 0);
  }
}
