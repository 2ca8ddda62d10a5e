package io.faro.spark.codec;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Random rows through random row blocks, and what damage makes of them. */
class RowBlockPropertyTest {
  private static final int CASES = 400;
  private static final int DAMAGES = 250;
  private static final byte UNTOUCHED = 0x5a;

  @Test
  void rowsComeBack() throws IOException {
    rowsComeBack(CASES, false);
  }

  @Test
  void rowsComeBackFromStreamsOfZstd() throws IOException {
    rowsComeBack(CASES / 4, true);
  }

  private static void rowsComeBack(int cases, boolean zstd) throws IOException {
    for (int seed = 0; seed < cases; seed++) {
      Random random = new Random(seed);
      RowSamples samples = new RowSamples(random);
      RowBlockEncoder encoder = new RowBlockEncoder(random);
      List<byte[]> blocks = new ArrayList<>();
      List<byte[]> rows = new ArrayList<>();
      for (int i = random.nextInt(5); i >= 0; i--) {
        List<byte[]> some = samples.rows(1 + random.nextInt(random.nextInt(8) == 0 ? 3000 : 40));
        byte[] original = RowSamples.stream(some);
        // Any k up to the shortest row is valid.
        int words = random.nextInt(3) == 0 ? random.nextInt(samples.words() + 1) : samples.words();
        boolean plain = random.nextInt(3) == 0;
        blocks.add(!plain ? encoder.block(some, words)
            : zstd ? Streams.zstd(original) : Streams.lz4(original, 64 + random.nextInt(4000)));
        rows.add(original);
      }
      byte[] stream = Streams.joined(blocks.toArray(new byte[0][]));
      int atOnce = 1 + random.nextInt(5000);
      assertArrayEquals(Streams.joined(rows.toArray(new byte[0][])),
          zstd ? Streams.decodedZstd(stream, atOnce) : Streams.decoded(stream, atOnce), "seed " + seed);
    }
  }

  /** With a right checksum, so that the decoder has to find the damage itself; or it decodes to other rows. */
  @Test
  void damagedBodiesWriteNothingElsewhere() {
    int refused = 0;
    for (int seed = 0; seed < CASES; seed++) {
      Random random = new Random(seed);
      RowSamples samples = new RowSamples(random);
      byte[] block = new RowBlockEncoder(random).block(samples.rows(1 + random.nextInt(60)), samples.words());
      int original = ByteBuffer.wrap(block).order(ByteOrder.LITTLE_ENDIAN).getInt(13);
      RowBlock decoder = new RowBlock();
      for (int i = 0; i < DAMAGES; i++) {
        byte[] body = damaged(Arrays.copyOfRange(block, BlockHeader.BYTES, block.length), random);
        byte[] target = new byte[original + 64];
        Arrays.fill(target, UNTOUCHED);
        try {
          decoder.decode(body, body.length, original, (block[8] & 0xf0) == 0x40, target);
        } catch (BlockFault e) {
          refused++;
        }
        for (int at = original; at < target.length; at++) {
          assertEquals(UNTOUCHED, target[at], "seed " + seed);
        }
      }
    }
    assertTrue(refused > CASES * DAMAGES / 4, refused + " refused");
  }

  private static byte[] damaged(byte[] bytes, Random random) {
    byte[] body = random.nextInt(8) == 0 ? Arrays.copyOf(bytes, random.nextInt(bytes.length + 9)) : bytes;
    for (int i = random.nextInt(3); i >= 0 && body.length > 0; i--) {
      // Most of what is not codes or text stands at the start.
      int at = random.nextInt(random.nextBoolean() ? body.length : Math.min(60, body.length));
      body[at] = random.nextInt(3) == 0
          ? (byte) (random.nextBoolean() ? -1 : 0) : (byte) (body[at] ^ 1 << random.nextInt(8));
    }
    return body;
  }

  /** Without a right checksum no byte of a row block can be wrong, and of others only what does not matter. */
  @Test
  void noWrongByteIsGivenOut() throws IOException {
    for (int seed = 0; seed < 12; seed++) {
      Random random = new Random(seed);
      RowSamples samples = new RowSamples(random);
      List<byte[]> first = samples.rows(20);
      List<byte[]> second = samples.rows(20);
      byte[] packed = new RowBlockEncoder(random).block(first, samples.words());
      byte[] stream = Streams.joined(packed, Streams.lz4(RowSamples.stream(second), 300));
      byte[] rows = Streams.joined(RowSamples.stream(first), RowSamples.stream(second));
      for (int at = 0; at < stream.length; at++) {
        byte[] wrong = stream.clone();
        wrong[at] ^= (byte) (1 << random.nextInt(8));
        try {
          assertArrayEquals(rows, Streams.decoded(wrong, 1 << 20), "byte " + at + " of seed " + seed);
          assertTrue(at >= packed.length, "byte " + at + " of seed " + seed + " is of a row block");
        } catch (CorruptBlockException e) {
          assertTrue(e.getMessage().contains("block " + (at < packed.length ? "0 at byte 0" : "")), e.getMessage());
        }
      }
    }
  }

  /** {@code UnsafeRowSerializer} would take an EOFException for the end of the rows. */
  @Test
  void aStreamThatEndsWithinABlockIsCorrupt() throws IOException {
    Random random = new Random(1);
    RowSamples samples = new RowSamples(random);
    List<byte[]> some = samples.rows(20);
    byte[] packed = new RowBlockEncoder(random).block(some, samples.words());
    byte[] plain = Streams.lz4(RowSamples.stream(some), 1 << 20);
    byte[] stream = Streams.joined(packed, plain);
    for (int length = 0; length < stream.length; length++) {
      byte[] part = Arrays.copyOf(stream, length);
      if (length == 0 || length == packed.length || length == stream.length - BlockHeader.BYTES) {
        assertTrue(Streams.decoded(part, 100).length <= 2 * RowSamples.stream(some).length);
        continue;
      }
      IOException e = assertThrows(IOException.class, () -> Streams.decoded(part, 100));
      assertTrue(e instanceof CorruptBlockException && !(e instanceof EOFException), e.toString());
    }
  }
}
