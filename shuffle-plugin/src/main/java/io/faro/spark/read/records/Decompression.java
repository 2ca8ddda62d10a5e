package io.faro.spark.read;

import java.io.InputStream;
import org.apache.spark.SparkConf;
import org.apache.spark.io.CompressionCodec$;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.storage.ShuffleBlockId;
import org.xerial.snappy.SnappyError;

/** Decompresses shuffle blocks as Spark does. */
final class Decompression {
  private static final int CHUNK_BYTES = 8 << 10;

  private final SerializerManager streams;
  /** Spark chooses by the kind of a block. */
  private final ShuffleBlockId any;

  Decompression(SerializerManager streams, int shuffle) {
    this.streams = streams;
    this.any = new ShuffleBlockId(shuffle, 0, 0);
  }

  /** Returns whether streams of the application's codec that follow each other are read as one. */
  static boolean canJoinStreams(SparkConf conf) {
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

  /** Decompresses all bytes and closes the stream. Returns what is wrong with them; {@code null}: nothing. */
  Exception problem(InputStream bytes) {
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
}
