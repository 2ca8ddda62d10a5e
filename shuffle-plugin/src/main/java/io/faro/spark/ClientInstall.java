package io.faro.spark;

import io.faro.Endpoint;
import io.faro.Nullable;
import io.faro.spark.conf.FaroConf;
import io.faro.spark.fetch.DownloadFiles;
import io.faro.spark.fetch.FallBack;
import io.faro.spark.fetch.FaroBlockStoreClient;
import io.faro.spark.fetch.RateLimitedLog;
import io.faro.spark.fetch.SourceChain;
import io.faro.spark.fetch.SparkShuffles;
import io.faro.spark.metrics.PluginCounters;
import io.faro.spark.peers.EndpointCards;
import io.faro.spark.peers.Peers;
import io.faro.spark.peers.PerHost;
import io.faro.spark.peers.ReplicaCards;
import io.faro.spark.peers.ServiceCards;
import io.faro.spark.read.RowReaders;
import io.faro.spark.read.places.LoanClient;
import io.faro.spark.service.LentOutputs;
import io.faro.spark.service.ServiceLink;
import io.faro.spark.transport.EndpointTransport;
import io.faro.spark.transport.FaroTransport;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.shuffle.BlockStoreClient;
import org.apache.spark.storage.BlockManager;
import org.slf4j.Logger;

/**
 * Faro's block client in one executor: makes it, for Faro's readers, and puts it into Spark's block manager, for
 * Spark's.
 */
final class ClientInstall {
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
  private final MapOutputs outputs;
  private final SparkShuffles sparks;
  private final EndpointCards cards;
  private final Threads threads;
  private final PluginCounters counters;
  private final FaroTransport transport;
  private final LongSupplier nanos = System::nanoTime;
  /** The link to the node service of this host; null if there is none. */
  @Nullable private final ServiceLink service;
  /** Guarded by this, as the client. */
  private State state = State.SERVING;
  /** Null in SERVING and SERVING_ONLY. */
  @Nullable private FaroBlockStoreClient client;
  /** Null before READING. */
  @Nullable private volatile RowReaders readers;

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
    READING_ONLY
  }

  ClientInstall(Logger log, SparkConf sparkConf, FaroConf conf, SparkEnv env, Endpoint endpoint, MapOutputs outputs,
      SparkShuffles sparks, EndpointCards cards, Threads threads, PluginCounters counters, ServiceLink service) {
    this.log = log;
    this.sparkConf = sparkConf;
    this.conf = conf;
    this.env = env;
    this.endpoint = endpoint;
    this.outputs = outputs;
    this.sparks = sparks;
    this.cards = cards;
    this.threads = threads;
    this.counters = counters;
    this.service = service;
    transport = new EndpointTransport(endpoint);
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
    Peers services = service == null ? null : new Peers(transport, new ServiceCards(service.driver, service.hosts),
        new PerHost(threads.cards), this::after, nanos, false, waitMillis, counters);
    SourceChain.Replicas replicas = service == null || conf.replicas == 0 ? null
        : new SourceChain.Replicas(new Peers(transport, new ReplicaCards(service.hosts),
            new PerHost(threads.cards), this::after, nanos, false, waitMillis, counters), service.hosts);
    FallBack fallBack = new FallBack(spark, new PerHost(threads.fallback), conf, counters, warnings);
    // BlockManager.stop closes its transfer service, and its client if that is another object, as Faro's is. If Spark's
    // client was another object too, only Faro's client can close it.
    boolean closesSpark = spark != blocks.blockTransferService();
    SourceChain sources = new SourceChain(transport, peers, services, replicas, counters, nanos);
    FaroBlockStoreClient faroClient = new FaroBlockStoreClient(
        spark, closesSpark, conf, sources, fallBack, new DownloadFiles(sparkConf, threads.files), sparks);
    client = faroClient;
    LoanClient lender = service == null ? LoanClient.NONE : new LentOutputs(service, endpoint, counters);
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

  private void after(long millis, Runnable action) {
    try {
      threads.timer.schedule(action, millis, TimeUnit.MILLISECONDS);
    } catch (RejectedExecutionException e) {
      // The executor stops: the action runs at once, so that no request waits for it.
      action.run();
    }
  }

  /** Faro's readers of rows; null if this executor does not fetch through Faro. */
  @Nullable RowReaders readers() {
    return readers;
  }

  /** From now on all requests go to Spark's own fetch. */
  synchronized void detach() {
    if (client != null) {
      client.detach();
    }
  }
}
