package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Tests that registered buffers are returned, and that views of them may outlive everything. */
class RegisteredBufferLeakTest {
  private static final int CYCLES = 10_000;

  @BeforeAll
  static void library() throws FaroException {
    Repository.loadNative();
  }

  private static Endpoint endpoint() throws FaroException {
    return Endpoint.start(Pair.config("buffers", FabricChoice.TCP), (shuffle, map) -> null);
  }

  private static long descriptors() {
    return new java.io.File("/proc/self/fd").list().length;
  }

  @Test
  void tenThousandCyclesLeaveNothing() throws Exception {
    try (Endpoint endpoint = endpoint()) {
      RegisteredBufferPool pool = endpoint.buffers();
      pool.acquire(1).release();
      Map<String, Long> before = endpoint.counters();
      Random random = new Random(1);
      Deque<RegisteredBuffer> held = new ArrayDeque<>();
      long files = 0;
      for (int cycle = 0; cycle < CYCLES; cycle++) {
        RegisteredBuffer buffer = pool.acquire(1 + random.nextInt(RegisteredBufferPool.MAX_BYTES));
        buffer.byteBuffer().putInt(0, cycle);
        held.add(buffer.retain());
        if (held.size() == 16) {
          RegisteredBuffer oldest = held.remove();
          oldest.release();
          oldest.release();
          assertThrows(IllegalStateException.class, oldest::release);
        }
        if (cycle == CYCLES / 10) {
          files = descriptors();
        }
      }
      for (RegisteredBuffer buffer : held) {
        buffer.release();
        buffer.release();
      }
      assertEquals(0, pool.outstanding());
      Map<String, Long> after = endpoint.counters();
      assertEquals(before.get("pool.leasedBytes"), after.get("pool.leasedBytes"));
      assertEquals(before.get("pool.pageBytes"), after.get("pool.pageBytes"));
      assertEquals(CYCLES, after.get("pool.acquisitions") - before.get("pool.acquisitions"));
      assertEquals(files, descriptors());
      assertTrue(Slabs.referenced() <= 8, "slab references: " + Slabs.referenced());
    }
  }

  /** A direct buffer must never fault, not even after its release or after the end of its endpoint. */
  @Test
  void aViewNeverFaults() throws Exception {
    Deque<ByteBuffer> views = new ArrayDeque<>();
    RegisteredBuffer kept;
    try (Endpoint endpoint = endpoint()) {
      for (int i = 0; i < 100; i++) {
        RegisteredBuffer buffer = endpoint.buffers().acquire(RegisteredBufferPool.MAX_BYTES);
        views.add(buffer.byteBuffer());
        if (i % 2 == 0) {
          buffer.release();
        }
      }
      kept = endpoint.buffers().acquire(100);
    }
    System.gc();
    Slabs.releaseUnreachable();
    for (ByteBuffer view : views) {
      for (int at = 0; at < view.capacity(); at += 4096) {
        view.get(at);
      }
    }
    kept.put(0, new byte[] {5}, 0, 1);
    assertEquals(5, kept.byteBuffer().get(0));
    kept.release();
    assertThrows(IllegalStateException.class, kept::release);
  }
}
