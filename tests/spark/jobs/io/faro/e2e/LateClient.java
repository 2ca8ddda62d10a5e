package io.faro.e2e;

import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.SparkPlugin;

/** A plug-in that puts a block client of its own in front of Faro's, as soon as that is there. */
public final class LateClient implements SparkPlugin {
    @Override
    public DriverPlugin driverPlugin() {
        return null;
    }

    @Override
    public ExecutorPlugin executorPlugin() {
        return new ExecutorPlugin() {
            @Override
            public synchronized void onTaskStart() {
                Object client = SparkEnv.get().blockManager().blockStoreClient();
                if (client.getClass().getName().equals("io.faro.spark.fetch.FaroBlockStoreClient")) {
                    OtherClient.replace();
                }
            }
        };
    }
}
