package io.faro.spark.conf;

import io.faro.Nullable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.package$;

/**
 * Protection of Faro's connections: as Spark's are, or better. In the clear only if Spark neither authenticates nor
 * encrypts its network. docs/user/security.md has the table.
 */
public final class ChannelSecurity {
  /** Explains why a block did not come by Spark's own fetch, and how to allow that. */
  public static final String FORBIDDEN = "spark.faro.security=required does not allow Spark's own fetch, which does "
      + "not encrypt; spark.authenticate=true and spark.network.crypto.enabled=true with "
      + "spark.network.crypto.saslFallback=false, or spark.ssl.rpc.enabled=true in Spark 4, allows it";
  private static final String REQUIRED = FaroKeys.SECURITY.name + "=required";
  private static final String AUTHENTICATE = "spark.authenticate";
  private static final String CRYPTO = "spark.network.crypto.enabled";
  private static final String SASL_INSTEAD = "spark.network.crypto.saslFallback";
  private static final String SASL = "spark.authenticate.enableSaslEncryption";
  private static final String TLS = "spark.ssl.rpc.enabled";
  /** Spark's switches. With each of the first three, Spark has a secret, and refuses to start without it. */
  private static final String[] WITH_SECRET = {AUTHENTICATE, CRYPTO, SASL};
  private static final String[] SWITCHES = {AUTHENTICATE, CRYPTO, SASL, TLS};

  /** True if bytes are encrypted. */
  public final boolean sealed;
  /** True if Spark has a secret that all executors of the application know. */
  private final boolean shared;
  /**
   * True if shuffle blocks may not go by Spark's own fetch, because {@code spark.faro.security=required} forbids bytes
   * in the clear and Spark does not encrypt its block transfers.
   */
  public final boolean forbidsSparksFetch;
  /** The settings that ask for it. */
  private final List<String> because;

  private ChannelSecurity(List<String> because, boolean shared, boolean forbidsSparksFetch) {
    this.forbidsSparksFetch = forbidsSparksFetch;
    this.because = because;
    this.sealed = !because.isEmpty();
    this.shared = shared;
  }

  /** Returns what the configuration asks for; none of its switches is {@link #unreadable}. */
  public static ChannelSecurity of(SparkConf conf) {
    List<String> because = on(conf, SWITCHES);
    boolean required = FaroKeys.SECURITY.of(conf).equals("required");
    if (because.isEmpty() && required) {
      because.add(REQUIRED);
    }
    return new ChannelSecurity(Collections.unmodifiableList(because), !on(conf, WITH_SECRET).isEmpty(),
        required && !sparkEncrypts(conf) && !isLocal(conf));
  }

  /** In local mode the driver is the only executor, and no block leaves the process. */
  private static boolean isLocal(SparkConf conf) {
    String master = conf.get("spark.master", "");
    return master.equals("local") || master.startsWith("local[");
  }

  /**
   * Returns whether Spark's own block transfers are encrypted, also if somebody disturbs them. {@code
   * spark.authenticate} alone does not encrypt. After a failed handshake of its AES, Spark authenticates by SASL unless
   * set otherwise, which encrypts only where that is set. TLS is unknown to Spark 3.
   */
  private static boolean sparkEncrypts(SparkConf conf) {
    boolean hasTls = !package$.MODULE$.SPARK_VERSION().startsWith("3.");
    boolean onlyAes = isTrue(conf, CRYPTO) && conf.get(SASL_INSTEAD, "true").trim().equalsIgnoreCase("false");
    return hasTls && isTrue(conf, TLS) || isTrue(conf, SASL) || onlyAes;
  }

  private static boolean isTrue(SparkConf conf, String key) {
    return value(conf, key).equals("true");
  }

  private static List<String> on(SparkConf conf, String... switches) {
    List<String> on = new ArrayList<>();
    for (String key : switches) {
      String value = value(conf, key);
      if (!value.equals("false")) {
        on.add(key);
      }
    }
    return on;
  }

  /**
   * Spark's switches whose value is neither true nor false, as {@code key=value}. Spark accepts both in any case. It
   * also replaces references to other settings, which are not read here.
   */
  static List<String> unreadable(SparkConf conf) {
    List<String> found = new ArrayList<>();
    for (String key : SWITCHES) {
      String value = value(conf, key);
      if (!value.equals("true") && !value.equals("false")) {
        found.add(key + "=" + conf.get(key));
      }
    }
    return found;
  }

  private static String value(SparkConf conf, String key) {
    return conf.get(key, "false").trim().toLowerCase(Locale.ROOT);
  }

  /**
   * Spark's secret, which the caller overwrites after use; null if Spark has none. Throws if Spark's own reading
   * of its settings is another one, or the secret is missing: the channel is never weaker than Spark's.
   */
  @Nullable public byte[] secret(SecurityManager spark) {
    if (shared != spark.isAuthenticationEnabled()) {
      throw new IllegalStateException("Spark " + (shared ? "does not authenticate although " + settings() + " is set"
          : "authenticates although " + AUTHENTICATE + " is not set"));
    }
    if (!shared) {
      return null;
    }
    String secret;
    try {
      secret = spark.getSecretKey();
    } catch (RuntimeException e) {
      throw new IllegalStateException("this executor does not have Spark's secret, which " + settings() + " needs: "
          + e.getMessage(), e);
    }
    if (secret == null || secret.isEmpty()) {
      throw new IllegalStateException("Spark's secret, which " + settings() + " needs, is empty in this executor");
    }
    return secret.getBytes(StandardCharsets.UTF_8);
  }

  private String settings() {
    return String.join(", ", because);
  }

  /** For the log. */
  @Override
  public String toString() {
    return sealed ? "sealed (AES-256-GCM; " + settings() + ")" : "in the clear, members proven";
  }
}
