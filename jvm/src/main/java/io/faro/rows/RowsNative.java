package io.faro.rows;

import java.nio.ByteBuffer;

/**
 * The JNI boundary of row readers, one method for each symbol of native/jni/src/rows. Handles are checked numbers; a
 * stale one throws {@link IllegalStateException}. One thread at a time may call with the same handle.
 */
final class RowsNative {
  private RowsNative() {}

  /** Opens a reader and returns its handle. {@code codec} is a code of {@link RowCodec}. */
  static native long open(int codec);

  /** Returns the address of a direct buffer's first byte. */
  static native long address(ByteBuffer buffer);

  /**
   * Sets the bytes to decode: pairs of an address and (2 x bytes, + 1 if a part ends with the slice). They must stay
   * readable and unchanged until the next {@code input}, {@code inputLocal} or {@code close}.
   */
  static native void input(long reader, long[] slices, int count);

  /** Sets the parts to decode from files: triples of a map id, the first and the last (exclusive) partition. */
  static native void inputLocal(long reader, long endpoint, int shuffle, long[] parts, int count);

  /**
   * Decodes until a batch is full or the input ends, and returns the position of a {@link RowReader.Step}. The batch is
   * copied to the start of {@code batch}, which must have {@link RowReader#BATCH_BYTES} bytes or more. {@code result}
   * receives seven values: the bytes and the rows of the batch; for a piece of a longer row, its offset and the row's
   * bytes, else 0 and 0; the position of the current part; the bytes read from files; 1 if rows of a failed part were
   * handed out, else 0.
   */
  static native int next(long reader, byte[] batch, long[] result);

  /**
   * Reads parts from files, one after the other, and their lengths. {@code parts} are triples as in {@link
   * #inputLocal}. Stops at the first part that does not fit into {@code bytes}, whose files the endpoint does not know,
   * or that cannot be read. Returns the number of parts read.
   */
  static native int readLocal(long endpoint, int shuffle, long[] parts, int count, byte[] bytes, long[] lengths);

  /** Returns the bytes of a part in files; -1: the endpoint does not know the files, or they do not have it. */
  static native long localBytes(long endpoint, int shuffle, long map, int start, int end);

  /**
   * Reads {@code length} bytes of a part, a triple as in {@link #inputLocal}, from {@code position} on, to {@code
   * offset} in {@code bytes}. Returns {@code false} if the endpoint does not know the files, or they cannot be read.
   */
  static native boolean readLocalAt(
      long endpoint, int shuffle, long[] part, long position, byte[] bytes, int offset, int length);

  static native String problem(long reader);

  /** Closes the reader, and frees its memory. */
  static native void close(long reader);

  /**
   * Opens a compressor and returns its handle. {@code codec} is a code of {@link RowCodec}; {@code packedWords} is the
   * number of packed words of each row, -1 for no row blocks.
   */
  static native long openCompressor(int codec, int zstdLevel, int blockBytes, int packedWords);

  static native void closeCompressor(long compressor);

  /** Returns the maximum size of the block of a piece of {@code bytes} bytes. */
  static native int maxBytes(long compressor, int bytes);

  /** Returns the number of row blocks that the compressor has made. */
  static native long rowBlocks(long compressor);

  /** Returns the bytes that end a stream with blocks. */
  static native byte[] streamEnd(long compressor);

  /**
   * Compresses {@code bytes} bytes at {@code from} in {@code source} to {@code to} in {@code target}, which has {@code
   * room} bytes there. Positions are byte offsets in the array, or addresses if the array is null. {@code atRow} says
   * that the bytes begin at a row. Returns the block's size in the lower 32 bits, and in the upper ones the size of the
   * block that the codec alone makes, an estimate if it was not made.
   */
  static native long compress(
      long compressor, long[] source, long from, int bytes, long[] target, long to, int room, boolean atRow);
}
