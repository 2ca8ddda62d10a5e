package io.faro.spark.codec;

import io.faro.spark.ZstdRowsCodec;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import org.apache.spark.SparkConf;
import org.apache.spark.io.LZ4CompressionCodec;
import org.apache.spark.io.ZStdCompressionCodec;

/** Compressed streams in memory. */
public final class Streams {
  private Streams() {}

  /** Decodes a stream with Faro's codec for lz4, in reads of {@code atOnce} bytes. */
  public static byte[] decoded(byte[] stream, int atOnce) throws IOException {
    return all(new BlockInputStream(new ByteArrayInputStream(stream)), atOnce);
  }

  /** The same for zstd. */
  public static byte[] decodedZstd(byte[] stream, int atOnce) throws IOException {
    return all(new ZstdRowsCodec(new SparkConf(false)).compressedInputStream(new ByteArrayInputStream(stream)), atOnce);
  }

  /** All bytes of a stream, which it closes. */
  public static byte[] all(InputStream stream, int atOnce) throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    byte[] some = new byte[atOnce];
    try (InputStream in = stream) {
      for (int got = in.read(some); got >= 0; got = in.read(some)) {
        all.write(some, 0, got);
      }
    }
    return all.toByteArray();
  }

  /** As Spark's own lz4 writes it, with blocks of so many bytes and an end block. */
  public static byte[] lz4(byte[] original, int blockBytes) throws IOException {
    SparkConf conf = new SparkConf(false).set("spark.io.compression.lz4.blockSize", blockBytes + "b");
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (OutputStream out = new LZ4CompressionCodec(conf).compressedOutputStream(bytes)) {
      out.write(original);
    }
    return bytes.toByteArray();
  }

  /** Compresses as Spark's own zstd does: into one frame. */
  public static byte[] zstd(byte[] original) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (OutputStream out = new ZStdCompressionCodec(new SparkConf(false)).compressedOutputStream(bytes)) {
      out.write(original);
    }
    return bytes.toByteArray();
  }

  public static byte[] joined(byte[]... parts) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      out.write(part, 0, part.length);
    }
    return out.toByteArray();
  }
}
