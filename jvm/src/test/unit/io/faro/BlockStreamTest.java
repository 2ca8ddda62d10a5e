package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Random;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Compares the stream over a block of many slices with the JDK's own stream over the same bytes. */
class BlockStreamTest {
  private byte[] expected;
  private BlockBytes block;

  @BeforeEach
  void blockInTheMiddle() throws Exception {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    RecordWriter record = new RecordWriter();
    Random random = new Random(7);
    for (int i = 0; i < 40; i++) {
      int length = random.nextInt(4) == 0 ? 0 : random.nextInt(300);
      int offset = random.nextInt(FakeArena.SLAB_BYTES - 300);
      record.slice(i % 4, offset, length);
      all.write(FakeArena.bytes(i % 4, offset, length));
    }
    byte[] stream = all.toByteArray();
    int before = 123;
    int after = 45;
    expected = java.util.Arrays.copyOfRange(stream, before, stream.length - after);
    record.block(before).block(expected.length).block(after);
    block = ArenaBatch.decode(RecordWriter.direct(record.bytes()), 0, new FakeArena()).take(1);
  }

  @Test
  void readsByteByByte() throws IOException {
    InputStream in = block.inputStream();
    for (int i = 0; i < expected.length; i++) {
      assertEquals(expected.length - i, in.available());
      assertEquals(expected[i] & 0xff, in.read(), "byte " + i);
    }
    assertEquals(-1, in.read());
    assertEquals(-1, in.read());
    assertEquals(0, in.available());
  }

  @Test
  void aBulkReadCrossesSlices() throws IOException {
    byte[] into = new byte[expected.length + 10];
    assertEquals(expected.length, block.inputStream().read(into, 5, expected.length));
    assertArrayEquals(expected, java.util.Arrays.copyOfRange(into, 5, 5 + expected.length));
  }

  @Test
  void doesWhatAByteArrayStreamDoes() throws IOException {
    for (int seed = 0; seed < 200; seed++) {
      Random random = new Random(seed);
      InputStream actual = block.inputStream();
      InputStream reference = new ByteArrayInputStream(expected);
      for (int step = 0; step < 60; step++) {
        int size = random.nextInt(400);
        switch (random.nextInt(4)) {
          case 0:
            assertEquals(reference.read(), actual.read());
            break;
          case 1:
            assertEquals(reference.skip(size), actual.skip(size));
            break;
          case 2:
            assertEquals(reference.skip(-size), actual.skip(-size));
            break;
          default:
            byte[] a = new byte[size + 1];
            byte[] b = new byte[size + 1];
            assertEquals(reference.read(a, 0, size + 1), actual.read(b, 0, size + 1));
            assertArrayEquals(a, b);
            break;
        }
        assertEquals(reference.available(), actual.available());
      }
    }
  }

  @Test
  void aReadThatLosesTheRaceAgainstTheReleaseReturnsNoOtherBytes() throws Exception {
    int length = 30_000;
    byte[] right = FakeArena.bytes(0, 0, length);
    int lost = 0;
    for (int round = 0; round < 300; round++) {
      FakeArena arena = new FakeArena();
      RecordWriter record = new RecordWriter().batch(1).slice(0, 0, length).block(length);
      ArenaBatch batch = ArenaBatch.decode(RecordWriter.direct(record.bytes()), 0, arena);
      BlockBytes shared = batch.take(0);
      batch.releaseHold();
      CyclicBarrier start = new CyclicBarrier(2);
      Thread releaser = new Thread(() -> {
        try {
          start.await();
        } catch (InterruptedException | BrokenBarrierException e) {
          throw new IllegalStateException(e);
        }
        shared.release();
        for (int offset = length - 1; offset >= 0; offset--) {
          arena.overwrite(0, offset);
        }
      });
      releaser.start();
      start.await();
      byte[] got = new byte[length];
      try {
        while (true) {
          assertEquals(length, shared.inputStream().read(got, 0, length));
          assertArrayEquals(right, got);
        }
      } catch (IllegalStateException e) {
        lost++;
      }
      releaser.join();
    }
    assertEquals(300, lost);
  }

  @Test
  void keepsTheContractOfInputStream() throws IOException {
    InputStream in = block.inputStream();
    assertFalse(in.markSupported());
    assertEquals(0, in.read(new byte[0], 0, 0));
    assertThrows(IndexOutOfBoundsException.class, () -> in.read(new byte[4], 2, 3));
    assertThrows(IndexOutOfBoundsException.class, () -> in.read(new byte[4], -1, 1));
    in.close();
    in.close();
    assertThrows(IOException.class, in::read);
    assertThrows(IOException.class, () -> in.read(new byte[1], 0, 1));
    block.release();
  }
}
