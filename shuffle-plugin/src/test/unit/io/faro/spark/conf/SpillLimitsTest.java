package io.faro.spark.conf;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class SpillLimitsTest {
  @Test
  void sparksSettings() {
    SpillLimits limits = new SpillLimits(new SparkConf(false)
        .set("spark.shuffle.spill.numElementsForceSpillThreshold", "10")
        .set("spark.shuffle.spill.maxSizeInBytesForSpillThreshold", "1k"));
    assertFalse(limits.reached(9, 1023));
    assertTrue(limits.reached(10, 0));
    assertTrue(limits.reached(1, 1024));
  }

  @Test
  void sparksDefaults() {
    SpillLimits limits = new SpillLimits(new SparkConf(false));
    assertFalse(limits.reached(Integer.MAX_VALUE - 1, Long.MAX_VALUE - 1));
    assertTrue(limits.reached(Integer.MAX_VALUE, 0));
  }
}
