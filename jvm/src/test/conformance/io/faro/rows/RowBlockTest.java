package io.faro.rows;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.FaroException;
import io.faro.TestLibrary;
import io.faro.rows.RowReader.Step;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Native code makes row blocks for a writer, from arrays to arrays, and reads them for a reader. */
class RowBlockTest {
  private static final int BLOCK_BYTES = 32 << 10;
  private final PartMemory memory = new PartMemory();

  @BeforeAll
  static void library() throws FaroException {
    TestLibrary.load();
  }

  /** Returns rows of a number and a short text. */
  private static List<ByteBuffer> rows(int count) {
    List<ByteBuffer> rows = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      ByteBuffer row = ByteBuffer.allocate(32).order(ByteOrder.LITTLE_ENDIAN);
      row.putLong(0).putLong(1_000_000L + 3 * i).putLong(24L << 32 | 1 + i % 8).putLong(0);
      Arrays.fill(row.array(), 24, 25 + i % 8, (byte) ('a' + i % 26));
      rows.add(ByteBuffer.wrap(row.array()));
    }
    return rows;
  }

  /** The sum of {@link BlockCompressor#codecBytes} over the pieces of the last part. */
  private long codecBytes;

  /** Returns a part of these rows, in pieces of whole rows. */
  private byte[] part(BlockCompressor compressor, List<ByteBuffer> rows) {
    ByteArrayOutputStream part = new ByteArrayOutputStream();
    int max = BLOCK_BYTES / 36;
    codecBytes = 0;
    for (int from = 0; from < rows.size(); from += max) {
      byte[] piece = GoldenRows.stream(rows.subList(from, Math.min(rows.size(), from + max)));
      long[] source = new long[BLOCK_BYTES / 8];
      ByteBuffer.wrap(Arrays.copyOf(piece, BLOCK_BYTES)).order(ByteOrder.nativeOrder()).asLongBuffer().get(source);
      long[] target = new long[compressor.maxBytes(piece.length) / 8 + 1];
      int bytes = compressor.compressRows(source, 0, piece.length, target, 0, 8 * target.length);
      ByteBuffer out = ByteBuffer.allocate(8 * target.length).order(ByteOrder.nativeOrder());
      out.asLongBuffer().put(target);
      part.write(out.array(), 0, bytes);
      assertTrue(compressor.codecBytes() >= bytes, compressor.codecBytes() + " of the codec for " + bytes);
      codecBytes += compressor.codecBytes();
    }
    part.write(compressor.end(), 0, compressor.end().length);
    return part.toByteArray();
  }

  private static BlockCompressor packing() {
    return BlockCompressor.openForRows(RowCodec.LZ4, 1, BLOCK_BYTES, 2);
  }

  @Test
  void rowsComeBackAndTakeFewerBytes() throws Exception {
    List<ByteBuffer> rows = rows(5000);
    try (BlockCompressor packing = packing();
        BlockCompressor plain = BlockCompressor.open(RowCodec.LZ4, 1, BLOCK_BYTES);
        RowReader reader = RowReader.open(RowCodec.LZ4)) {
      byte[] part = part(packing, rows);
      assertTrue(packing.packsRows());
      assertEquals((5000 + BLOCK_BYTES / 36 - 1) / (BLOCK_BYTES / 36), packing.rowBlocks());
      long told = codecBytes;
      byte[] other = part(plain, rows);
      assertEquals(other.length, codecBytes + plain.end().length);
      // All pieces are alike, so the pieces that were made in both ways predict the others well.
      assertEquals(codecBytes, told, codecBytes / 20.0);
      assertFalse(plain.packsRows());
      assertEquals(0, plain.rowBlocks());
      assertTrue(part.length < other.length * 3 / 4, part.length + " bytes, " + other.length + " without row blocks");
      Walk walk = new Walk(reader);
      reader.input(memory.parts(part, other));
      assertEquals(Step.DONE, walk.toEnd());
      List<ByteBuffer> twice = new ArrayList<>(rows);
      twice.addAll(rows);
      assertEquals(twice, walk.rows);
    }
  }

  /** A codec without blocks makes no row blocks. */
  @Test
  void withoutACodecThereAreNone() {
    List<ByteBuffer> rows = rows(100);
    try (BlockCompressor none = BlockCompressor.openForRows(RowCodec.NONE, 1, BLOCK_BYTES, 2)) {
      assertEquals(36 * 100, part(none, rows).length);
      assertEquals(0, none.rowBlocks());
    }
  }

  /**
   * Flips a bit of each byte of a row block in turn: no row of the part is handed out, and the problem names the place.
   */
  @Test
  void anyFlippedBitIsFoundInItsPart() throws Exception {
    List<ByteBuffer> rows = rows(60);
    byte[] part;
    int block;
    try (BlockCompressor packing = packing()) {
      part = part(packing, rows);
      assertEquals(1, packing.rowBlocks());
      block = part.length - packing.end().length;
    }
    try (RowReader reader = RowReader.open(RowCodec.LZ4)) {
      for (int at = 0; at < block; at++) {
        Walk walk = new Walk(reader);
        reader.input(memory.parts(part, PartMemory.flipped(part, at), part));
        assertEquals(Step.CORRUPT, walk.toEnd(), "byte " + at);
        assertEquals(1, reader.part(), "byte " + at);
        assertEquals(rows, walk.rows, "byte " + at);
        assertFalse(reader.partWasHandedOut());
        assertTrue(reader.problem().contains(" at byte 0"), reader.problem());
      }
    }
  }

  @Test
  void columnsThatNoRowHas() {
    assertEquals("rows of -1 columns", assertThrows(IllegalArgumentException.class,
        () -> BlockCompressor.openForRows(RowCodec.LZ4, 1, BLOCK_BYTES, -1)).getMessage());
  }

  @Test
  void aClosedOneIsRefused() {
    BlockCompressor closed = packing();
    closed.close();
    assertThrows(IllegalStateException.class, closed::rowBlocks);
    assertThrows(IllegalStateException.class,
        () -> closed.compressRows(new long[64], 0, 8, new long[64], 0, 512));
  }
}
