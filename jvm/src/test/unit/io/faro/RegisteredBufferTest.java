package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Tests references, and one release too many. */
class RegisteredBufferTest {
  private final FakeBuffers source = new FakeBuffers(2);
  private final RegisteredBufferPool pool = new RegisteredBufferPool(source);

  private static void refused(RegisteredBuffer buffer, Executable use) {
    IllegalStateException e = assertThrows(IllegalStateException.class, use);
    assertTrue(e.getMessage().startsWith("registered buffer 0x1 (4096 bytes"), e.getMessage());
    assertTrue(e.getMessage().endsWith("was released already"), e.getMessage());
  }

  @Test
  void theLastReleaseReturnsIt() throws FaroException {
    RegisteredBuffer buffer = pool.acquire(1);
    assertEquals(4096, buffer.capacity());
    buffer.retain().release();
    assertEquals(1, source.out());
    assertEquals(1, pool.outstanding());
    buffer.release();
    assertEquals(0, source.out());
    assertEquals(0, pool.outstanding());
  }

  @Test
  void everyUseAfterReleaseNamesTheBuffer() throws FaroException {
    RegisteredBuffer buffer = pool.acquire(1);
    buffer.close();
    refused(buffer, buffer::release);
    refused(buffer, buffer::close);
    refused(buffer, buffer::retain);
    refused(buffer, buffer::byteBuffer);
    refused(buffer, () -> buffer.get(0, new byte[1], 0, 1));
    refused(buffer, () -> buffer.put(0, new byte[1], 0, 1));
    assertEquals(4096, buffer.capacity());
    assertEquals(0, source.out());
  }

  @Test
  void viewsAndCopiesAreOfTheSameBytes() throws FaroException {
    try (RegisteredBuffer buffer = pool.acquire(1)) {
      buffer.put(4090, new byte[] {9, 1, 2, 3, 9}, 1, 3);
      ByteBuffer view = buffer.byteBuffer();
      assertEquals(0, view.position());
      assertEquals(4096, view.remaining());
      assertEquals(2, view.get(4091));
      view.put(4092, (byte) 7);
      byte[] got = new byte[5];
      buffer.get(4090, got, 1, 3);
      assertArrayEquals(new byte[] {0, 1, 2, 7, 0}, got);
      assertEquals(0, buffer.byteBuffer().position(), "views are apart");
    }
  }

  @Test
  void rangesOutsideAreNamed() throws FaroException {
    try (RegisteredBuffer buffer = pool.acquire(1)) {
      byte[] four = new byte[4];
      for (int[] range : new int[][] {{-1, 0, 1}, {4096, 0, 1}, {4093, 0, 4}, {0, 1, 4}, {0, -1, 1}, {0, 0, -1},
          {Integer.MAX_VALUE, 0, 4}, {0, Integer.MAX_VALUE, 4}}) {
        assertThrows(IndexOutOfBoundsException.class, () -> buffer.get(range[0], four, range[1], range[2]));
        assertThrows(IndexOutOfBoundsException.class, () -> buffer.put(range[0], four, range[1], range[2]));
      }
      buffer.get(4096, four, 4, 0);
    }
    assertEquals(0, source.out());
  }

  @Test
  void sizesThatCannotBeAreNamed() {
    for (int bytes : new int[] {0, -1, RegisteredBufferPool.MAX_BYTES + 1, Integer.MIN_VALUE}) {
      IllegalArgumentException e = assertThrows(IllegalArgumentException.class, () -> pool.acquire(bytes));
      assertTrue(e.getMessage().contains(" " + bytes + " "), e.getMessage());
      assertTrue(e.getMessage().contains("262144"), e.getMessage());
    }
  }

  @Test
  void aWaitEndsWithItsDeadline() throws FaroException {
    pool.acquire(1);
    pool.acquire(1);
    assertThrows(EndpointException.Exhausted.class, () -> pool.acquire(1));
    long start = System.nanoTime();
    assertThrows(EndpointException.Exhausted.class, () -> pool.acquire(1, 20, TimeUnit.MILLISECONDS));
    assertTrue(System.nanoTime() - start >= TimeUnit.MILLISECONDS.toNanos(20));
    assertEquals(2, pool.outstanding());
  }

  @Test
  void aClosedPoolGivesNoMoreAndTakesBackWhatIsOut() throws FaroException {
    RegisteredBuffer buffer = pool.acquire(1);
    pool.close();
    pool.close();
    assertThrows(EndpointException.Closed.class, () -> pool.acquire(1));
    buffer.put(0, new byte[] {1}, 0, 1);
    buffer.release();
    assertEquals(0, source.out());
  }
}
