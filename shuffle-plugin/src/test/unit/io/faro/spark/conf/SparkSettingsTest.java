package io.faro.spark.conf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.spark.SparkConf;
import org.apache.spark.network.util.ByteUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Values are Spark's, whatever their spelling, and none ends an application. */
class SparkSettingsTest {
  private static SparkConf with(String key, String value) {
    return new SparkConf(false).set(key, value);
  }

  @ParameterizedTest
  @CsvSource({"true, true", "TRUE, true", "' True ', true", "false, false", "False, false", "yes, true", "'', true"})
  void switches(String text, boolean value) {
    assertEquals(value, SparkSettings.flag(with("spark.shuffle.compress", text), "spark.shuffle.compress", true));
  }

  @ParameterizedTest
  @CsvSource({"2, 2", "' 3 ', 3", "0.5, 1", "many, 1", "99999999999, 1", "'', 1"})
  void wholeNumbersOfAnEntryOfWholeNumbers(String text, int value) {
    // Spark 3.5 has no fractions here, and says so itself.
    assertEquals(value, SparkSettings.count(with("spark.task.cpus", text), "spark.task.cpus", 1));
  }

  /** As from Spark 4.3 on, and for a setting that this Spark does not know. */
  @ParameterizedTest
  @CsvSource({"0.5, 0.5, 0", "2.9, 2.9, 2", "1e99, 1e99, 2147483647", "NaN, 7, 7", "half, 7, 7"})
  void fractions(String text, double value, int whole) {
    SparkConf conf = with("spark.unknown.number", text);
    assertEquals(value, SparkSettings.number(conf, "spark.unknown.number", 7));
    assertEquals(whole, SparkSettings.count(conf, "spark.unknown.number", 7));
  }

  @ParameterizedTest
  @CsvSource({"24, 25165824", "24m, 25165824", "' 1G ', 1073741824", "512k, 0", "big, 5", "-1, -1048576"})
  void sizesInTheUnitOfSparksEntry(String text, long bytes) {
    assertEquals(bytes, SparkSettings.bytes(
        with("spark.reducer.maxSizeInFlight", text), "spark.reducer.maxSizeInFlight", ByteUnit.MiB, 5));
  }

  @Test
  void sizesDoNotOverflow() {
    SparkConf conf = with("spark.unknown.size", "9223372036854775807");
    assertEquals(Long.MAX_VALUE >> 20 << 20, SparkSettings.bytes(conf, "spark.unknown.size", ByteUnit.MiB, 5));
    assertEquals(Long.MAX_VALUE, SparkSettings.bytes(conf, "spark.unknown.size", ByteUnit.BYTE, 5));
  }

  @Test
  void withoutAValueItIsSparksDefault() {
    SparkConf conf = new SparkConf(false);
    assertEquals(48L << 20, SparkSettings.bytes(conf, "spark.reducer.maxSizeInFlight", ByteUnit.MiB, 5));
    assertEquals("lz4", SparkSettings.text(conf, "spark.io.compression.codec", "none"));
    assertEquals(5, SparkSettings.bytes(conf, "spark.executor.memoryOverhead", ByteUnit.MiB, 5));
    assertEquals("none", SparkSettings.text(conf, "spark.unknown", "none"));
  }

  @Test
  void sparksSpellingAndReferences() {
    assertEquals("CRC32", SparkSettings.text(
        with("spark.shuffle.checksum.algorithm", "crc32"), "spark.shuffle.checksum.algorithm", ""));
    SparkConf conf = with("spark.io.encryption.enabled", "${spark.mine}").set("spark.mine", "true");
    assertTrue(SparkSettings.flag(conf, "spark.io.encryption.enabled", false));
  }

  @Test
  void theFirstTimeIsOnePerThing() {
    OncePerKey logged = new OncePerKey();
    assertTrue(logged.of("a"));
    assertTrue(logged.of("b"));
    assertFalse(logged.of("a"));
  }
}
