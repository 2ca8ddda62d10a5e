package io.faro.spark.service;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.service.NodeService;
import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Tests what the driver tells services of hosts without executors. */
class HostsWithoutExecutorsTest {

  private final BlockingQueue<String> told = new LinkedBlockingQueue<>();
  private final Semaphore mayTell = new Semaphore(0);
  private volatile byte[][] cards = {{1}, {2}};
  private volatile boolean fails;
  private final HostsWithoutExecutors hosts = new HostsWithoutExecutors(() -> cards, (to, removed, ended) -> {
    told.add(to.length + Arrays.toString(removed) + ended);
    mayTell.acquire();
    if (fails) {
      throw new IOException("no network");
    }
    return to.length;
  });

  private String next() throws InterruptedException {
    return told.take();
  }

  @Test
  void shufflesThatWaitAreToldTogetherAndOnce() throws InterruptedException {
    hosts.removed(7);
    assertEquals("2[7]false", next());
    hosts.removed(9);
    hosts.removed(8);
    hosts.removed(9);
    mayTell.release();
    assertEquals("2[8, 9]false", next());
  }

  @Test
  void theEndIsToldOnceAndLast() throws InterruptedException {
    mayTell.release(10);
    hosts.removed(7);
    assertEquals("2[7]false", next());
    hosts.ended();
    hosts.ended();
    hosts.removed(8);
    hosts.awaitEnd(Long.MAX_VALUE);
    assertEquals("2[]true", next());
    assertTrue(told.isEmpty());
  }

  @Test
  void whereNoHostIsEmptyNothingIsTold() throws InterruptedException {
    cards = new byte[0][];
    hosts.removed(7);
    hosts.ended();
    hosts.awaitEnd(Long.MAX_VALUE);
    assertTrue(told.isEmpty());
  }

  @Test
  void aFailureDoesNotEndIt() throws InterruptedException {
    fails = true;
    mayTell.release(10);
    hosts.removed(1);
    assertEquals("2[1]false", next());
    hosts.removed(2);
    assertEquals("2[2]false", next());
    hosts.ended();
    assertEquals("2[]true", next());
  }

  @Test
  void aServiceThatDoesNotAnswerIsNotWaitedForWithoutEnd() throws InterruptedException {
    hosts.ended();
    assertEquals("2[]true", next());
    hosts.awaitEnd(1);
    mayTell.release();
  }

  @Test
  void oneCallNamesAsManyShufflesAsItMay() throws InterruptedException {
    hosts.removed(0);
    assertEquals("2[0]false", next());
    IntStream.rangeClosed(1, NodeService.MAX_SHUFFLES + 1).forEach(hosts::removed);
    mayTell.release(2);
    int[] all = IntStream.rangeClosed(1, NodeService.MAX_SHUFFLES).toArray();
    assertEquals("2" + Arrays.toString(all) + "false", next());
    assertEquals("2[" + (NodeService.MAX_SHUFFLES + 1) + "]false", next());
  }
}
