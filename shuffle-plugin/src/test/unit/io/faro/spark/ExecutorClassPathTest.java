package io.faro.spark;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class ExecutorClassPathTest {
  private static final File JAR = new File("/jars/shuffle.jar");

  private static boolean isMissing(String master, String version, String classPath) {
    SparkConf conf = new SparkConf(false).set("spark.master", master);
    if (classPath != null) {
      conf.set(ExecutorClassPath.SETTING, classPath);
    }
    return ExecutorClassPath.isMissing(conf, version, JAR);
  }

  @Test
  void sparkThreeNeedsTheJarBeforeItFetchesOthers() {
    for (String master : new String[] {"spark://h:7077", "k8s://https://h", "local-cluster[2,1,1024]"}) {
      assertTrue(isMissing(master, "3.5.9", null), master);
      assertFalse(isMissing(master, "4.0.0", null), master);
    }
    for (String master : new String[] {"yarn", "local", "local[2]"}) {
      assertFalse(isMissing(master, "3.5.9", null), master);
    }
  }

  @Test
  void aClassPathThatMayHaveTheJarIsEnough() {
    for (String path : new String[] {
        "/x/faro-spark.jar", "/a.jar:/b/faro_0.1.jar", "/other/shuffle.jar", "/lib/*", "/lib"}) {
      assertFalse(isMissing("spark://h:7077", "3.4.4", path), path);
    }
    for (String path : new String[] {"", "/a.jar", "/a.jar:/b.jar"}) {
      assertTrue(isMissing("spark://h:7077", "3.4.4", path), path);
    }
  }
}
