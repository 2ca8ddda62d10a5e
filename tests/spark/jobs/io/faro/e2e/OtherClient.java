package io.faro.e2e;

import java.io.IOException;
import java.lang.reflect.Field;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.BlockStoreClient;
import org.apache.spark.network.shuffle.DownloadFileManager;
import org.apache.spark.storage.BlockManager;

/** A plug-in that puts a block client of its own into Spark's block manager, as Faro does. */
public final class OtherClient implements SparkPlugin {
    @Override
    public DriverPlugin driverPlugin() {
        return null;
    }

    @Override
    public ExecutorPlugin executorPlugin() {
        return new ExecutorPlugin() {
            @Override
            public void init(PluginContext context, Map<String, String> fromDriver) {
                replace();
            }
        };
    }

    /** Puts a client in front of the one that is there. */
    static void replace() {
        try {
            BlockManager blocks = SparkEnv.get().blockManager();
            Field client = BlockManager.class.getDeclaredField("blockStoreClient");
            client.setAccessible(true);
            client.set(blocks, new Client(blocks.blockStoreClient()));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static final class Client extends BlockStoreClient {
        private final BlockStoreClient spark;

        Client(BlockStoreClient spark) {
            this.spark = spark;
        }

        @Override
        protected void checkInit() {}

        @Override
        public void fetchBlocks(String host, int port, String executor, String[] blocks,
                BlockFetchingListener listener, DownloadFileManager files) {
            spark.fetchBlocks(host, port, executor, blocks, listener, files);
        }

        @Override
        public void getHostLocalDirs(String host, int port, String[] executors,
                CompletableFuture<Map<String, String[]>> dirs) {
            spark.getHostLocalDirs(host, port, executors, dirs);
        }

        @Override
        public void close() throws IOException {}
    }
}
