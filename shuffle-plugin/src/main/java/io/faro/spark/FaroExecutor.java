package io.faro.spark;

import io.faro.Endpoint;
import io.faro.Faro;
import io.faro.OutputFiles;
import io.faro.StagedOutput;
import io.faro.spark.conf.FaroConf;
import io.faro.spark.fetch.FallBack;
import io.faro.spark.fetch.FaroBlockStoreClient;
import io.faro.spark.fetch.RateLimitedLog;
import io.faro.spark.fetch.SparksShuffles;
import io.faro.spark.fetch.DownloadFiles;
import io.faro.spark.metrics.FaroSource;
import io.faro.spark.metrics.PluginCounters;
import io.faro.spark.metrics.Reporter;
import io.faro.spark.metrics.Summary;
import io.faro.spark.peers.EndpointCards;
import io.faro.spark.peers.Peers;
import io.faro.spark.peers.PerHost;
import io.faro.spark.peers.ReplicaCards;
import io.faro.spark.peers.ServiceCards;
import io.faro.spark.read.Lender;
import io.faro.spark.read.RowReaders;
import io.faro.spark.service.LentOutputs;
import io.faro.spark.service.ServiceHosts;
import io.faro.spark.service.ServiceLink;
import io.faro.spark.transport.EndpointTransport;
import io.faro.spark.transport.FaroTransport;
import io.faro.spark.transport.NativeMemory;
import io.faro.spark.write.RowWriters;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.shuffle.BlockStoreClient;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.storage.BlockManager;
import org.slf4j.Logger;

/**
 * Faro in one executor: the endpoint, its published card, the client in Spark's block manager, counters. Opened as a
 * whole or not at all, on a thread of its own, because a killed task interrupts its thread.
 */
final class FaroExecutor {
  private static final long SWEEP_SECONDS = 1;
  /** A request is ended after this many timeouts without progress; native code should end it after one or two. */
  private static final int UNRESPONSIVE_TIMEOUTS = 4;

  /** The block clients that Faro replaces. It would hide one of another plug-in. */
  private static final Set<String> SPARKS_CLIENTS = new HashSet<>(Arrays.asList(
      "org.apache.spark.network.netty.NettyBlockTransferService",
      "org.apache.spark.network.shuffle.ExternalBlockStoreClient"));

  private final Logger log;
  private final SparkConf sparkConf;
  private final FaroConf conf;
  private final SparkEnv env;
  private final Endpoint endpoint;
  private final FaroTransport transport;
  private final MapOutputs outputs;
  private final SparksShuffles sparks;
  private final EndpointCards cards;
  private final Threads threads = new Threads();
  private final PluginCounters counters = new PluginCounters();
  private final NativeMemory memory = new NativeMemory();
  private final LongSupplier nanos = System::nanoTime;
  /** The link to the node service of this host; {@code null}: there is none. */
  private final ServiceLink service;
  private final ServiceHosts hosts;
  private final FaroSource source;
  private final Summary summary;
  private final Thread summaryHook;
  /** {@code null} before the first use; guarded by this. */
  private Reporter reporter;
  private volatile boolean used;
  /** Guarded by this. */
  private State state = State.SERVING;
  /** {@code null} in SERVING and SERVING_ONLY. */
  private FaroBlockStoreClient client;
  private final RowWriters writers;
  /** {@code null} before READING. */
  private volatile RowReaders readers;

  /** The states, in their order. */
  private enum State {
    /** Peers can fetch from this executor. */
    SERVING,
    /** Faro's readers also fetch through Faro. */
    READING,
    /** Spark's readers too. */
    INSTALLED,
    /** After INSTALLED: another plug-in has replaced Faro's client. */
    REPLACED,
    /** Instead of READING, with fallback=auto: another plug-in has replaced Spark's client. */
    SERVING_ONLY,
    /** Instead of INSTALLED, with fallback=auto: this Java or Spark refuses to replace Spark's client. */
    READING_ONLY,
    STOPPED
  }

  private FaroExecutor(Logger log, SparkConf sparkConf, FaroConf conf, SparkEnv env, Endpoint endpoint,
      MapOutputs outputs, SparksShuffles sparks, RowBlocks rowBlocks) {
    this.log = log;
    this.sparks = sparks;
    this.outputs = outputs;
    this.sparkConf = sparkConf;
    this.conf = conf;
    this.env = env;
    this.endpoint = endpoint;
    this.transport = new EndpointTransport(endpoint);
    this.cards = new EndpointCards(env);
    this.hosts = new ServiceHosts(conf.replicas);
    this.service = conf.serviceDirectory == null ? null : new ServiceLink(conf.serviceDirectory, env,
        conf.security.sealed, () -> conf.security.secret(env.securityManager()), hosts,
        counters.outputsKept::increment, counters.outputsNotKept::increment);
    this.source = new FaroSource(this::counters);
    this.summary = new Summary(this::counters, log::info);
    this.writers = new RowWriters(sparkConf, conf.writesRows, rowBlocks::allowed, endpoint::stage,
        counters.rowWriters::increment, counters::notWritten, counters.rowBlocks::add);
    this.summaryHook = new Thread(summary::log, "faro-summary");
  }

