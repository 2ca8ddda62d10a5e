package io.faro.spark.read.records;

import io.faro.rows.MemorySlices;
import io.faro.spark.read.groups.PartClient.NativeBytes;
import io.faro.spark.read.places.ArrayStream;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;

/** A part whose bytes from {@code end} on cannot be read, which is read as a stream. */
final class LostPart extends ManagedBuffer implements NativeBytes {
  private final byte[] bytes;
  private final int end;

  LostPart(byte[] bytes, int end) {
    this.bytes = bytes;
    this.end = end;
  }

  @Override
  public long size() {
    return bytes.length;
  }

  @Override
  public InputStream createInputStream() {
    return new ArrayStream() {
      private final InputStream first = new ByteArrayInputStream(bytes, 0, end);

      @Override
      public int read(byte[] to, int offset, int length) throws IOException {
        int read = first.read(to, offset, Math.min(length, 1_000));
        if (read < 0 && end < bytes.length) {
          throw new IOException("lent no more");
        }
        return read;
      }
    };
  }

  @Override
  public ByteBuffer nioByteBuffer() {
    throw new AssertionError("it is read as a stream");
  }

  @Override
  public void addTo(MemorySlices slices) {
    throw new AssertionError("it is read as a stream");
  }

  @Override
  public ManagedBuffer retain() {
    return this;
  }

  @Override
  public ManagedBuffer release() {
    return this;
  }

  @Override
  public Object convertToNetty() {
    throw new AssertionError("it is read here");
  }

  /** Absent before Spark 4.0: hence no annotation. */
  public Object convertToNettyForSsl() {
    return convertToNetty();
  }
}
