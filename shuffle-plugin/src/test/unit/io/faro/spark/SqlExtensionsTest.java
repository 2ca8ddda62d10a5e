package io.faro.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class SqlExtensionsTest {
  private static String after(String own) {
    SparkConf conf = new SparkConf(false);
    if (own != null) {
      conf.set(SqlExtensions.SETTING, own);
    }
    SqlExtensions.configure(conf);
    SqlExtensions.configure(conf);
    return conf.get(SqlExtensions.SETTING);
  }

  @Test
  void farosExtensionIsBehindTheUsersAndThereOnce() {
    String faro = FaroSqlExtension.class.getName();
    assertEquals(faro, after(null));
    assertEquals("org.example.One,org.example.Two," + faro, after("org.example.One,org.example.Two"));
    assertEquals(faro + ", org.example.One", after(faro + ", org.example.One"));
  }
}
