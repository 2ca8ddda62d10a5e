package io.faro.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;

/** Row blocks through Spark's own reader: its fetch iterator, its check for corruption, its serializer. */
class SparksReaderTest {
  private static SparkSession spark(String... settings) {
    SparkSession.Builder builder = SparkSession.builder().master("local[2]").appName("faro")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "localhost")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.shuffle.manager", PackingManager.class.getName())
        .config("spark.stage.maxConsecutiveAttempts", "1");
    for (int i = 0; i < settings.length; i += 2) {
      builder.config(settings[i], settings[i + 1]);
    }
    return builder.getOrCreate();
  }

  private static void assertRight(SparkSession spark) {
    List<String> stock = CodecTrial.answers(spark, null);
    long before = PackingManager.BLOCKS.get();
    assertEquals(stock, CodecTrial.answers(spark, "rows"));
    assertTrue(PackingManager.BLOCKS.get() > before + 30, PackingManager.BLOCKS + " row blocks, " + before + " before");
  }

  private static String failure(SparkSession spark, String pack) {
    return assertThrows(Exception.class, () -> CodecTrial.answers(spark, pack)).toString();
  }

  @Test
  void rowsComeRightWithTheInstalledCodec() {
    try (SparkSession spark = spark()) {
      assertRight(spark);
      String damaged = failure(spark, "damaged");
      assertTrue(damaged.contains("Stream is corrupted: block 0 at byte 0, method 0x"), damaged);
      assertTrue(damaged.contains("its checksum is"), damaged);
      // It goes on with the next job.
      assertRight(spark);
    }
  }

  @Test
  void rowsComeRightWithTheSetting() {
    try (SparkSession spark =
        spark("spark.io.compression.codec", RowsCodec.class.getName(), PackingManager.INSTALL, "false")) {
      assertRight(spark);
    }
  }

  @Test
  void rowsComeRightFromStreamsOfZstd() {
    try (SparkSession spark = spark("spark.io.compression.codec", "zstd")) {
      assertRight(spark);
      String damaged = failure(spark, "damaged");
      assertTrue(damaged.contains("Stream is corrupted: block 0 at byte 0, method 0x"), damaged);
    }
  }

  /** An application without the codec, as one with an older Faro: never wrong rows. */
  @Test
  void sparksOwnCodecRefusesRowBlocks() {
    try (SparkSession spark = spark(PackingManager.INSTALL, "false")) {
      String refused = failure(spark, "rows");
      assertTrue(refused.contains("Stream is corrupted"), refused);
    }
  }

  @Test
  void whatIsNeitherLz4NorZstdStaysAsItIs() {
    SparkConf conf = new SparkConf(false).set("spark.io.compression.codec", "snappy");
    SerializerManager manager = new SerializerManager(new JavaSerializer(conf), conf);
    assertEquals(SparkCodec.Outcome.OTHER_CODEC, SparkCodec.install(manager, conf));
    assertEquals(SparkCodec.Outcome.NO_ACCESS,
        SparkCodec.install(manager, conf.clone().set("spark.io.compression.codec", "no.such.Codec")));
    for (String known : new String[] {null, "lz4", "org.apache.spark.io.LZ4CompressionCodec", "zstd",
        "org.apache.spark.io.ZStdCompressionCodec"}) {
      SparkConf with = known == null ? conf.clone().remove("spark.io.compression.codec")
          : conf.clone().set("spark.io.compression.codec", known);
      SerializerManager of = new SerializerManager(new JavaSerializer(with), with);
      assertEquals(SparkCodec.Outcome.INSTALLED, SparkCodec.install(of, with));
      assertEquals(SparkCodec.Outcome.THERE_ALREADY, SparkCodec.install(of, with));
    }
  }
}
