package io.faro.spark;

import io.faro.Nullable;
import io.faro.spark.conf.UnsupportedSettings;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An executor's part of {@link FaroPlugin}. Spark makes plug-ins after the block manager, and in Spark 4 before the
 * shuffle manager. So the endpoint is opened here, and the first task finds out whether Faro can stand behind the
 * manager, before it reads anything.
 */
final class ExecutorPluginImpl implements ExecutorPlugin {
  private static final Logger LOG = LoggerFactory.getLogger(FaroPlugin.class);
  /** Spark's id of the driver as an executor. */
  private static final String DRIVER = "driver";

  private SparkConf conf;
  /** Null if nothing is to be done here. */
  @Nullable private FaroProcess process;
  private volatile State state = State.OPENING;

  private enum State {
    OPENING,
    /** No task has to look again: Faro delivers blocks, or the log says why not. */
    SETTLED
  }

  /** Throws with {@code spark.faro.fallback=never} if Faro cannot start: this executor does not start either. */
  @Override
  public void init(PluginContext plugin, Map<String, String> fromDriver) {
    conf = plugin.conf();
    // In local mode the driver is the executor.
    if (OtherManager.isFaros(conf) || DRIVER.equals(plugin.executorID())) {
      return;
    }
    process = new FaroProcess(
        conf, false, UnsupportedSettings.behindAnotherManager(conf), OtherManager::files,
        SessionToggle::leavesTask);
    if (!process.mayRun) {
      process.awaitOpen();
      process = null;
    } else if (process.conf.never) {
      // Spark ignores what a later call throws.
      process.install(process.awaitOpen());
    } else {
      process.open();
    }
  }

  @Override
  public void onTaskStart() {
    if (process != null && state == State.OPENING) {
      settle();
    }
  }

  private synchronized void settle() {
    if (state == State.SETTLED) {
      return;
    }
    FaroExecutor open = process.awaitOpen();
    if (open != null) {
      String problem = OtherManager.problem(conf);
      if (problem == null) {
        process.install(open);
        open.used();
      } else {
        LOG.warn("Faro is off, all blocks come as without it: {}", problem);
        process.stop();
      }
    }
    state = State.SETTLED;
  }

  @Override
  public void shutdown() {
    if (process != null) {
      process.stop();
    }
  }
}
