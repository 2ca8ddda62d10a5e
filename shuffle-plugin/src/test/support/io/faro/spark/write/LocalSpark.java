package io.faro.spark.write;

import io.faro.FaroException;
import io.faro.TestLibrary;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.storage.BlockManager;
import scala.Option;

/**
 * Spark in this process: a context, and for each codec a block manager with two local directories. A test chooses by
 * {@link #use} which settings and which block manager the process has.
 */
final class LocalSpark implements AutoCloseable {
  private static final String CODEC = "spark.io.compression.codec";
  private static final String COMPRESS = "spark.shuffle.compress";

  final SparkContext context;
  final Path root;
  private final SparkEnv started;
  private final Map<String, BlockManager> managers = new HashMap<>();

  LocalSpark() throws IOException, FaroException {
    TestLibrary.load();
    root = Files.createTempDirectory("faro-write");
    SparkConf conf = new SparkConf(false)
        .setMaster("local[1]")
        .setAppName("faro")
        .set("spark.ui.enabled", "false")
        .set("spark.driver.host", "localhost")
        .set("spark.driver.bindAddress", "127.0.0.1")
        .set("spark.cleaner.referenceTracking", "false");
    context = new SparkContext(conf);
    started = SparkEnv.get();
  }

  /** Settings; {@code codec}: lz4, zstd or none. */
  SparkConf conf(String codec) {
    SparkConf conf = context.getConf();
    conf.set("spark.local.dir", directory(codec, 0) + "," + directory(codec, 1));
    return codec.equals("none") ? conf.set(COMPRESS, "false") : conf.set(CODEC, codec);
  }

  private Path directory(String codec, int number) {
    return root.resolve(codec).resolve(Integer.toString(number));
  }

  private static String codec(SparkConf conf) {
    return conf.getBoolean(COMPRESS, true) ? conf.get(CODEC) : "none";
  }

  /** From now on the process has these settings: {@link #conf} with changes that no block manager looks at. */
  void use(SparkConf conf) {
    BlockManager blocks = managers.computeIfAbsent(codec(conf), codec -> blockManager(conf(codec)));
    SparkEnv.set(new SparkEnv(started.executorId(), started.rpcEnv(), started.serializer(),
        started.closureSerializer(), blocks.serializerManager(), started.mapOutputTracker(), started.shuffleManager(),
        started.broadcastManager(), blocks, started.securityManager(), started.metricsSystem(),
        started.memoryManager(), started.outputCommitCoordinator(), conf));
  }

  private BlockManager blockManager(SparkConf conf) {
    BlockManager first = started.blockManager();
    BlockManager manager = new BlockManager(started.executorId(), started.rpcEnv(), first.master(),
        new SerializerManager(new JavaSerializer(conf), conf), conf, started.memoryManager(),
        started.mapOutputTracker(), started.shuffleManager(), first.blockTransferService(),
        started.securityManager(), Option.empty());
    manager.shuffleServerId_$eq(first.shuffleServerId());
    return manager;
  }

  /** The names of all files in the local directories that {@code conf} names. */
  TreeSet<String> files(SparkConf conf) {
    TreeSet<String> names = new TreeSet<>();
    for (File directory : localDirectories(conf)) {
      names.addAll(paths(directory.toPath()).stream().filter(Files::isRegularFile)
          .map(path -> path.getFileName().toString()).collect(Collectors.toList()));
    }
    return names;
  }

  /** Those of the block manager of {@code conf}. */
  File[] localDirectories(SparkConf conf) {
    return managers.get(codec(conf)).diskBlockManager().localDirs();
  }

  private static List<Path> paths(Path directory) {
    try (Stream<Path> all = Files.walk(directory)) {
      return all.sorted(Comparator.reverseOrder()).collect(Collectors.toList());
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  public void close() throws IOException {
    SparkEnv.set(started);
    managers.values().forEach(manager -> manager.diskBlockManager().stop());
    context.stop();
    for (Path path : paths(root)) {
      Files.delete(path);
    }
  }
}
