package io.faro.spark;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;

/**
 * The limit of the arena when {@code spark.faro.memory.limit} is not set: what the tasks of a join may have in flight,
 * in the bounds of what the executor's container allows.
 *
 * <p>The limit is an upper bound, which the arena reaches only when the job needs it. It counts against
 * {@code spark.executor.memoryOverhead}, which the JVM needs too; a container that exceeds it is killed, and an arena
 * that is short of memory only costs copies. So the default never takes more than half of the overhead, except that
 * it is never less than {@link #LEAST}.
 */
final class MemoryDefault {
  static final long LEAST = 256L << 20;
  static final long MOST = 2L << 30;
  /** Two inputs, and a quarter more: blocks that were read in part, and the cache of chunks that peers ask for. */
  private static final double INPUTS = 2 * 1.25;
  /** The limit is a multiple of this, the size of a slab. */
  private static final long STEP = 16L << 20;
  private static final Pattern CORES = Pattern.compile(" --cores[ =](\\d{1,6})\\b");

  private MemoryDefault() {}

  static long bytes(SparkConf conf, int cores) {
    int tasks = Math.max(1, cores / Math.max(1, conf.getInt("spark.task.cpus", 1)));
    double inFlight = (double) mib(conf, "spark.reducer.maxSizeInFlight", "48m") * tasks * INPUTS;
    long allowed = Math.min(MOST, overhead(conf) / 2);
    return Math.max(LEAST, Math.min((long) inFlight, allowed) / STEP * STEP);
  }

  /**
   * Cores of this executor. Spark's cluster managers start executors with {@code --cores N}; {@code command} is this
   * process's command line. A standalone executor gets all cores of its worker unless {@code spark.executor.cores} is
   * set.
   */
  static int cores(SparkConf conf, String command) {
    Matcher given = CORES.matcher(command);
    return given.find() ? Integer.parseInt(given.group(1))
        : conf.getInt("spark.executor.cores", Runtime.getRuntime().availableProcessors());
  }

  /** As YARN and Kubernetes compute it for programs of the JVM, in bytes. */
  private static long overhead(SparkConf conf) {
    if (conf.contains("spark.executor.memoryOverhead")) {
      return mib(conf, "spark.executor.memoryOverhead", "0");
    }
    double factor = conf.getDouble("spark.executor.memoryOverheadFactor", 0.1);
    long share = (long) (mib(conf, "spark.executor.memory", "1g") * factor);
    return Math.max(share, mib(conf, "spark.executor.minMemoryOverhead", "384m"));
  }

  /** A size whose unit is MiB if it has none, in bytes. */
  private static long mib(SparkConf conf, String key, String otherwise) {
    return conf.getSizeAsMb(key, otherwise) << 20;
  }
}
