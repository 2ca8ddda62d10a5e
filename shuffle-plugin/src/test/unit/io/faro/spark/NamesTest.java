package io.faro.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.faro.rows.RowCodec;
import io.faro.spark.conf.FaroKeys;
import io.faro.spark.conf.UnsupportedSettings;
import io.faro.spark.service.FaroShuffleDataIO;
import java.util.Collections;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/** Names of classes that users set, and that packages below those classes have as text. */
class NamesTest {
  @Test
  void theManagers() {
    assertEquals(FaroShuffleManager.class.getName(), FaroKeys.MANAGER);
  }

  @Test
  void theDiskIo() {
    SparkConf conf = new SparkConf(false).set(UnsupportedSettings.IO_PLUGIN, FaroShuffleDataIO.class.getName());
    assertEquals(Collections.emptyList(), UnsupportedSettings.of(conf));
  }

  @Test
  void theCodecs() {
    assertEquals(RowCodec.LZ4, RowCodec.named(RowsCodec.class.getName()));
    assertEquals(RowCodec.ZSTD, RowCodec.named(ZstdRowsCodec.class.getName()));
  }
}
