package io.faro.spark.conf;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The limit of the arena that nobody has set. */
class MemoryDefaultTest {
  /** docs/user/memory.md shows the first of these. */
  @ParameterizedTest
  @CsvSource({
      "1, 1g, , , 112",
      "2, 1g, , , 128",
      "1, 4g, , , 112",
      "4, 16g, , , 480",
      "8, 16g, , , 544",
      "8, 32g, , , 960",
      "16, 64g, , , 1920",
      "32, 64g, , , 2048",
      "64, 128g, , , 2048",
      // The overhead bounds it: the least one of Spark, and what is set.
      "8, 1g, , , 128",
      "8, 1g, 4g, , 960",
      "32, 64g, 1g, , 336",
      "32, 64g, 300, , 96",
      "32, 64g, 100, , 64",
      // Less or more in flight.
      "8, 32g, , 24m, 480",
      "8, 32g, , 96, 1088",
      "1, 4g, , 1m, 64"})
  void followsCoresAndBlocksInFlightWithinTheOverhead(int cores, String memory, String overhead, String inFlight,
      long mib) {
    SparkConf conf = new SparkConf(false).set("spark.executor.memory", memory);
    if (overhead != null) {
      conf.set("spark.executor.memoryOverhead", overhead);
    }
    if (inFlight != null) {
      conf.set("spark.reducer.maxSizeInFlight", inFlight);
    }
    assertEquals(mib << 20, MemoryDefault.bytes(conf, cores));
  }

  @Test
  void countsTasksAndTheOverheadsFactor() {
    SparkConf conf = new SparkConf(false).set("spark.executor.memory", "16g");
    conf.set("spark.executor.memoryOverheadFactor", "0.4");
    assertEquals(960L << 20, MemoryDefault.bytes(conf, 8));
    conf.set("spark.task.cpus", "2");
    assertEquals(480L << 20, MemoryDefault.bytes(conf, 8));
    conf.set("spark.task.cpus", "16");
    assertEquals(112L << 20, MemoryDefault.bytes(conf, 8));
  }

  /** Spark 4.3 has tasks of half a core; older ones refuse the value themselves. */
  @ParameterizedTest
  @CsvSource({"0.5, 4", "0.3, 4", "1.5, 4", "0, 4", "-1, 4", "two, 4", "2, 2", "8, 1"})
  void cpusOfATaskThatAreNoWholeNumberDoNotEndTheApplication(String cpus, int tasks) {
    assertEquals(tasks, MemoryDefault.tasks(new SparkConf(false).set("spark.task.cpus", cpus), 4));
  }

  @Test
  void coresAreThoseThatTheExecutorWasStartedWith() {
    SparkConf conf = new SparkConf(false);
    String command = "org.apache.spark.executor.CoarseGrainedExecutorBackend --driver-url x --cores 12 --app-id y";
    assertEquals(12, MemoryDefault.cores(conf, command));
    assertEquals(Runtime.getRuntime().availableProcessors(), MemoryDefault.cores(conf, "other --cores-of 9"));
    conf.set("spark.executor.cores", "5");
    assertEquals(5, MemoryDefault.cores(conf, ""));
    assertEquals(12, MemoryDefault.cores(conf, command));
  }

  @Test
  void theEndpointGetsIt() {
    SparkConf conf = new SparkConf(false).set("spark.executor.memory", "64g").set("spark.executor.cores", "8");
    FaroConf faro = new FaroConf(conf);
    assertEquals(960L << 20, faro.memoryLimit);
    assertEquals(Long.toString(960L << 20), faro.settings.get("memory.limit"));
    conf.set("spark.faro.memory.limit", "64m");
    assertEquals(64L << 20, new FaroConf(conf).memoryLimit);
  }
}
