package io.faro.rows;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.FaroException;
import io.faro.TestLibrary;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Calls the compressor with arguments of any value. It must never access memory outside its arrays. */
class BlockCompressorTest {
  private static final int WORDS = 64;
  private static final int BYTES = 8 * WORDS;

  @BeforeAll
  static void library() throws FaroException {
    TestLibrary.load();
  }

  private static void refused(String problem, BlockCompressor compressor, long from, int bytes, long to, int room) {
    long[] source = new long[WORDS];
    long[] target = new long[WORDS];
    Throwable thrown = assertThrows(
        IllegalArgumentException.class, () -> compressor.compress(source, from, bytes, target, to, room));
    assertEquals(problem, thrown.getMessage());
    assertArrayEquals(new long[WORDS], target);
  }

  @ParameterizedTest
  @EnumSource
  void argumentsThatAreNotOfTheArrays(RowCodec codec) {
    try (BlockCompressor compressor = BlockCompressor.open(codec, 1, 32 << 20)) {
      refused("bytes is -1", compressor, 0, -1, 0, BYTES);
      refused("room is -8", compressor, 0, 8, 0, -8);
      refused("source has no 8 bytes at -1", compressor, -1, 8, 0, BYTES);
      refused("source has no 8 bytes at 505", compressor, BYTES - 7, 8, 0, BYTES);
      refused("source has no 8 bytes at 9223372036854775807", compressor, Long.MAX_VALUE, 8, 0, BYTES);
      refused("source has no 2147483647 bytes at 0", compressor, 0, Integer.MAX_VALUE, 0, BYTES);
      refused("target has no 512 bytes at 1", compressor, 0, 8, 1, BYTES);
      refused("target has no 512 bytes at -9223372036854775808", compressor, 0, 8, Long.MIN_VALUE, BYTES);
      int max = compressor.maxBytes(64);
      refused(max - 1 + " bytes for a block that may take " + max, compressor, 0, 64, 0, max - 1);
      IllegalArgumentException negative =
          assertThrows(IllegalArgumentException.class, () -> compressor.maxBytes(-1));
      assertEquals("bytes is -1", negative.getMessage());
    }
  }

  @Test
  void theAddressNullAndOnePageForBothAreRefused() {
    try (BlockCompressor compressor = BlockCompressor.open(RowCodec.LZ4, 1, 32 << 20)) {
      long[] page = new long[WORDS];
      assertThrows(IllegalArgumentException.class, () -> compressor.compress(null, 0, 8, page, 0, BYTES));
      assertThrows(IllegalArgumentException.class, () -> compressor.compress(page, 0, 8, null, 0, BYTES));
      assertThrows(IllegalArgumentException.class, () -> compressor.compress(page, 0, 8, page, 256, 256));
      assertThrows(IllegalArgumentException.class, () -> compressor.compress(null, 1000, 8, null, 1007, 256));
      assertThrows(IllegalArgumentException.class, () -> compressor.compress(null, 1000, 8, null, 800, 201));
    }
  }

  @ParameterizedTest
  @EnumSource
  void aClosedOneIsRefused(RowCodec codec) {
    BlockCompressor closed = BlockCompressor.open(codec, 1, 32 << 20);
    closed.close();
    closed.close();
    // This compressor may get the native handle of the closed one.
    try (BlockCompressor other = BlockCompressor.open(codec, 1, 32 << 20)) {
      assertThrows(IllegalStateException.class, () -> closed.maxBytes(8));
      assertThrows(
          IllegalStateException.class, () -> closed.compress(new long[WORDS], 0, 8, new long[WORDS], 0, BYTES));
      assertTrue(other.maxBytes(8) >= 8);
    }
  }

  @ParameterizedTest
  @EnumSource
  void anyArgumentsCompressOrAreRefused(RowCodec codec) {
    long seed = System.nanoTime();
    Random random = new Random(seed);
    long[] source = new long[WORDS];
    long[] target = new long[WORDS];
    int done = 0;
    try (BlockCompressor compressor = BlockCompressor.openForRows(
        codec, random.nextInt(), 32 << 20, random.nextInt(2) == 0 ? random.nextInt(4) : random.nextInt() >>> 1)) {
      for (int i = 0; i < 20_000; i++) {
        long from = any(random);
        int bytes = (int) any(random);
        long to = any(random);
        int room = (int) any(random);
        try {
          int length = i % 2 == 0 ? compressor.compress(source, from, bytes, target, to, room)
              : compressor.compressRows(source, from, bytes, target, to, room);
          assertTrue(length >= 0 && length <= room && to + length <= BYTES && from + bytes <= BYTES);
          done++;
        } catch (IllegalArgumentException refused) {
          assertTrue(refused.getMessage().matches(".*\\d.*"), refused.getMessage());
        }
        source[random.nextInt(WORDS)] = random.nextLong();
      }
    } catch (RuntimeException | AssertionError e) {
      throw new AssertionError("seed " + seed, e);
    }
    assertTrue(done > 100, done + " blocks, seed " + seed);
  }

  /** Returns a random number; half of all results are below {@link #BYTES}. */
  private static long any(Random random) {
    switch (random.nextInt(6)) {
      case 0:
        return random.nextLong();
      case 1:
        return random.nextInt();
      case 2:
        return Arrays.asList(0L, -1L, 1L << 31, Long.MIN_VALUE, Long.MAX_VALUE, (long) BYTES).get(random.nextInt(6));
      default:
        return random.nextInt(BYTES + 2);
    }
  }
}
