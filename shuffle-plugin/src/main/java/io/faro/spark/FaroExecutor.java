package io.faro.spark;

import io.faro.Endpoint;
import io.faro.Faro;
import io.faro.Nullable;
import io.faro.OutputFiles;
import io.faro.StagedOutput;
import io.faro.spark.conf.FaroConf;
import io.faro.spark.fetch.SparkShuffles;
import io.faro.spark.metrics.FaroSource;
import io.faro.spark.metrics.PluginCounters;
import io.faro.spark.metrics.Reporter;
import io.faro.spark.metrics.Summary;
import io.faro.spark.peers.EndpointCards;
import io.faro.spark.read.RowReaders;
import io.faro.spark.service.ServiceHosts;
import io.faro.spark.service.ServiceLink;
import io.faro.spark.transport.NativeMemory;
import io.faro.spark.write.RowWriters;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.slf4j.Logger;

/**
 * Faro in one executor: the endpoint, its published card, the client in Spark's block manager, counters. Opened as a
 * whole or not at all, on a thread of its own, because a killed task interrupts its thread.
 */
final class FaroExecutor {
  private final Logger log;
  private final FaroConf conf;
  private final SparkEnv env;
  private final Endpoint endpoint;
  private final MapOutputs outputs;
  private final EndpointCards cards;
  private final Threads threads = new Threads();
  private final PluginCounters counters = new PluginCounters();
  private final NativeMemory memory = new NativeMemory();
  /** The link to the node service of this host; null if there is none. */
  @Nullable private final ServiceLink service;
  private final FaroSource source;
  private final Summary summary;
  private final Thread summaryHook;
  /** Null before the first use; guarded by this. */
  @Nullable private Reporter reporter;
  private volatile boolean used;
  /** Why this executor fetches nothing through Faro; empty: it does. */
  private volatile String problem = "";
  /** Guarded by this. */
  private boolean stopped;
  private final ClientInstall client;
  private final RowWriters writers;

  private FaroExecutor(Logger log, SparkConf sparkConf, FaroConf conf, SparkEnv env, Endpoint endpoint,
      MapOutputs outputs, SparkShuffles sparks, RowBlocks rowBlocks) {
    this.log = log;
    this.outputs = outputs;
    this.conf = conf;
    this.env = env;
    this.endpoint = endpoint;
    this.cards = new EndpointCards(env);
    this.service = conf.serviceDirectory == null ? null : new ServiceLink(conf.serviceDirectory, env,
        conf.security.sealed, () -> conf.security.secret(env.securityManager()),
        new ServiceHosts(conf.replicas), outputs, counters.outputsKept::increment, counters.outputsNotKept::increment);
    this.client = new ClientInstall(
        log, sparkConf, conf, env, endpoint, outputs, sparks, cards, threads, counters, service);
    this.source = new FaroSource(this::counters);
    this.summary = new Summary(this::counters, log::info);
    this.writers = new RowWriters(sparkConf, conf.writesRows, rowBlocks::allowed, endpoint::stage,
        counters.rowWriters::increment, counters::notWritten, counters.rowBlocks::add);
    this.summaryHook = new Thread(summary::log, "faro-summary");
  }

  static FaroExecutor open(Logger log, SparkConf sparkConf, FaroConf conf,
      Supplier<IndexShuffleBlockResolver> resolver, SparkShuffles sparks, RowBlocks rowBlocks) throws Exception {
    SparkEnv env = SparkEnv.get();
    MapOutputs outputs = new MapOutputs(resolver);
    Endpoint endpoint = EndpointStart.start(log, conf, env, outputs);
    try {
      FaroExecutor executor = new FaroExecutor(log, sparkConf, conf, env, endpoint, outputs, sparks, rowBlocks);
      executor.announce();
      return executor;
    } catch (Throwable e) {
      endpoint.close();
      throw e;
    }
  }

  private void announce() throws Exception {
    byte[] card = endpoint.card();
    if (!cards.publish(card)) {
      log.info("Faro: this executor is being decommissioned and publishes no endpoint card; it fetches through Faro, "
          + "and peers get its map outputs by Spark's own fetch or from where they are moved to");
    }
    env.metricsSystem().registerSource(source);
    if (service != null) {
      service.start();
    }
    try {
      Runtime.getRuntime().addShutdownHook(summaryHook);
    } catch (IllegalStateException e) {
      log.debug("Faro: this process ends already; there will be no summary", e);
    }
    log.info("Faro ready: version={} fabrics={} memory.limit={} fallback={} channel={}",
        Faro.version(), String.join(",", addressesOf(card)), conf.memoryLimit, conf.fallback(),
        conf.security);
  }

  /**
   * A shuffle runs here: the driver gets reports from now on. Not before, because the driver takes reports after its
   * first shuffle only.
   */
  void used() {
    if (!used) {
      startReporter();
    }
  }

  private synchronized void startReporter() {
    if (reporter == null && !stopped) {
      reporter = Reporter.start(env, this::counters, () -> problem, counters.traffic);
    }
    used = true;
  }

  private static List<String> addressesOf(byte[] card) {
    List<String> addresses = new ArrayList<>();
    for (String line : new String(card, StandardCharsets.UTF_8).split("\n")) {
      if (line.startsWith("address=")) {
        addresses.add(line.substring("address=".length()));
      }
    }
    return addresses;
  }

  /**
   * Makes Faro's client, for Faro's readers, and replaces the client of Spark's block manager by it. Once; with
   * fallback=never each task tries again and fails.
   */
  synchronized void install() throws ReflectiveOperationException {
    if (!stopped) {
      client.install();
    }
  }

  /** This executor fetches nothing through Faro. */
  void cannotFetch(String why) {
    problem = why;
  }

  RowWriters writers() {
    return writers;
  }

  /** Faro's readers of rows; null if this executor does not fetch through Faro. */
  @Nullable RowReaders readers() {
    return client.readers();
  }

  /** A map output was written; {@code staged}, which may be {@code null}, has the front of its data file. */
  void committed(int shuffleId, long mapId, StagedOutput staged) {
    OutputFiles files = outputs.resolve(shuffleId, mapId);
    if (files != null) {
      endpoint.committed(shuffleId, mapId, files, staged);
      if (service != null) {
        service.outputs.handOver(shuffleId, mapId, files);
      }
    } else if (staged != null) {
      staged.close();
    }
  }

  Endpoint endpoint() {
    return endpoint;
  }

  void serviceForgets(int shuffleId) {
    if (service != null) {
      service.outputs.forget(shuffleId);
    }
  }

  void forgetShuffle(int shuffleId) {
    endpoint.forgetShuffle(shuffleId);
  }

  Map<String, Long> counters() {
    Map<String, Long> all = new LinkedHashMap<>(endpoint.counters());
    memory.addTo(all);
    all.put("sealedChannel", conf.security.sealed ? 1L : 0L);
    all.putAll(counters.snapshot());
    all.put("serviceRegistered", service != null && service.isConnected() ? 1L : 0L);
    all.put("replicasBehind", service == null ? 0L : service.replicasBehind());
    return all;
  }

  synchronized void stop() {
    if (stopped) {
      return;
    }
    stopped = true;
    if (reporter != null) {
      reporter.stop();
    }
    summary.log();
    try {
      Runtime.getRuntime().removeShutdownHook(summaryHook);
    } catch (IllegalStateException e) {
      // The process is ending; the hook finds that the summary was logged.
    }
    client.detach();
    env.metricsSystem().removeSource(source);
    if (service != null) {
      service.stop();
    }
    endpoint.close();
    threads.stop();
  }
}
