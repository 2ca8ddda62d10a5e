package io.faro.spark;

import java.util.function.Function;
import org.apache.spark.SparkConf;

/** One configuration key. What it says of itself is also what docs/configuration.md says of it. */
final class Key<T> {
  final String name;
  final String type;
  final String defaultText;
  final String allowed;
  final String doc;
  private final Function<String, T> parser;

  /** {@code parser} gives {@code null}, or throws, for a value that is not allowed. */
  Key(String name, String type, String defaultText, String allowed, String doc, Function<String, T> parser) {
    this.name = name;
    this.type = type;
    this.defaultText = defaultText;
    this.allowed = allowed;
    this.doc = doc;
    this.parser = parser;
  }

  /** The value, or an exception with the key, the value and what is allowed. */
  T of(SparkConf conf) {
    String text = conf.get(name, defaultText).trim();
    T value = null;
    RuntimeException cause = null;
    try {
      value = parser.apply(text);
    } catch (RuntimeException e) {
      cause = e;
    }
    if (value == null) {
      throw refused(name, text, allowed, cause);
    }
    return value;
  }

  static IllegalArgumentException refused(String key, String value, String allowed, Throwable cause) {
    return new IllegalArgumentException(key + " is '" + value + "', allowed: " + allowed, cause);
  }
}
