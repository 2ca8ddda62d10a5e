package io.faro.spark.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Fabric;
import io.faro.spark.ui.Figures;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TrafficTest {
  private final Traffic traffic = new Traffic();

  @Test
  void aShuffleIsTheSumOfItsRequestsAndTheSlowestOfThem() {
    traffic.ended(7, "a", Figures.delivered(Fabric.TCP, 10, 20), 500);
    traffic.ended(7, "b", Figures.delivered(Fabric.VERBS, 5), 300);
    traffic.fellBack(7, 3);
    Map<Integer, Map<String, Long>> taken = traffic.drainShuffles(10);
    assertEquals(Figures.counters("remoteBlocks.tcp", 2, "remoteBytes.tcp", 30, "remoteBlocks.verbs", 1,
        "remoteBytes.verbs", 5, "requests", 2, "requestNanos", 800, "slowestRequestNanos", 500,
        "fallbackBlocks", 3), taken.get(7));
  }

  @Test
  void laterPiecesOfABlockAddOnlyBytes() {
    Traffic traffic = new Traffic();
    RequestCounters pieces = Figures.delivered(Fabric.TCP, 10);
    pieces.block(Fabric.TCP, 3, false);
    traffic.ended(7, "peer", pieces, 1);
    RequestCounters last = new RequestCounters();
    last.block(Fabric.TCP, 2, false);
    traffic.ended(7, "peer", last, 1);
    Map<String, Long> figures = traffic.drainShuffles(1).get(7);
    assertEquals(1, figures.get("remoteBlocks.tcp"));
    assertEquals(15, figures.get("remoteBytes.tcp"));
  }

  @Test
  void aServiceIsTheSumOfItsRequests() {
    traffic.fromService("h", Figures.delivered(Fabric.TCP, 10, 20));
    traffic.fromService("h", Figures.delivered(Fabric.SHM, 5));
    traffic.fromService("nothing", Figures.delivered(Fabric.TCP));
    Map<String, Map<String, Long>> taken = traffic.drainServices(9);
    assertEquals(1, taken.size());
    assertEquals(Figures.counters(Traffic.SERVICE_BLOCKS, 3, Traffic.SERVICE_BYTES, 35), taken.get("h"));
    assertTrue(traffic.drainServices(9).isEmpty());
  }

  @Test
  void whatWasTakenIsNotTakenTwice() {
    traffic.fellBack(1, 1);
    traffic.fellBack(2, 1);
    assertEquals(1, traffic.drainShuffles(1).size());
    assertEquals(2, traffic.drainShuffles(9).keySet().iterator().next());
    assertTrue(traffic.drainShuffles(9).isEmpty());
  }

  @Test
  void undrainedItKeepsTheNewestShuffles() {
    for (int shuffle = 0; shuffle <= Traffic.MAX_SHUFFLES; shuffle++) {
      traffic.fellBack(shuffle, 1);
    }
    Map<Integer, Map<String, Long>> taken = traffic.drainShuffles(Integer.MAX_VALUE);
    assertEquals(Traffic.MAX_SHUFFLES, taken.size());
    assertFalse(taken.containsKey(0));
  }

  @Test
  void theSlowestPeersStayWhenThereAreTooManyPeers() {
    traffic.ended(0, "slow", Figures.delivered(Fabric.TCP, 1), 1_000_000);
    for (int peer = 0; peer < 3 * Traffic.MAX_PEERS; peer++) {
      traffic.ended(0, "peer " + peer, Figures.delivered(Fabric.TCP, 1), peer % 100);
    }
    List<PeerFigures> slowest = traffic.slowest(Report.MAX_PEERS);
    assertEquals(Report.MAX_PEERS, slowest.size());
    assertEquals("slow", slowest.get(0).peer);
    assertEquals(99, slowest.get(1).slowestNanos);
  }
}
