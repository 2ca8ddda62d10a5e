package io.faro.spark.conf;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;
import org.apache.spark.network.util.ByteUnit;

/**
 * The limit of the arena when {@code spark.faro.memory.limit} is not set: what the tasks of a join may have in flight,
 * in the bounds of what the executor's container allows.
 *
 * <p>The limit is an upper bound, which the arena reaches only when the job needs it. It counts against
 * {@code spark.executor.memoryOverhead}, which the JVM needs too; a container that exceeds it is killed, and an arena
 * that is short of memory only costs copies. All native memory of Faro is within {@link #ALL} times the limit and some
 * memory of each task (docs/user/memory.md). So the default is a third of the overhead, which leaves half of it to the
 * JVM;
 * except that it is never less than {@link #LEAST}.
 */
final class MemoryDefault {
  static final long LEAST = 64L << 20;
  static final long MOST = 2L << 30;
  /** Two inputs, and a quarter more: blocks that were read in part, and the cache of chunks that peers ask for. */
  private static final double INPUTS = 2 * 1.25;
  /** Arena, requests of peers, and what is known of map outputs, by the limit: 1 + 1/4 + 1/8 + 1/8. */
  private static final double ALL = 1.5;
  /** Share of the overhead, for {@link #ALL}. */
  private static final double SHARE = 0.5;
  /** The limit is a multiple of this, the size of a slab. */
  private static final long STEP = 16L << 20;
  private static final Pattern CORES = Pattern.compile(" --cores[ =](\\d{1,6})\\b");

  private MemoryDefault() {}

  static long bytes(SparkConf conf, int cores) {
    double inFlight = (double) mib(conf, "spark.reducer.maxSizeInFlight", 48) * tasks(conf, cores) * INPUTS;
    long allowed = Math.min(MOST, (long) (overhead(conf) * SHARE / ALL));
    return Math.max(LEAST, Math.min((long) inFlight, allowed) / STEP * STEP);
  }

  /** Tasks at a time. A task has a fraction of a core from Spark 4.3 on. */
  static int tasks(SparkConf conf, int cores) {
    double cpus = SparkSettings.number(conf, "spark.task.cpus", 1);
    return (int) Math.max(1, cores / (cpus > 0 ? cpus : 1));
  }

  /**
   * Cores of this executor. Spark's cluster managers start executors with {@code --cores N}; {@code command} is this
   * process's command line. A standalone executor gets all cores of its worker unless {@code spark.executor.cores} is
   * set.
   */
  static int cores(SparkConf conf, String command) {
    Matcher given = CORES.matcher(command);
    return given.find() ? Integer.parseInt(given.group(1))
        : Math.max(1, conf.contains("spark.executor.cores")
            ? SparkSettings.count(conf, "spark.executor.cores", 1) : Runtime.getRuntime().availableProcessors());
  }

  /** Computes the overhead in bytes, as YARN and Kubernetes do for programs of the JVM. */
  private static long overhead(SparkConf conf) {
    if (conf.contains("spark.executor.memoryOverhead")) {
      return mib(conf, "spark.executor.memoryOverhead", 0);
    }
    double factor = SparkSettings.number(conf, "spark.executor.memoryOverheadFactor", 0.1);
    long share = (long) (mib(conf, "spark.executor.memory", 1024) * factor);
    return Math.max(share, mib(conf, "spark.executor.minMemoryOverhead", 384));
  }

  /** A size whose unit is MiB if it has none, in bytes. */
  private static long mib(SparkConf conf, String key, int otherwise) {
    return SparkSettings.bytes(conf, key, ByteUnit.MiB, (long) otherwise << 20);
  }
}
