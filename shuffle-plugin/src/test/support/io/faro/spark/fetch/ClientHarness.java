package io.faro.spark.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.faro.spark.conf.FaroConf;
import io.faro.spark.metrics.PluginCounters;
import io.faro.spark.peers.CardStore;
import io.faro.spark.peers.PeerKey;
import io.faro.spark.peers.Peers;
import io.faro.spark.peers.PerHost;
import io.faro.spark.peers.ReplicaCards;
import io.faro.spark.peers.Steps;
import io.faro.spark.service.ServiceHosts;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.SparkConf;
import org.apache.spark.network.shuffle.DownloadFileManager;

/** A client between a fake Spark and a fake transport. */
final class ClientHarness {
  static final String HOST = "10.0.0.7";
  static final int PORT = 7777;
  static final String EXECUTOR = "3";
  static final PeerKey PEER = new PeerKey(EXECUTOR, HOST, PORT);
  static final long PIECE_BYTES = 4;
  static final long WAIT_MILLIS = 5_000;

  final FakeTransport transport = new FakeTransport();
  final FakeSpark spark = new FakeSpark();
  final FakeListener listener = new FakeListener();
  final Steps steps = new Steps();
  final Steps.Queue lookUps = new Steps.Queue();
  final Steps.Queue fallBackThreads = new Steps.Queue();
  final Steps.Queue fileThreads = new Steps.Queue();
  final PluginCounters counters = new PluginCounters();
  final List<String> said = new ArrayList<>();
  final List<PeerKey> asked = new ArrayList<>();
  /** The shuffles that are Spark's alone. */
  final Set<Integer> left = new HashSet<>();
  /** The services that may have copies. */
  final ServiceHosts hosts = new ServiceHosts(1);
  final FaroBlockStoreClient client;
  final Peers peers;
  /** The card that a look-up finds. */
  byte[] card = "*".getBytes(StandardCharsets.UTF_8);
  /** Card of the node service; {@code null}: the driver knows none. */
  byte[] serviceCard;
  Exception lookUpFails;
  boolean gone;
  /** True as with the external shuffle service. */
  boolean driverKnows;

  ClientHarness(boolean never) {
    this(new SparkConf(false).set("spark.faro.fallback", never ? "never" : "auto"));
  }

  ClientHarness(SparkConf sparkConf) {
    FaroConf conf = new FaroConf(sparkConf);
    boolean never = conf.never;
    RateLimitedLog log = new RateLimitedLog(said::add, steps);
    CardStore store = new Store();
    peers = new Peers(transport, store, new PerHost(lookUps), steps, steps, never, WAIT_MILLIS, counters);
    FallBack fallBack = new FallBack(spark, new PerHost(fallBackThreads), conf, counters, log);
    DownloadFiles toFile = new DownloadFiles(sparkConf, fileThreads, PIECE_BYTES);
    Peers services = conf.serviceDirectory == null ? null : new Peers(transport, new ServiceStore(),
        new PerHost(lookUps), steps, steps, false, WAIT_MILLIS, counters);
    SourceChain.Replicas replicas = conf.replicas == 0 ? null : new SourceChain.Replicas(
        new Peers(transport, new ReplicaCards(hosts), new PerHost(lookUps), steps, steps, false, WAIT_MILLIS, counters),
        hosts);
    SourceChain sources = new SourceChain(transport, peers, services, replicas, counters, steps);
    client = new FaroBlockStoreClient(spark, true, conf, sources, fallBack, toFile, left::contains);
  }

  private final class ServiceStore implements CardStore {
    @Override
    public void lookUp(PeerKey peer, long since, Answer answer) {
      if (serviceCard == null) {
        answer.missing(null);
      } else {
        answer.found(serviceCard, Collections.emptyList());
      }
    }

    @Override
    public boolean doubt(PeerKey peer) {
      return true;
    }
  }

  private final class Store implements CardStore {
    @Override
    public void lookUp(PeerKey peer, long since, Answer answer) throws Exception {
      asked.add(peer);
      if (lookUpFails != null) {
        throw lookUpFails;
      } else if (gone) {
        answer.gone();
      } else if (card == null) {
        answer.missing(null);
      } else {
        answer.found(card, Collections.emptyList());
      }
    }

    @Override
    public boolean doubt(PeerKey peer) {
      return driverKnows;
    }
  }

  /** Blocks {@code shuffle_0_<i>_2}. */
  static String[] blocks(int count) {
    String[] blocks = new String[count];
    for (int i = 0; i < count; i++) {
      blocks[i] = "shuffle_0_" + i + "_2";
    }
    return blocks;
  }

  /** Blocks {@code shuffle_0_<map>_2}. */
  static List<String> names(int... maps) {
    List<String> names = new ArrayList<>();
    for (int map : maps) {
      names.add("shuffle_0_" + map + "_2");
    }
    return names;
  }

  /** After the listener has released its blocks, no memory has a reference. */
  void assertNothingLeaks() {
    listener.releaseAll();
    assertEquals(0, transport.references());
  }

  void fetch(String... blocks) {
    fetchTo(null, blocks);
  }

  void fetchTo(DownloadFileManager files, String... blocks) {
    client.fetchBlocks(HOST, PORT, EXECUTOR, blocks, listener, files);
  }

  /** A request whose peer's card has been found. */
  FakeTransport.StartedFetch fetchStarted(String... blocks) {
    fetch(blocks);
    lookUps.runAll();
    return transport.last();
  }
}
