package io.faro.e2e;

import java.util.Map;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/**
 * Executors of one host name whose local directories the others do not see, as in pods with {@code hostNetwork}: what
 * an executor says of its directories is right for itself only.
 */
public final class HiddenDirectories implements SparkPlugin {
    @Override
    public DriverPlugin driverPlugin() {
        return null;
    }

    @Override
    public ExecutorPlugin executorPlugin() {
        return new ExecutorPlugin() {
            @Override
            public void init(PluginContext context, Map<String, String> fromDriver) {
                String[] told = SparkEnv.get().blockManager().getLocalDiskDirs();
                for (int i = 0; i < told.length; i++) {
                    told[i] = "/pod-of-" + context.executorID() + told[i];
                }
            }
        };
    }
}
