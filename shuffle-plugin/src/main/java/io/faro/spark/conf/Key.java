package io.faro.spark.conf;

import io.faro.Nullable;
import java.util.function.Function;
import org.apache.spark.SparkConf;

/** One configuration key; docs/user/configuration.md has the same texts. */
public final class Key<T> {
  /** The key without {@code spark.faro.}: the name of the endpoint's setting. */
  final String setting;
  /** True if the endpoint has this setting. */
  final boolean isEndpoints;
  public final String name;
  final String type;
  /** A text in parentheses says what happens without a value; such a key has no default value. */
  final String defaultText;
  final String allowed;
  final String doc;
  private final Function<String, T> parser;

  /** {@code parser} returns {@code null}, or throws, for a value that is not allowed. */
  Key(String setting, boolean isEndpoints, String type, String defaultText, String allowed, String doc,
      Function<String, T> parser) {
    this.setting = setting;
    this.isEndpoints = isEndpoints;
    this.name = FaroKeys.PREFIX + setting;
    this.type = type;
    this.defaultText = defaultText;
    this.allowed = allowed;
    this.doc = doc;
    this.parser = parser;
  }

  /** The value; null if not set and without default. Throws with the key, the value and what is allowed. */
  @Nullable public T of(SparkConf conf) {
    String text = conf.get(name, defaultText).trim();
    if (text.equals(defaultText) && defaultText.startsWith("(")) {
      return null;
    }
    return parse(text);
  }

  /** The text that stands for the value where none is set. */
  public String defaultValue() {
    return defaultText;
  }

  /** The value that {@code text} stands for; throws as {@link #of} does. */
  public T parse(String text) {
    T value = null;
    RuntimeException cause = null;
    try {
      value = parser.apply(text.trim());
    } catch (RuntimeException e) {
      cause = e;
    }
    if (value == null) {
      throw refused(name, text, allowed, cause);
    }
    return value;
  }

  /** The error for a value that is not allowed. */
  public static IllegalArgumentException refused(String key, String value, String allowed, Throwable cause) {
    return new IllegalArgumentException(key + " is '" + value + "', allowed: " + allowed, cause);
  }
}
