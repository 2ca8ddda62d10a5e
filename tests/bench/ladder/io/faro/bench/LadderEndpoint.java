package io.faro.bench;

import io.faro.Endpoint;
import io.faro.EndpointConfig;
import io.faro.FabricChoice;
import io.faro.OutputFiles;
import io.faro.spark.conf.FaroConf;
import io.faro.spark.fetch.DownloadFiles;
import io.faro.spark.fetch.FallBack;
import io.faro.spark.fetch.FaroBlockStoreClient;
import io.faro.spark.fetch.RateLimitedLog;
import io.faro.spark.fetch.SourceChain;
import io.faro.spark.metrics.PluginCounters;
import io.faro.spark.peers.CardStore;
import io.faro.spark.peers.PeerKey;
import io.faro.spark.peers.Peers;
import io.faro.spark.peers.PerHost;
import io.faro.spark.peers.Timer;
import io.faro.spark.transport.EndpointTransport;
import io.faro.spark.transport.FaroTransport;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkConf;

/**
 * Faro as an executor has it, without an executor: a native endpoint, and on it the same FaroBlockStoreClient that
 * Spark's fetch iterator calls, with the peer's card given instead of looked up. fallback=never: what Faro does not
 * bring is a failure here.
 */
public final class LadderEndpoint {
  /** Returns the file of (shuffle, map). */
  public interface Locate {
    File file(int shuffle, long map);
  }

  /** The card of the only peer. */
  private static final class OneCard implements CardStore {
    private final byte[] card;

    OneCard(byte[] card) {
      this.card = card;
    }

    @Override
    public void lookUp(PeerKey peer, long since, Answer answer) {
      answer.found(card, Collections.emptyList());
    }

    @Override
    public boolean doubt(PeerKey peer) {
      return false;
    }
  }

  private final Endpoint endpoint;

  private LadderEndpoint(Endpoint endpoint) {
    this.endpoint = endpoint;
  }

  /** Starts the endpoint of a side: faro-shm, faro-sealed (TCP), or one of faro-tcp. Limits are the defaults of an executor. */
  public static LadderEndpoint start(String side, Locate data, Locate index) throws Exception {
    FaroConf defaults = new FaroConf(new SparkConf(false));
    boolean sealed = side.equals("faro-sealed");
    EndpointConfig config = EndpointConfig.builder()
        .set(defaults.settings)
        .name(side)
        .fabric(side.equals("faro-shm") ? FabricChoice.SHM : FabricChoice.TCP)
        .bindAddress(Addresses.OWN)
        .application("faro-bench")
        .sealed(sealed)
        .build();
    byte[] secret = sealed ? "known to all of the bench".getBytes(StandardCharsets.UTF_8) : null;
    return new LadderEndpoint(Endpoint.start(
        config, secret, (shuffle, map) -> new OutputFiles(data.file(shuffle, map), index.file(shuffle, map))));
  }

  public byte[] card() throws Exception {
    return endpoint.card();
  }

  public Map<String, Long> counters() {
    return endpoint.counters();
  }

  public FaroBlockStoreClient clientOf(byte[] card) {
    SparkConf spark = new SparkConf(false).set("spark.faro.fallback", "never");
    FaroConf conf = new FaroConf(spark);
    PluginCounters counters = new PluginCounters();
    FaroTransport transport = new EndpointTransport(endpoint);
    Executor here = Runnable::run;
    ScheduledExecutorService timers = Executors.newSingleThreadScheduledExecutor(task -> {
      Thread thread = new Thread(task, "bench-timer");
      thread.setDaemon(true);
      return thread;
    });
    Timer timer = (millis, action) -> timers.schedule(action, millis, TimeUnit.MILLISECONDS);
    PerHost others = new PerHost(timers);
    Peers peers = new Peers(
        transport, new OneCard(card), others, timer, System::nanoTime, conf.never, 10_000, counters);
    RateLimitedLog log = new RateLimitedLog(System.err::println, System::nanoTime);
    FallBack fallBack = new FallBack(null, others, conf, counters, log);
    SourceChain sources = new SourceChain(transport, peers, null, null, counters, System::nanoTime);
    return new FaroBlockStoreClient(
        null, false, conf, sources, fallBack, new DownloadFiles(spark, here), id -> false);
  }
}
