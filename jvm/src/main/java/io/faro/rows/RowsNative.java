package io.faro.rows;

import java.nio.ByteBuffer;

/**
 * The JNI boundary of row readers, one method for each symbol of native/jni/src/rows. Handles are checked numbers; a
 * stale one throws {@link IllegalStateException}. One thread at a time may call with the same handle.
 */
final class RowsNative {
  private RowsNative() {}

  /** A reader; {@code codec}: see {@link RowCodec}. */
  static native long open(int codec);

  /** The address of a direct buffer's first byte. */
  static native long address(ByteBuffer buffer);

  /**
   * The bytes to decode from now on: pairs of an address and (bytes x 2, + 1 if a part ends here). They must be
   * readable and unchanged until the next {@code input}, {@code inputLocal} or {@code close}.
   */
  static native void input(long reader, long[] slices, int count);

  /** As {@link #input}, from files: triples of a map id, the first and the last (exclusive) partition. */
  static native void inputLocal(long reader, long endpoint, int shuffle, long[] parts, int count);

  /**
   * Decodes until a batch is full or the input ends, and returns the position of a {@link RowReader.Step}. The batch is
   * copied to the start of {@code batch}, which has {@link RowReader#BATCH_BYTES} bytes or more. {@code result}: bytes
   * and rows of the batch; if it is a piece of a longer row, where it begins in that row and the row's bytes, else 0
   * and 0; the position of the part under way, bytes read from files, whether rows of a failed part were handed out.
   */
  static native int next(long reader, byte[] batch, long[] result);

  /**
   * Reads parts as they lie in files, one after the other, and their lengths: triples as in {@link #inputLocal}. Stops
   * at the first part that does not fit into {@code bytes}, whose files the endpoint does not know, or that cannot be
   * read. Returns how many it has read.
   */
  static native int readLocal(long endpoint, int shuffle, long[] parts, int count, byte[] bytes, long[] lengths);

  /** What the last failure was. */
  static native String problem(long reader);

  /** Ends the reader, and frees its memory. */
  static native void close(long reader);

  /** A compressor; {@code codec}: see {@link RowCodec}; {@code packedWords}: of each row, -1: makes no row blocks. */
  static native long openCompressor(int codec, int zstdLevel, int blockBytes, int packedWords);

  static native void closeCompressor(long compressor);

  /** How many bytes a block of so many takes at most. */
  static native int maxBytes(long compressor, int bytes);

  /** How many row blocks it has made. */
  static native long rowBlocks(long compressor);

  /** What ends a stream that has blocks. */
  static native byte[] streamEnd(long compressor);

  /**
   * Compresses {@code bytes} bytes at {@code from} of {@code source} to {@code to} of {@code target}, which has {@code
   * room} bytes there, and returns how many it wrote. Positions are bytes of the array; addresses if the array is null.
   * {@code atRow}: the bytes begin at a row. Above bit 32 of the result: the bytes of the block that the codec alone
   * makes, an estimate where it was not tried.
   */
  static native long compress(
      long compressor, long[] source, long from, int bytes, long[] target, long to, int room, boolean atRow);
}
