package io.faro.spark.service;

import io.faro.Nullable;
import io.faro.service.NodeService;
import io.faro.spark.conf.ChannelSecurity;
import java.util.Arrays;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.SparkEnv;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * The node services in the driver's process. Spark makes its shuffle plug-in ({@link FaroShuffleDataIO}) and its
 * shuffle manager apart from each other, so both find this one here.
 */
public final class NodeServicesHolder {
  private static final Logger LOG = LoggerFactory.getLogger(NodeServicesHolder.class);

  /** Deadline of what the driver tells services. */
  private static final long TIMEOUT_MILLIS = 5_000;

  /** Null if no application with node services runs here. Guarded by the class. */
  @Nullable private static NodeServices current;
  /** Of {@link #current}. Guarded by the class. */
  private static HostsWithoutExecutors emptyHosts;
  /** True if Spark tells {@link #current} of executors that are removed. Guarded by the class. */
  private static boolean listens;

  private NodeServicesHolder() {}

  /** An application starts. */
  static synchronized void start() {
    SparkEnv env = SparkEnv.get();
    String master = env.conf().get("spark.master", "");
    if (master.equals("local") || master.startsWith("local[")) {
      // The driver is the only executor, and its outputs end with it.
      return;
    }
    NodeServices services = new NodeServices();
    env.rpcEnv().setupEndpoint(ServiceRpcEndpoint.NAME, new ServiceRpcEndpoint(env.rpcEnv(), services));
    current = services;
    emptyHosts = new HostsWithoutExecutors(services::cardsOfEmptyHosts,
        (cards, removed, ended) -> tell(env, cards, removed, ended));
    listens = false;
  }

  private static int tell(SparkEnv env, byte[][] cards, int[] removed, boolean ended) throws Exception {
    ChannelSecurity security = ChannelSecurity.of(env.conf());
    byte[] secret = security.secret(env.securityManager());
    try {
      return NodeService.tell(
          env.conf().getAppId(), security.sealed, secret, cards, removed, ended, TIMEOUT_MILLIS);
    } finally {
      if (secret != null) {
        Arrays.fill(secret, (byte) 0);
      }
    }
  }

  /** Returns whether Spark may rely on each map output to outlive its executor. */
  static synchronized boolean reliable() {
    return current != null && current.reliable();
  }

  /** A shuffle is registered; {@code sparks}: Faro has no part in it. */
  public static synchronized void registered(int shuffle, boolean sparks) {
    if (current == null) {
      return;
    }
    current.registered(shuffle, sparks);
    // Spark's context is not there yet when its shuffle plug-in starts.
    Option<SparkContext> active = listens ? Option.empty() : SparkContext$.MODULE$.getActive();
    if (!active.isEmpty()) {
      listens = true;
      active.get().addSparkListener(new Listener(current, emptyHosts));
    }
  }

  /** A shuffle was removed; the executors that there are tell the services of their hosts. */
  static synchronized void removed(int shuffle) {
    if (current != null) {
      current.shuffleRemoved(shuffle);
      emptyHosts.removed(shuffle);
    }
  }

  /** The application has ended. Waits until services of hosts without executors know it. */
  static void stop() {
    HostsWithoutExecutors last;
    synchronized (NodeServicesHolder.class) {
      if (current == null) {
        return;
      }
      current.end();
      last = emptyHosts;
      current = null;
      emptyHosts = null;
    }
    last.ended();
    try {
      last.awaitEnd(TIMEOUT_MILLIS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static final class Listener extends SparkListener {
    private final NodeServices services;
    private final HostsWithoutExecutors emptyHosts;

    Listener(NodeServices services, HostsWithoutExecutors emptyHosts) {
      this.services = services;
      this.emptyHosts = emptyHosts;
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved executor) {
      services.removed(executor.executorId());
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd end) {
      try {
        // Now, as executors cannot be reached any more when Spark cleans its shuffles up.
        services.end();
        emptyHosts.ended();
      } catch (RuntimeException e) {
        LOG.debug("Faro: executors do not know that the application ends", e);
      }
    }
  }
}
