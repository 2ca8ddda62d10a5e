package io.faro.spark.codec;

import java.io.IOException;
import java.io.InputStream;

/** Splits a stream of zstd frames and blocks: by the first byte of each, which is not the same. */
final class FrameSource {
  private static final int BUFFER_BYTES = 32 << 10;

  private final InputStream in;
  private final FrameWalk walk = new FrameWalk();
  private final byte[] buffer = new byte[BUFFER_BYTES];
  /** The next byte of {@link #buffer} to read; bytes up to {@link #end} are still unread. */
  private int at;
  private int end;
  /** Offset of the buffer's first byte in the stream. */
  private long before;

  FrameSource(InputStream in) {
    this.in = in;
  }

  /** The kind of what follows a frame or a block. */
  enum Next {
    FRAME, BLOCK, END
  }

  Next next() throws IOException {
    return !fill() ? Next.END : isBlock() ? Next.BLOCK : Next.FRAME;
  }

  /** Bytes of the stream that were read. */
  long offset() {
    return before + at;
  }

  /** The bytes as they are, for a reader that takes whole blocks. */
  InputStream blocks() {
    return new Part(false);
  }

  /** The bytes of frames, up to the next block. */
  InputStream frames() {
    return new Part(true);
  }

  private boolean isBlock() {
    return walk.isBetweenFrames() && buffer[at] == BlockHeader.FIRST_BYTE;
  }

  /** False: the stream has ended. */
  private boolean fill() throws IOException {
    while (at == end) {
      before += end;
      at = 0;
      end = 0;
      int got = in.read(buffer, 0, buffer.length);
      if (got < 0) {
        return false;
      }
      end = got;
    }
    return true;
  }

  /** A part of the stream. Its end does not end the stream, which this does not close. */
  private final class Part extends InputStream {
    private final boolean frames;

    Part(boolean frames) {
      this.frames = frames;
    }

    @Override
    public int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] target, int from, int count) throws IOException {
      if (count == 0) {
        return 0;
      }
      if (!fill() || frames && isBlock()) {
        return -1;
      }
      int start = at;
      int stop = at + Math.min(count, end - at);
      if (frames) {
        do {
          at += walk.take(buffer, at, stop - at);
        } while (at < stop && !isBlock());
      } else {
        at = stop;
      }
      System.arraycopy(buffer, start, target, from, at - start);
      return at - start;
    }

    @Override
    public int available() {
      return at == end || frames && isBlock() ? 0 : end - at;
    }
  }
}
