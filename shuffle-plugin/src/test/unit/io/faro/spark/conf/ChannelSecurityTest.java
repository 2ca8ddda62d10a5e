package io.faro.spark.conf;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import scala.Option;

/** Tests Faro's channel under Spark's settings, with Spark's own security manager. */
class ChannelSecurityTest {
  private static final String SECRET = "not-a-s\u00e9cret";

  @TempDir
  Path directory;

  private static SparkConf with(String... keysAndValues) {
    SparkConf conf = new SparkConf(false);
    for (int i = 0; i < keysAndValues.length; i += 2) {
      conf.set(keysAndValues[i], keysAndValues[i + 1]);
    }
    return conf;
  }

  private static SecurityManager spark(SparkConf conf) {
    return new SecurityManager(conf, Option.empty(), SecurityManager.$lessinit$greater$default$3());
  }

  /** authenticate, crypto, SASL, TLS, Faro's key; {@code -}: not set. */
  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
    // auth | crypto | SASL | TLS   | faro     | secret | because; empty: in the clear
    "-      | -      | -    | -     | -        | false  | ''",
    "false  | false  | false| FALSE | auto     | false  | ''",
    "true   | -      | -    | -     | -        | true   | spark.authenticate",
    "' TRUE '| -     | -    | -     | auto     | true   | spark.authenticate",
    "true   | true   | -    | -     | -        | true   | spark.authenticate, spark.network.crypto.enabled",
    "true   | -      | true | -     | -        | true   | spark.authenticate, spark.authenticate.enableSaslEncryption",
    "-      | -      | -    | true  | -        | false  | spark.ssl.rpc.enabled",
    "true   | -      | -    | true  | -        | true   | spark.authenticate, spark.ssl.rpc.enabled",
    "-      | -      | -    | -     | required | false  | spark.faro.security=required",
    "true   | -      | -    | -     | required | true   | spark.authenticate",
  })
  void theDecision(
      String auth, String crypto, String sasl, String tls, String faro, boolean hasSecret, String because) {
    SparkConf conf = with("spark.authenticate.secret", SECRET);
    String[] keys = {"spark.authenticate", "spark.network.crypto.enabled", "spark.authenticate.enableSaslEncryption",
        "spark.ssl.rpc.enabled", "spark.faro.security"};
    String[] values = {auth, crypto, sasl, tls, faro};
    for (int i = 0; i < keys.length; i++) {
      if (!values[i].equals("-")) {
        conf.set(keys[i], values[i]);
      }
    }
    assertEquals(Collections.emptyList(), ChannelSecurity.unreadable(conf));
    ChannelSecurity security = ChannelSecurity.of(conf);
    assertEquals(!because.isEmpty(), security.sealed);
    assertEquals(because.isEmpty() ? "in the clear, members proven" : "sealed (AES-256-GCM; " + because + ")",
        security.toString());
    byte[] secret = security.secret(spark(conf));
    assertArrayEquals(hasSecret ? SECRET.getBytes(StandardCharsets.UTF_8) : null, secret);
    assertFalse(security.toString().contains(SECRET));
  }

  @ParameterizedTest
  @ValueSource(strings = {"yes", "1", "", "on", "truee", "t rue", "${spark.x}", "TRUE;"})
  void aValueThatIsNoBooleanIsNotUnderstoodAndCountsAsOn(String value) {
    for (String key : Arrays.asList("spark.authenticate", "spark.network.crypto.enabled",
        "spark.authenticate.enableSaslEncryption", "spark.ssl.rpc.enabled")) {
      SparkConf conf = with(key, value);
      assertEquals(Collections.singletonList(key + "=" + value), ChannelSecurity.unreadable(conf));
      assertEquals(Collections.singletonList(key + "=" + value), UnsupportedSettings.of(conf));
      assertTrue(ChannelSecurity.of(conf).sealed);
    }
  }

  /** The settings are those of an executor on Kubernetes that mounts the secret. */
  @Test
  void theSecretMayBeInAFile() throws IOException {
    Path file = directory.resolve("secret");
    Files.write(file, new byte[] {1, 2, 3});
    SparkConf conf = with("spark.authenticate", "true", "spark.authenticate.secret.file", file.toString(),
        "spark.master", "k8s://nowhere");
    assertArrayEquals(
        Base64.getEncoder().encode(new byte[] {1, 2, 3}), ChannelSecurity.of(conf).secret(spark(conf)));
  }

  @Test
  void withoutItsSecretThereIsNoChannel() {
    SparkConf conf = with("spark.authenticate", "true");
    String message = assertThrows(
        IllegalStateException.class, () -> ChannelSecurity.of(conf).secret(spark(conf))).getMessage();
    assertTrue(message.contains("does not have Spark's secret") && message.contains("spark.authenticate"), message);
    SparkConf empty = with("spark.authenticate", "true", "spark.authenticate.secret", "");
    assertThrows(IllegalStateException.class, () -> ChannelSecurity.of(empty).secret(spark(empty)));
  }

  /** Spark's own reading of its settings is compared with Faro's. */
  @Test
  void sparkMustAgree() {
    SparkConf on = with("spark.authenticate", "true", "spark.authenticate.secret", SECRET);
    SparkConf off = with();
    assertThrows(IllegalStateException.class, () -> ChannelSecurity.of(on).secret(spark(off)));
    assertThrows(IllegalStateException.class, () -> ChannelSecurity.of(off).secret(spark(on)));
    // Encryption without authentication: Spark's driver refuses this.
    SparkConf crypto = with("spark.network.crypto.enabled", "true");
    assertThrows(IllegalStateException.class, () -> ChannelSecurity.of(crypto).secret(spark(crypto)));
    assertNull(ChannelSecurity.of(off).secret(spark(off)));
  }
}
