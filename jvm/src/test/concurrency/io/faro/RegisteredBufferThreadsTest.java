package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Several threads use one buffer, and one pool. */
class RegisteredBufferThreadsTest {
  private static final int THREADS = 4;

  private final ExecutorService threads = Executors.newFixedThreadPool(THREADS);

  @BeforeAll
  static void library() throws FaroException {
    Repository.loadNative();
  }

  @AfterEach
  void stop() throws InterruptedException {
    threads.shutdownNow();
    assertTrue(threads.awaitTermination(Long.MAX_VALUE, TimeUnit.NANOSECONDS));
  }

  private <T> List<T> all(Callable<T> body) throws Exception {
    List<Future<T>> futures = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      futures.add(threads.submit(body));
    }
    List<T> results = new ArrayList<>();
    for (Future<T> future : futures) {
      results.add(future.get());
    }
    return results;
  }

  @Test
  void ofManyReleasesOneReturnsIt() throws Exception {
    FakeBuffers source = new FakeBuffers(1);
    RegisteredBufferPool pool = new RegisteredBufferPool(source);
    for (int round = 0; round < 500; round++) {
      RegisteredBuffer buffer = pool.acquire(1);
      buffer.retain();
      CyclicBarrier together = new CyclicBarrier(THREADS);
      AtomicInteger refused = new AtomicInteger();
      all(() -> {
        together.await();
        try {
          buffer.release();
        } catch (IllegalStateException e) {
          refused.incrementAndGet();
        }
        return null;
      });
      assertEquals(THREADS - 2, refused.get());
      assertEquals(0, source.out());
    }
  }

  /**
   * A copy must have one owner's bytes only, even if another thread releases the buffer meanwhile. Each owner fills it
   * with its own number.
   */
  @Test
  void aCopyIsNeverOfTheNextOwnersBytes() throws Exception {
    try (Endpoint endpoint = Endpoint.start(Pair.config("buffers", FabricChoice.TCP), (shuffle, map) -> null)) {
      RegisteredBufferPool pool = endpoint.buffers();
      AtomicInteger copies = new AtomicInteger();
      for (int round = 0; round < 500; round++) {
        RegisteredBuffer buffer = pool.acquire(4096);
        byte[] mine = new byte[4096];
        Arrays.fill(mine, (byte) round);
        buffer.put(0, mine, 0, 4096);
        Future<?> reader = threads.submit(() -> {
          byte[] got = new byte[4096];
          try {
            while (true) {
              buffer.get(0, got, 0, got.length);
              for (byte b : got) {
                assertEquals(mine[0], b);
              }
              copies.incrementAndGet();
            }
          } catch (IllegalStateException e) {
            return; // The buffer was released.
          }
        });
        // The arena hands out the buffer that was returned last, so this is the same memory.
        buffer.release();
        RegisteredBuffer next = pool.acquire(4096);
        Arrays.fill(mine, 1, 4096, (byte) ~round);
        next.put(0, mine, 1, 4095);
        reader.get();
        next.release();
      }
      assertEquals(0, pool.outstanding());
      assertTrue(copies.get() > 0, "no copy came before the release: the test is too weak");
    }
  }

  @Test
  void waitersAreServedAndNothingIsLost() throws Exception {
    EndpointConfig small = EndpointConfig.builder().fabric(FabricChoice.TCP).memoryLimitBytes(32L << 20).build();
    try (Endpoint endpoint = Endpoint.start(small, (shuffle, map) -> null)) {
      RegisteredBufferPool pool = endpoint.buffers();
      // All available buffers but one are taken, so that nearly all threads wait.
      List<RegisteredBuffer> ballast = new ArrayList<>();
      while (true) {
        try {
          ballast.add(pool.acquire(RegisteredBufferPool.MAX_BYTES));
        } catch (EndpointException.Exhausted e) {
          break;
        }
      }
      ballast.remove(0).release();
      all(() -> {
        for (int i = 0; i < 2_000; i++) {
          try (RegisteredBuffer buffer = pool.acquire(RegisteredBufferPool.MAX_BYTES, 1, TimeUnit.DAYS)) {
            byte[] mark = {(byte) Thread.currentThread().getId()};
            buffer.put(77, mark, 0, 1);
            Thread.yield();
            byte[] got = new byte[1];
            buffer.get(77, got, 0, 1);
            assertEquals(mark[0], got[0], "two owners of one buffer");
          }
        }
        return null;
      });
      assertEquals(ballast.size(), pool.outstanding());
      ballast.forEach(RegisteredBuffer::release);
      assertEquals(0L, endpoint.counters().get("pool.leasedBytes").longValue());
      assertTrue(endpoint.counters().get("pool.waits") > 0);
    }
  }

  @Test
  void closingEndsAWait() throws Exception {
    FakeBuffers source = new FakeBuffers(0);
    RegisteredBufferPool pool = new RegisteredBufferPool(source);
    Future<?> waiter = threads.submit(() -> pool.acquire(1, 1, TimeUnit.HOURS));
    source.awaitRefusal(0);
    pool.close();
    ExecutionException e = assertThrows(ExecutionException.class, () -> waiter.get());
    assertEquals(EndpointException.Closed.class, e.getCause().getClass());
  }
}
