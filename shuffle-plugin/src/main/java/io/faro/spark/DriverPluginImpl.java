package io.faro.spark;

import io.faro.Nullable;
import io.faro.spark.conf.FaroKeys;
import io.faro.spark.conf.Key;
import io.faro.spark.conf.UnsupportedSettings;
import io.faro.spark.ui.FaroUi;
import java.util.Collections;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The driver's part of {@link FaroPlugin}: checks the settings, and opens the tab. */
final class DriverPluginImpl implements DriverPlugin {
  private static final Logger LOG = LoggerFactory.getLogger(FaroPlugin.class);

  private SparkContext context;
  /** Null if Faro's own manager does all this. */
  @Nullable private FaroProcess process;
  /** Null if Faro is off, or Spark refused it. */
  @Nullable private FaroUi ui;

  /** Throws if a setting of Faro's has a value that is not allowed: the application does not start. */
  @Override
  public Map<String, String> init(SparkContext sparkContext, PluginContext plugin) {
    SparkConf conf = sparkContext.conf();
    if (OtherManager.isFaros(conf)) {
      LOG.info("Faro is the shuffle manager: {} in spark.plugins does nothing more", FaroPlugin.class.getName());
      return Collections.emptyMap();
    }
    context = sparkContext;
    process = new FaroProcess(
        conf, true, UnsupportedSettings.behindAnotherManager(conf), OtherManager::files,
        SessionToggle::leavesTask);
    for (Key<?> key : new Key<?>[] {FaroKeys.READER, FaroKeys.WRITER}) {
      if (conf.contains(key.name)) {
        LOG.info("Faro ignores {}: {} has its own", key.name, OtherManager.setting(conf));
      }
    }
    return Collections.emptyMap();
  }

  /** Called once the shuffle manager and the UI exist, before the first job. */
  @Override
  public void registerMetrics(String appId, PluginContext plugin) {
    if (process == null || process.isOff()) {
      return;
    }
    String problem = OtherManager.problem(context.conf());
    if (problem == null) {
      ui = FaroUi.open(context);
    } else {
      process.unlessNever(problem, null);
      LOG.warn("Faro is off, all blocks come as without it: {}", problem);
    }
  }

  @Override
  public void shutdown() {
    if (ui != null) {
      ui.stop();
    }
    if (process != null) {
      process.stop();
    }
  }
}
