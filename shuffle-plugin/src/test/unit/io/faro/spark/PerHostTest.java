package io.faro.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.faro.spark.peers.PerHost;
import io.faro.spark.peers.Steps;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Hosts that hang delay no other host. */
class PerHostTest {
  private final Threads threads = new Threads();

  @AfterEach
  void stop() {
    threads.stop();
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void hostsThatHangTakeOneThreadEachAndDelayNoOther() {
    PerHost perHost = new PerHost(threads.fallback);
    CountDownLatch hanging = new CountDownLatch(1);
    CountDownLatch healthy = new CountDownLatch(100);
    CountDownLatch late = new CountDownLatch(400);
    for (int i = 0; i < 400; i++) {
      // More work for hosts that are down than there are threads.
      perHost.execute("down-" + i % 40, () -> {
        await(hanging);
        late.countDown();
      });
    }
    for (int i = 0; i < 100; i++) {
      perHost.execute("up-" + i % 5, healthy::countDown);
    }
    await(healthy);
    assertEquals(400, late.getCount(), "the others still hang");
    hanging.countDown();
    await(late);
  }

  @Test
  void workForOneHostIsInOrderAndGoesOnAfterAnException() {
    Steps.Queue pool = new Steps.Queue();
    PerHost perHost = new PerHost(pool);
    List<Integer> ran = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      int number = i;
      perHost.execute("a", () -> {
        ran.add(number);
        if (number == 1) {
          throw new IllegalArgumentException("made by a test");
        }
      });
    }
    assertEquals(1, pool.work.size());
    pool.runAll();
    assertEquals(Arrays.asList(0, 1, 2), ran);
    perHost.execute("a", () -> ran.add(3));
    pool.runAll();
    assertEquals(Arrays.asList(0, 1, 2, 3), ran);
  }

  @Test
  void aPoolThatWasStoppedRefusesAndKeepsNothing() {
    Steps.Queue pool = new Steps.Queue();
    PerHost perHost = new PerHost(pool);
    List<Integer> ran = new ArrayList<>();
    pool.stopped = true;
    assertThrows(RejectedExecutionException.class, () -> perHost.execute("a", () -> ran.add(0)));
    pool.stopped = false;
    perHost.execute("a", () -> ran.add(1));
    pool.runAll();
    assertEquals(Collections.singletonList(1), ran);
  }

  @Test
  void threadsDoNotKeepTheClassLoaderOfTheTaskThatStartsThem() throws Exception {
    Thread test = Thread.currentThread();
    ClassLoader own = test.getContextClassLoader();
    List<ClassLoader> seen = Collections.synchronizedList(new ArrayList<>());
    CountDownLatch ran = new CountDownLatch(4);
    Runnable look = () -> {
      seen.add(Thread.currentThread().getContextClassLoader());
      ran.countDown();
    };
    try {
      test.setContextClassLoader(new ClassLoader(own) {});
      threads.cards.execute(look);
      threads.fallback.execute(look);
      threads.files.execute(look);
      threads.timer.execute(look);
    } finally {
      test.setContextClassLoader(own);
    }
    await(ran);
    assertEquals(Collections.nCopies(4, Threads.class.getClassLoader()), seen);
  }
}
