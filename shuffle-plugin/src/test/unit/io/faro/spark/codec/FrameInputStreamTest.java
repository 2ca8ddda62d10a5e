package io.faro.spark.codec;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.spark.ZstdRowsCodec;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.Random;
import org.apache.spark.SparkConf;
import org.apache.spark.io.CompressionCodec;
import org.apache.spark.io.CompressionCodec$;
import org.apache.spark.io.ZStdCompressionCodec;
import org.junit.jupiter.api.Test;

class FrameInputStreamTest {
  private static final byte[] ROW = new byte[24];
  /** A skippable frame of five bytes, which begins as a block would. */
  private static final byte[] SKIPPED = {0x50, 0x2a, 0x4d, 0x18, 5, 0, 0, 0, 'L', 'Z', '4', 'B', 'l'};

  private static byte[] rowBlock(int rows) {
    return new RowBlockEncoder(new Random(5)).block(Collections.nCopies(rows, ROW), 3);
  }

  private static byte[] rows(int count) {
    return RowSamples.stream(Collections.nCopies(count, ROW));
  }

  private static byte[] randomRows(int count) {
    byte[] rows = rows(count);
    Random random = new Random(count);
    for (int at = 0; at < rows.length; at++) {
      rows[at] = at % 28 < 4 ? rows[at] : (byte) random.nextInt(200);
    }
    return rows;
  }

  private static CompressionCodec codec() {
    return CompressionCodec$.MODULE$.createCodec(
        new SparkConf(false).set("spark.io.compression.codec", ZstdRowsCodec.class.getName()));
  }

  private static IOException fault(byte[] stream) {
    return assertThrows(IOException.class, () -> Streams.decodedZstd(stream, 1000));
  }

  /** Spark makes it by its class name, and its streams can be joined; what it writes is what its superclass writes. */
  @Test
  void sparkTakesTheCodecForItsZstd() throws IOException {
    CompressionCodec codec = codec();
    assertEquals(ZstdRowsCodec.class, codec.getClass());
    assertTrue(CompressionCodec$.MODULE$.supportsConcatenationOfSerializedStreams(codec));
    byte[] bytes = "not rows".getBytes(StandardCharsets.UTF_8);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (OutputStream compressed = codec.compressedOutputStream(out)) {
      compressed.write(bytes);
    }
    assertArrayEquals(Streams.zstd(bytes), out.toByteArray());
    assertArrayEquals(bytes, Streams.decodedZstd(out.toByteArray(), 4));
  }

  /** A reader without Faro's codec refuses row blocks, also behind frames that it knows. */
  @Test
  void stockZstdRefusesRowBlocks() throws IOException {
    CompressionCodec stock = new ZStdCompressionCodec(new SparkConf(false));
    for (byte[] stream : new byte[][] {rowBlock(9), Streams.joined(Streams.zstd(rows(9)), rowBlock(9))}) {
      IOException e = assertThrows(IOException.class,
          () -> Streams.all(stock.compressedInputStream(new ByteArrayInputStream(stream)), 1000));
      assertTrue(e.getMessage().contains("Unknown frame descriptor"), e.toString());
    }
  }

  /** Frames of all lengths, some longer than the buffer, in all orders with row blocks. */
  @Test
  void framesAndBlocksInAnyOrder() throws IOException {
    byte[] large = randomRows(9000);
    byte[] frame = Streams.zstd(large);
    assertTrue(frame.length > 64 << 10, frame.length + " bytes");
    byte[] none = Streams.zstd(new byte[0]);
    byte[] stream = Streams.joined(frame, frame, rowBlock(9), rowBlock(4), SKIPPED, none, Streams.zstd(rows(1)),
        SKIPPED, rowBlock(1), Streams.lz4(rows(3), 1000), frame);
    byte[] expected = Streams.joined(large, large, rows(9 + 4 + 1 + 1 + 3), large);
    for (int atOnce : new int[] {1, 1000, 1 << 20}) {
      assertArrayEquals(expected, Streams.decodedZstd(stream, atOnce));
    }
    InputStream slow = new ByteArrayInputStream(stream) {
      @Override
      public synchronized int read(byte[] to, int from, int count) {
        return super.read(to, from, Math.min(3, count));
      }
    };
    assertArrayEquals(expected, Streams.all(codec().compressedInputStream(slow), 1000));
    assertEquals(0, Streams.decodedZstd(none, 10).length);
    assertEquals(0, Streams.decodedZstd(new byte[0], 10).length);
  }

  /** Frames with a checksum, with their length, of one segment: zstd's own writes what Spark does not. */
  @Test
  void otherFrames() throws IOException {
    byte[] rows = rows(2000);
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    for (int length : new int[] {200 * 28, 10 * 28, 1500 * 28, 28}) {
      try (com.github.luben.zstd.ZstdOutputStream out = new com.github.luben.zstd.ZstdOutputStream(bytes)) {
        out.setChecksum(true);
        out.setCloseFrameOnFlush(true);
        out.write(rows, 0, length);
      }
      bytes.write(com.github.luben.zstd.Zstd.compress(Arrays.copyOf(rows, length)));
      bytes.write(rowBlock(2));
    }
    int count = 2 * (200 + 10 + 1500 + 1) + 8;
    assertArrayEquals(rows(count), Streams.decodedZstd(bytes.toByteArray(), 777));
  }

  @Test
  void errorsSayWhatIsWrongWhere() throws IOException {
    byte[] block = rowBlock(9);
    byte[] frame = Streams.zstd(rows(2));
    byte[] wrong = block.clone();
    wrong[block.length - 1] ^= 1;
    int at = frame.length + block.length;
    String corrupt = fault(Streams.joined(frame, block, wrong)).getMessage();
    assertTrue(corrupt.startsWith("Stream is corrupted: block 1 at byte " + at + ", method 0x30: its checksum is "),
        corrupt);
    String inside = fault(Streams.joined(Streams.zstd(Arrays.copyOf(rows(2), 30)), block)).getMessage();
    assertTrue(inside.contains("it begins inside a row"), inside);
    String unknown = fault(Streams.joined(frame, new byte[40])).getMessage();
    assertTrue(unknown.contains("Unknown frame descriptor"), unknown);
  }

  /** {@code UnsafeRowSerializer} would take an EOFException for the end of the rows. */
  @Test
  void aStreamThatEndsWithinAFrameOrABlockIsCorrupt() throws IOException {
    byte[] frame = Streams.zstd(randomRows(20));
    byte[] stream = Streams.joined(frame, rowBlock(9), frame);
    for (int length = 0; length < stream.length; length++) {
      byte[] part = Arrays.copyOf(stream, length);
      if (length == 0 || length == frame.length || length == stream.length - frame.length) {
        assertTrue(Streams.decodedZstd(part, 100).length <= 29 * 28);
        continue;
      }
      assertFalse(fault(part) instanceof EOFException);
    }
  }

  @Test
  void closesItsSource() throws IOException {
    int[] closed = new int[1];
    InputStream in = codec().compressedInputStream(new ByteArrayInputStream(Streams.zstd(rows(9))) {
      @Override
      public void close() {
        closed[0]++;
      }
    });
    assertEquals(0, in.read());
    in.close();
    in.close();
    assertEquals(1, closed[0]);
    assertEquals("Stream is closed", assertThrows(IOException.class, in::read).getMessage());
  }
}
