package io.faro.spark.fetch;

import com.codahale.metrics.MetricSet;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.BlockPushingListener;
import org.apache.spark.network.shuffle.BlockStoreClient;
import org.apache.spark.network.shuffle.DownloadFileManager;
import org.apache.spark.network.shuffle.MergeFinalizerListener;
import org.apache.spark.network.shuffle.MergedBlocksMetaListener;
import org.apache.spark.network.shuffle.checksum.Cause;

/** Spark's client: records what it is asked. */
final class FakeSpark extends BlockStoreClient {
  final List<String> fetched = new ArrayList<>();
  final List<String> calls = new ArrayList<>();
  int requests;
  int closed;
  DownloadFileManager files;
  /** Listener of the last request. */
  BlockFetchingListener listener;
  RuntimeException fails;

  /** The methods of the base class that a client may be asked, each with arguments that say nothing. */
  static List<Method> surface() {
    List<Method> methods = new ArrayList<>();
    for (Method method : BlockStoreClient.class.getDeclaredMethods()) {
      int modifiers = method.getModifiers();
      if (java.lang.reflect.Modifier.isPublic(modifiers) && !method.isSynthetic()) {
        methods.add(method);
      }
    }
    return methods;
  }

  static Object call(BlockStoreClient client, Method method) throws Throwable {
    Object[] arguments = new Object[method.getParameterCount()];
    for (int i = 0; i < arguments.length; i++) {
      Class<?> type = method.getParameterTypes()[i];
      arguments[i] = type == int.class ? (Object) 0 : type == long.class ? (Object) 0L
          : type == String[].class ? new String[] {"rdd_1_2"} : type == String.class ? "" : null;
    }
    try {
      return method.invoke(client, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  @Override
  public void fetchBlocks(String host, int port, String execId, String[] blockIds, BlockFetchingListener listener,
      DownloadFileManager downloadFileManager) {
    calls.add("fetchBlocks");
    requests++;
    files = downloadFileManager;
    this.listener = listener;
    if (fails != null) {
      throw fails;
    }
    fetched.addAll(Arrays.asList(blockIds));
  }

  @Override
  public Cause diagnoseCorruption(String host, int port, String execId, int shuffleId, long mapId, int reduceId,
      long checksum, String algorithm) {
    calls.add("diagnoseCorruption");
    return Cause.DISK_ISSUE;
  }

  @Override
  public MetricSet shuffleMetrics() {
    calls.add("shuffleMetrics");
    return Collections::emptyMap;
  }

  @Override
  public void setAppAttemptId(String appAttemptId) {
    calls.add("setAppAttemptId");
  }

  @Override
  public String getAppAttemptId() {
    calls.add("getAppAttemptId");
    return "2";
  }

  @Override
  public void getHostLocalDirs(String host, int port, String[] execIds,
      CompletableFuture<Map<String, String[]>> dirs) {
    calls.add("getHostLocalDirs");
  }

  @Override
  public void pushBlocks(String host, int port, String[] blockIds, ManagedBuffer[] buffers,
      BlockPushingListener listener) {
    calls.add("pushBlocks");
  }

  @Override
  public void finalizeShuffleMerge(String host, int port, int shuffleId, int shuffleMergeId,
      MergeFinalizerListener listener) {
    calls.add("finalizeShuffleMerge");
  }

  @Override
  public void getMergedBlockMeta(String host, int port, int shuffleId, int shuffleMergeId, int reduceId,
      MergedBlocksMetaListener listener) {
    calls.add("getMergedBlockMeta");
  }

  @Override
  public boolean removeShuffleMerge(String host, int port, int shuffleId, int shuffleMergeId) {
    calls.add("removeShuffleMerge");
    return true;
  }

  @Override
  public void close() {
    closed++;
  }
}
