package io.faro.spark.read.records;

import io.faro.Nullable;
import io.faro.spark.read.groups.PartFailure;
import io.faro.spark.read.groups.PartClient.NativeBytes;
import io.faro.spark.read.places.ArrayStream;
import io.faro.spark.read.places.LentFiles.LentPart;
import io.netty.buffer.ByteBufInputStream;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.io.InputStream;
import org.apache.spark.network.buffer.FileSegmentManagedBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;

/**
 * The bytes of some parts as one stream. A part is opened when its first byte is read. A part that has fewer bytes than
 * its size says, or cannot be read, is a fetch failure of that part.
 */
final class PartsStream extends ArrayStream {
  /** Gives the bytes of parts, by position. */
  interface Bytes {
    /** Null if the part is left out. */
    @Nullable ManagedBuffer part(int i) throws FetchFailedException;

    /** Returns the failure that ends the task because part {@code i} cannot be read. */
    FetchFailedException unreadable(int i, IOException cause);

    /**
     * Returns the bytes of part {@code i} by another way, from its first one on, because those that are open cannot be
     * read any further. Throws what ends the task if there is no other way.
     */
    default InputStream instead(int i, IOException cause) throws IOException, FetchFailedException {
      throw unreadable(i, cause);
    }
  }

  private static final int SKIP_BYTES = 64 << 10;

  private final Bytes bytes;
  private final int end;
  /** The part under way, or the next one. */
  private int at;
  /** Null if none is open. */
  @Nullable private InputStream in;
  /** Bytes of the open part, and those of them that were not read. */
  private long size;
  private long left;

  /** Parts {@code first} to {@code end}, exclusive. */
  PartsStream(Bytes bytes, int first, int end) {
    this.bytes = bytes;
    this.at = first;
    this.end = end;
  }

  /** A stream of its own over a part's bytes, from the first one on; Netty's buffer has only one. */
  static InputStream open(ManagedBuffer part) throws IOException {
    return part instanceof NativeBytes || part instanceof FileSegmentManagedBuffer || part instanceof LentPart
        ? part.createInputStream()
        : new ByteBufInputStream(Unpooled.wrappedBuffer(part.nioByteBuffer()));
  }

  /** Fills the array across parts: a decompressor then needs one call for many small ones. */
  @Override
  public int read(byte[] to, int offset, int length) throws IOException {
    int read = 0;
    while (read < length && hasBytes()) {
      try {
        int now = in.read(to, offset + read, (int) Math.min(length - read, left));
        if (now < 0 && left > 0) {
          throw new IOException("it ends " + left + " bytes early");
        }
        read += Math.max(0, now);
        left -= Math.max(0, now);
        if (left == 0) {
          in.close();
          in = null;
          at++;
        }
      } catch (IOException e) {
        reopen(e);
      }
    }
    return read == 0 && length > 0 ? -1 : read;
  }

  /**
   * Opens the part anew from another source, and skips the bytes that were read of it. They stay valid, because the
   * files of a map task's attempt never change, and each attempt has an id of its own.
   */
  private void reopen(IOException cause) {
    try {
      in.close();
      in = bytes.instead(at, cause);
      skip(in, size - left);
    } catch (FetchFailedException e) {
      throw PartFailure.raise(e);
    } catch (IOException e) {
      throw PartFailure.raise(bytes.unreadable(at, e));
    }
  }

  private static void skip(InputStream in, long bytes) throws IOException {
    byte[] skipped = new byte[(int) Math.min(bytes, SKIP_BYTES)];
    for (long left = bytes; left > 0;) {
      int now = in.read(skipped, 0, (int) Math.min(left, skipped.length));
      if (now < 0) {
        throw new IOException("it ends before byte " + bytes);
      }
      left -= now;
    }
  }

  /** Returns whether there is a byte left to read; opens the next part for that. */
  boolean hasBytes() throws IOException {
    return in != null || next();
  }

  /** Opens the next part; false: there is none. */
  private boolean next() throws IOException {
    for (; at < end; at++) {
      try {
        ManagedBuffer part = bytes.part(at);
        if (part != null) {
          size = part.size();
          left = size;
          in = open(part);
          return true;
        }
      } catch (FetchFailedException e) {
        throw PartFailure.raise(e);
      } catch (IOException e) {
        throw PartFailure.raise(bytes.unreadable(at, e));
      }
    }
    return false;
  }

  @Override
  public int available() {
    return (int) Math.min(Integer.MAX_VALUE, left);
  }

  @Override
  public void close() throws IOException {
    at = end;
    if (in != null) {
      in.close();
      in = null;
    }
  }
}
