package io.faro.spark;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.spark.conf.ChannelSecurity;
import java.util.Collections;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/** Tests which applications start with security=required. */
class RequiredStartTest {
  private static SparkConf required() {
    return new SparkConf(false).set("spark.faro.security", "required");
  }

  @Test
  void settingsThatSendInTheClearDoNotStart() {
    for (String[] setting : new String[][] {
        {"spark.faro.enabled", "false"}, {"spark.shuffle.push.enabled", "true"}}) {
      SparkConf conf = required().set(setting[0], setting[1]);
      String message = assertThrows(IllegalArgumentException.class,
          () -> new FaroProcess(conf, true, Collections.emptyList(), () -> null, id -> false)).getMessage();
      assertTrue(message.startsWith(setting[0]) && message.contains("spark.faro.security=required"), message);
    }
    assertThrows(IllegalArgumentException.class, () -> new FaroProcess(
        required(), true, Collections.singletonList("x=y"), () -> null, id -> false));
  }

  @Test
  void inLocalModeNoBlockTravels() {
    for (String master : new String[] {"local", "local[4]", "local[*, 3]"}) {
      SparkConf local = required().set("spark.master", master).set("spark.faro.enabled", "false");
      assertTrue(new FaroProcess(local, true, Collections.emptyList(), () -> null, id -> false).isOff(), master);
      new FaroProcess(local, true, Collections.singletonList("x=y"), () -> null, id -> false);
    }
    for (String master : new String[] {"local-cluster[2,1,1024]", "yarn", "spark://local[1]:7077"}) {
      SparkConf cluster = required().set("spark.master", master);
      assertTrue(ChannelSecurity.of(cluster).forbidsSparksFetch, master);
    }
  }
}