  static FaroExecutor open(Logger log, SparkConf sparkConf, FaroConf conf,
      Supplier<IndexShuffleBlockResolver> resolver, SparksShuffles sparks, RowBlocks rowBlocks) throws Exception {
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
    if (reporter == null && state != State.STOPPED) {
      reporter = Reporter.start(env, this::counters, counters.traffic);
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
    if (state == State.SERVING) {
      state = conf.never ? State.SERVING : State.SERVING_ONLY;
      makeClient();
      state = State.READING;
    }
    if (state == State.READING) {
      state = conf.never ? State.READING : State.READING_ONLY;
      replaceClient();
      state = State.INSTALLED;
    } else if (state == State.INSTALLED && env.blockManager().blockStoreClient() != client) {
      state = State.REPLACED;
      String other = env.blockManager().blockStoreClient().getClass().getName();
      log.warn("Faro fetches blocks for its own readers only: another plug-in has replaced Faro's client of the block "
          + "manager by a " + other + ", which fetches what Spark's reader reads");
    }
  }

  private void makeClient() {
    BlockManager blocks = env.blockManager();
    BlockStoreClient spark = blocks.blockStoreClient();
    if (!SPARKS_CLIENTS.contains(spark.getClass().getName())) {
      throw new IllegalStateException("it is not Spark's but a " + spark.getClass().getName()
          + ", which another plug-in has put there");
    }
    RateLimitedLog warnings = new RateLimitedLog(log::warn, nanos);
    long waitMillis = Peers.waitMillis(conf.never, conf.requestTimeoutMillis);
    Peers peers = new Peers(
        transport, cards, new PerHost(threads.cards), this::after, nanos, conf.never, waitMillis, counters);
    Peers services = service == null ? null : new Peers(transport, new ServiceCards(service.driver(), hosts),
        new PerHost(threads.cards), this::after, nanos, false, waitMillis, counters);
    FaroBlockStoreClient.Replicas replicas = service == null || conf.replicas == 0 ? null
        : new FaroBlockStoreClient.Replicas(new Peers(transport, new ReplicaCards(hosts), new PerHost(threads.cards),
            this::after, nanos, false, waitMillis, counters), hosts);
    FallBack fallBack = new FallBack(spark, new PerHost(threads.fallback), conf, counters, warnings);
    // BlockManager.stop closes its transfer service, and its client if that is another object, as Faro's is. If Spark's
    // client was another object too, only Faro's client can close it.
    boolean closesSpark = spark != blocks.blockTransferService();
    FaroBlockStoreClient faroClient = new FaroBlockStoreClient(spark, closesSpark, conf, transport, peers,
        services, replicas, fallBack,
        new DownloadFiles(sparkConf, threads.files), sparks, counters, nanos);
    client = faroClient;
    Lender lender = service == null ? Lender.NONE : new LentOutputs(service, endpoint, counters);
    readers = new RowReaders(sparkConf, conf.readsRows, faroClient, endpoint, outputs, lender,
        counters.rowReaders::increment, counters.groupedReaders::increment, counters::declined);
    long longest = TimeUnit.MILLISECONDS.toNanos(conf.requestTimeoutMillis) * UNRESPONSIVE_TIMEOUTS;
    threads.timer.scheduleWithFixedDelay(
        () -> faroClient.endUnresponsive(longest), SWEEP_SECONDS, SWEEP_SECONDS, TimeUnit.SECONDS);
    threads.timer.scheduleWithFixedDelay(peers::forgetIdle, 1, 1, TimeUnit.MINUTES);
    if (services != null) {
      threads.timer.scheduleWithFixedDelay(services::forgetIdle, 1, 1, TimeUnit.MINUTES);
    }
  }

  private void replaceClient() throws ReflectiveOperationException {
    BlockManager blocks = env.blockManager();
    Field field = BlockManager.class.getDeclaredField("blockStoreClient");
    field.setAccessible(true);
    field.set(blocks, client);
    if (blocks.blockStoreClient() != client) {
      throw new IllegalAccessException("BlockManager.blockStoreClient was set and has not changed");
    }
  }

  RowWriters writers() {
    return writers;
  }

  /** Faro's readers of rows; {@code null}: this executor does not fetch through Faro. */
  RowReaders readers() {
    return readers;
  }

  private void after(long millis, Runnable action) {
    try {
      threads.timer.schedule(action, millis, TimeUnit.MILLISECONDS);
    } catch (RejectedExecutionException e) {
      // The executor stops: the action runs at once, so that no request waits for it.
      action.run();
    }
  }

  /** A map output was written; {@code staged}, which may be {@code null}, has the front of its data file. */
  void committed(int shuffleId, long mapId, StagedOutput staged) {
    OutputFiles files = outputs.resolve(shuffleId, mapId);
    if (files != null) {
      endpoint.committed(shuffleId, mapId, files, staged);
      if (service != null) {
        service.handOver(shuffleId, mapId, files);
      }
    } else if (staged != null) {
      staged.close();
    }
  }

  Endpoint endpoint() {
    return endpoint;
  }

  /** A shuffle was removed. */
  void serviceForgets(int shuffleId) {
    if (service != null) {
      service.forget(shuffleId);
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
    if (state == State.STOPPED) {
      return;
    }
    state = State.STOPPED;
    if (reporter != null) {
      reporter.stop();
    }
    summary.log();
    try {
      Runtime.getRuntime().removeShutdownHook(summaryHook);
    } catch (IllegalStateException e) {
      // The process is ending; the hook finds that the summary was logged.
    }
    if (client != null) {
      client.detach();
    }
    env.metricsSystem().removeSource(source);
    if (service != null) {
      service.stop();
    }
    endpoint.close();
    threads.stop();
  }
}
