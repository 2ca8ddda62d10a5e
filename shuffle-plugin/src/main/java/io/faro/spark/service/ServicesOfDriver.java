package io.faro.spark.service;

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
public final class ServicesOfDriver {
  private static final Logger LOG = LoggerFactory.getLogger(ServicesOfDriver.class);

  /** {@code null}: no application with node services runs here. Guarded by the class. */
  private static DriverServices current;
  /** True if Spark tells {@link #current} of executors that are removed. Guarded by the class. */
  private static boolean listens;

  private ServicesOfDriver() {}

  /** An application starts. */
  static synchronized void start() {
    SparkEnv env = SparkEnv.get();
    String master = env.conf().get("spark.master", "");
    if (master.equals("local") || master.startsWith("local[")) {
      // The driver is the only executor, and its outputs end with it.
      return;
    }
    DriverServices services = new DriverServices();
    env.rpcEnv().setupEndpoint(ServiceRpcEndpoint.NAME, new ServiceRpcEndpoint(env.rpcEnv(), services));
    current = services;
    listens = false;
  }

  /** Returns whether Spark may rely on each map output to outlive its executor. */
  static synchronized boolean reliable() {
    return current != null && current.reliable();
  }

  /** A shuffle is registered; {@code sparks}: Faro has no part in it. */
  public static synchronized void registered(boolean sparks) {
    if (current == null) {
      return;
    }
    if (sparks) {
      current.hasSparksShuffles();
    }
    // Spark's context is not there yet when its shuffle plug-in starts.
    Option<SparkContext> active = listens ? Option.empty() : SparkContext$.MODULE$.getActive();
    if (!active.isEmpty()) {
      listens = true;
      active.get().addSparkListener(new Listener(current));
    }
  }

  /** The application has ended. */
  static synchronized void stop() {
    if (current != null) {
      current.end();
      current = null;
    }
  }

  private static final class Listener extends SparkListener {
    private final DriverServices services;

    Listener(DriverServices services) {
      this.services = services;
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved executor) {
      services.removed(executor.executorId());
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd end) {
      try {
        // Now, as executors cannot be told any more when Spark cleans its shuffles up.
        services.end();
      } catch (RuntimeException e) {
        LOG.debug("Faro: executors were not told that the application ends", e);
      }
    }
  }
}
