package io.faro.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Faro;
import io.faro.spark.conf.FaroConf;
import io.faro.spark.conf.FaroKeys;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Several versions of Faro: in one application, and on one class path. */
class VersionsTest {
  @TempDir
  Path temp;

  private static FaroProcess process(SparkConf conf, boolean isDriver) {
    return new FaroProcess(conf, isDriver, Collections.emptyList(), () -> null, id -> false);
  }

  private static SparkConf conf(String... pairs) {
    SparkConf conf = new SparkConf(false).set("spark.app.id", "app-1").set("spark.master", "spark://x:7077");
    for (int i = 0; i < pairs.length; i += 2) {
      conf.set(pairs[i], pairs[i + 1]);
    }
    return conf;
  }

  @Test
  void theDriverTellsItsVersion() {
    SparkConf conf = conf();
    process(conf, true).stop();
    assertEquals(Faro.version(), conf.get(FaroKeys.DRIVER_VERSION));
    assertTrue(FaroConf.unknownKeys(conf).isEmpty());
    FaroProcess executor = process(conf, false);
    assertTrue(executor.mayRun);
    executor.stop();
  }

  @Test
  void anExecutorOfAnotherVersionIsOff() {
    for (SparkConf conf : new SparkConf[] {conf(FaroKeys.DRIVER_VERSION, "9.9.9"), conf()}) {
      FaroProcess executor = process(conf, false);
      assertFalse(executor.mayRun);
      assertNull(executor.awaitOpen());
      executor.stop();
    }
  }

  @Test
  void withFallbackNeverItsTasksFailAndNameBothVersions() {
    FaroProcess executor = process(conf(FaroKeys.DRIVER_VERSION, "9.9.9", "spark.faro.fallback", "never"), false);
    String message = assertThrows(IllegalStateException.class, executor::awaitOpen).getMessage();
    assertTrue(message.contains("9.9.9") && message.contains(Faro.version()), message);
    executor.stop();
  }

  @Test
  void anOlderDriverTellsNone() {
    assertNull(JarVersions.refusal("1.2.3", "1.2.3"));
    assertTrue(JarVersions.refusal("", "1.2.3").contains("an older version"));
  }

  @Test
  void jarsOfOneVersionAreInNoOnesWayAndOthersAreNamed() throws Exception {
    URL first = jar("first", "1.2.3");
    URL second = jar("second", "1.2.3");
    URL other = jar("other", "1.2.4");
    try (URLClassLoader same = new URLClassLoader(new URL[] {first, second}, null);
        URLClassLoader mixed = new URLClassLoader(new URL[] {first, other}, null)) {
      assertNull(JarVersions.ofSeveralVersions(same));
      String line = JarVersions.ofSeveralVersions(mixed);
      assertTrue(line.contains("1.2.3 in ") && line.contains("1.2.4 in ") && line.contains("other"), line);
    }
  }

  private URL jar(String name, String version) throws Exception {
    Path directory = Files.createDirectories(temp.resolve(name).resolve("META-INF"));
    Files.write(directory.resolve("faro.properties"), Collections.singletonList("version=" + version));
    return temp.resolve(name).toUri().toURL();
  }
}
