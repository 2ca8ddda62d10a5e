package io.faro.spark.codec;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.spark.RowsCodec;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.zip.Checksum;
import net.jpountz.lz4.LZ4BlockInputStream;
import org.apache.spark.SparkConf;
import org.apache.spark.io.CompressionCodec;
import org.apache.spark.io.CompressionCodec$;
import org.junit.jupiter.api.Test;

class BlockInputStreamTest {
  private static final byte[] ROW = new byte[24];

  private static byte[] rowBlock(int rows) {
    return new RowBlockEncoder(new Random(5)).block(Collections.nCopies(rows, ROW), 3);
  }

  private static String fault(byte[] stream) {
    return assertThrows(CorruptBlockException.class, () -> Streams.decoded(stream, 1000)).getMessage();
  }

  /** Spark makes it by its class name, and its streams can be joined; what it writes is what its superclass writes. */
  @Test
  void sparkTakesTheCodecForItsLz4() throws IOException {
    SparkConf conf = new SparkConf(false).set("spark.io.compression.codec", RowsCodec.class.getName());
    CompressionCodec codec = CompressionCodec$.MODULE$.createCodec(conf);
    assertEquals(RowsCodec.class, codec.getClass());
    assertTrue(CompressionCodec$.MODULE$.supportsConcatenationOfSerializedStreams(codec));
    byte[] bytes = "not rows, and longer than a block".getBytes(StandardCharsets.UTF_8);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (OutputStream compressed = codec.compressedOutputStream(out)) {
      compressed.write(bytes);
    }
    assertArrayEquals(Streams.lz4(bytes, 32 << 10), out.toByteArray());
    assertArrayEquals(bytes, Streams.decoded(out.toByteArray(), 4));
    InputStream in = codec.compressedInputStream(new ByteArrayInputStream(rowBlock(9)));
    assertEquals(9 * 28, in.skip(1000));
    assertEquals(-1, in.read());
  }

  /** A reader without Faro's codec refuses row blocks. */
  @Test
  void stockLz4RefusesRowBlocks() {
    IOException e = assertThrows(IOException.class,
        () -> new LZ4BlockInputStream(new ByteArrayInputStream(rowBlock(9)), false).read());
    assertEquals("Stream is corrupted", e.getMessage());
  }

  @Test
  void errorsSayWhatIsWrongWhere() throws IOException {
    byte[] block = rowBlock(9);
    int bytes = block.length;
    byte[] other = block.clone();
    other[8] = (byte) (0x50 | other[8] & 0x0f);
    assertEquals("Stream is corrupted: block 1 at byte " + bytes + ", method 0x50: this method is unknown",
        fault(Streams.joined(block, other)));
    byte[] wrong = block.clone();
    wrong[bytes - 1] ^= 1;
    assertTrue(fault(Streams.joined(block, block, wrong)).startsWith(
        "Stream is corrupted: block 2 at byte " + 2 * bytes + ", method 0x30: its checksum is "));
    assertEquals("Stream is corrupted: block 1 at byte " + bytes + ": it does not begin with LZ4Block",
        fault(Streams.joined(block, new byte[40])));
    assertEquals("Stream is corrupted: block 0 at byte 0: the stream ends after 20 bytes of its header",
        fault(Arrays.copyOf(block, 20)));
    assertEquals("Stream is corrupted: block 0 at byte 0, method 0x30: the stream ends after 1 of " + (bytes - 21)
        + " bytes", fault(Arrays.copyOf(block, 22)));
  }

  @Test
  void headersAreHeldToTheirBounds() {
    byte[] block = rowBlock(9);
    ByteBuffer fields = ByteBuffer.wrap(block).order(ByteOrder.LITTLE_ENDIAN);
    int body = fields.getInt(9);
    for (int wrong : new int[] {Integer.MIN_VALUE, -1, 0, 19, 2 * 252 + 65, Integer.MAX_VALUE}) {
      fields.putInt(9, wrong);
      assertTrue(fault(block).contains("its header says " + wrong + " bytes; allowed are 20 to 568"), fault(block));
    }
    fields.putInt(9, body);
    for (int wrong : new int[] {Integer.MIN_VALUE, -1, 0, 3, 1025, Integer.MAX_VALUE}) {
      fields.putInt(13, wrong);
      assertTrue(fault(block).contains("its header says " + wrong + " original bytes; allowed are 4 to 1024"));
    }
  }

  @Test
  void aRowBlockMayNotBeginInsideARow() throws IOException {
    byte[] rows = RowSamples.stream(Collections.nCopies(2, ROW));
    byte[] whole = Streams.lz4(rows, 1000);
    byte[] begun = Streams.lz4(Arrays.copyOf(rows, 30), 1000);
    assertEquals(2 * 28 + 9 * 28, Streams.decoded(Streams.joined(whole, rowBlock(9)), 9).length);
    assertTrue(fault(Streams.joined(begun, rowBlock(9))).contains("it begins inside a row"));
    byte[] rest = Streams.lz4(Arrays.copyOfRange(rows, 30, 56), 1000);
    assertEquals(11 * 28, Streams.decoded(Streams.joined(begun, rest, rowBlock(9)), 9).length);
  }

  /** A header that promises 32 MiB takes memory as far as bytes come. */
  @Test
  void aCorruptHeaderAllocatesLittle() throws IOException {
    byte[] head = rowBlock(1);
    head[8] = 0x3f;
    ByteBuffer.wrap(head).order(ByteOrder.LITTLE_ENDIAN).putInt(9, 64 << 20).putInt(13, 32 << 20);
    int[] max = new int[1];
    InputStream empty = new ByteArrayInputStream(head) {
      @Override
      public synchronized int read(byte[] to, int from, int count) {
        max[0] = Math.max(max[0], to.length);
        return super.read(to, from, count);
      }
    };
    assertThrows(CorruptBlockException.class, () -> new BlockInputStream(empty).read());
    assertEquals(64 << 10, max[0]);
  }

  @Test
  void aCorruptStreamStaysCorruptAndAClosedOneClosed() throws IOException {
    byte[] block = rowBlock(9);
    boolean[] closed = new boolean[1];
    InputStream in = new BlockInputStream(new ByteArrayInputStream(Streams.joined(block, new byte[30], block)) {
      @Override
      public void close() {
        closed[0] = true;
      }
    });
    assertEquals(252, in.read(new byte[1000]));
    IOException first = assertThrows(IOException.class, in::read);
    assertEquals(first, assertThrows(IOException.class, in::read));
    assertFalse(closed[0]);
    in.close();
    assertTrue(closed[0]);
    assertEquals("Stream is closed", assertThrows(IOException.class, in::read).getMessage());
  }

  @Test
  void crc32c() {
    Checksum own = new Crc32c();
    byte[] bytes = "123456789".getBytes(StandardCharsets.US_ASCII);
    own.update(bytes, 0, bytes.length);
    assertEquals(0xe3069283L, own.getValue());
    own.reset();
    byte[] more = new byte[1000];
    new Random(3).nextBytes(more);
    List<Checksum> both = Arrays.asList(own, Crc32c.create());
    both.forEach(crc -> crc.update(more, 3, 900));
    assertEquals(both.get(1).getValue(), own.getValue());
  }
}
