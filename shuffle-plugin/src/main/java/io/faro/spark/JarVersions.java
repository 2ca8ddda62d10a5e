package io.faro.spark;

import io.faro.Nullable;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;

/**
 * Versions of Faro's jar. An executor whose jar has another version than the driver's does not take part.
 *
 * <p>There may be several jars on the class path. Two copies of one version are in no one's way, and Spark 3 needs them
 * (the jar is in {@code --jars} and on two class paths there). Of two versions the first is used, and which one is the
 * first is an accident of a directory's order.
 */
final class JarVersions {
  /** The file with the version, which a jar has once. */
  private static final String VERSION = "META-INF/faro.properties";

  private JarVersions() {}

  /** The jars, each with its version; null if there is one version, or none is found. */
  @Nullable static String ofSeveralVersions(ClassLoader loader) {
    Map<String, String> versions = new LinkedHashMap<>();
    try {
      for (URL url : Collections.list(loader.getResources(VERSION))) {
        versions.put(url.toString().replace("!/" + VERSION, "").replace("jar:file:", ""), versionIn(url));
      }
    } catch (IOException e) {
      return null;
    }
    if (new TreeSet<>(versions.values()).size() < 2) {
      return null;
    }
    List<String> copies = new ArrayList<>();
    versions.forEach((place, version) -> copies.add(version + " in " + place));
    return String.join(", ", copies);
  }

  private static String versionIn(URL url) throws IOException {
    Properties properties = new Properties();
    try (InputStream in = url.openStream()) {
      properties.load(in);
    }
    return properties.getProperty("version", "unknown");
  }

  /** Returns why this executor's version of Faro is refused; null if it is the driver's version. */
  @Nullable static String refusal(String drivers, String own) {
    if (drivers.equals(own)) {
      return null;
    }
    return "its jar has Faro " + own + ", the driver's has "
        + (drivers.isEmpty() ? "an older version, which does not tell its number" : drivers)
        + "; put one version of the jar on the class paths of the driver and of all executors";
  }
}
