package io.faro.spark.read.records;

import io.faro.Nullable;
import io.faro.spark.read.places.ArrayStream;
import java.io.IOException;
import java.io.InputStream;
import org.apache.spark.SparkConf;
import org.apache.spark.io.CompressionCodec$;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.storage.ShuffleBlockId;
import org.xerial.snappy.SnappyError;

/** Decompresses shuffle blocks as Spark does. */
public final class Decompression {
  private static final int CHUNK_BYTES = 8 << 10;

  private final SerializerManager streams;
  /** Spark chooses by the kind of a block. */
  private final ShuffleBlockId any;

  Decompression(SerializerManager streams, int shuffle) {
    this.streams = streams;
    this.any = new ShuffleBlockId(shuffle, 0, 0);
  }

  /** Returns whether streams of the application's codec that follow each other are read as one. */
  public static boolean canJoinStreams(SparkConf conf) {
    CompressionCodec$ codecs = CompressionCodec$.MODULE$;
    try {
      return codecs.supportsConcatenationOfSerializedStreams(codecs.createCodec(conf));
    } catch (RuntimeException e) {
      // A codec that cannot be made here: Spark's reader says why.
      return false;
    }
  }

  /** The decompressed bytes; the same stream if nothing is compressed. Throws IOException, which is not declared. */
  InputStream of(InputStream bytes) {
    return streams.wrapStream(any, bytes);
  }

  /** Decompresses all bytes and closes the stream. Returns what is wrong with them; null if nothing is wrong. */
  @Nullable Exception problem(InputStream bytes) {
    try (InputStream closed = bytes; InputStream in = of(closed)) {
      byte[] chunk = new byte[CHUNK_BYTES];
      while (in.read(chunk) >= 0) {
        // Only whether it can be done matters.
      }
      return null;
    } catch (Exception e) {
      return e;
    } catch (SnappyError e) {
      return new IllegalArgumentException(e);
    }
  }

  /**
   * Decompressed bytes on their way to a deserialiser. It keeps what the decompressor threw: deserialisers take an
   * EOFException for the end of their stream, and wrap others. Thread-safe, so that a task's end may close a stream
   * that another thread reads.
   */
  static final class GuardedStream extends ArrayStream {
    private final InputStream compressed;
    private final Decompression decompression;
    /** Null before the first read: making it may read already, and fail. */
    @Nullable private InputStream in;
    private Throwable problem;
    private boolean closed;

    GuardedStream(InputStream compressed, Decompression decompression) {
      this.compressed = compressed;
      this.decompression = decompression;
    }

    @Nullable synchronized Throwable problem() {
      return problem;
    }

    @Override
    public synchronized int read(byte[] to, int offset, int length) throws IOException {
      if (closed) {
        throw new IOException("the stream was closed, or its task has ended");
      }
      try {
        if (in == null) {
          in = decompression.of(compressed);
        }
        return in.read(to, offset, length);
      } catch (Throwable e) {
        problem = e;
        throw e;
      }
    }

    @Override
    public synchronized int available() throws IOException {
      return closed || in == null ? 0 : in.available();
    }

    @Override
    public synchronized void close() throws IOException {
      if (!closed) {
        closed = true;
        (in == null ? compressed : in).close();
      }
    }
  }
}
