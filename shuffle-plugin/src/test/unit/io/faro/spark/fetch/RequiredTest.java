package io.faro.spark.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Failures;
import io.faro.FetchError;
import io.faro.spark.conf.ChannelSecurity;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/** With security=required no block goes by Spark's own fetch, unless Spark encrypts it. */
class RequiredTest {
  private static SparkConf required() {
    return new SparkConf(false).set("spark.faro.security", "required");
  }

  private static SparkConf withCrypto() {
    return required().set("spark.authenticate", "true").set("spark.network.crypto.enabled", "true")
        .set("spark.network.crypto.saslFallback", "false");
  }

  private static void fail(ClientHarness h) {
    FakeTransport.StartedFetch fetch = h.fetchStarted("shuffle_0_0_2");
    fetch.listener.onError(0, 1, Failures.of(FetchError.UNREACHABLE, 0, 1));
    fetch.listener.onComplete();
    h.fallBackThreads.runAll();
  }

  private static void assertRefused(ClientHarness h, String block) {
    assertEquals(0, h.spark.requests);
    String message = h.listener.failed.get(block).getMessage();
    assertTrue(message.contains("spark.faro.security=required") && message.contains("spark.network.crypto.enabled"),
        message);
  }

  @Test
  void whatFaroDoesNotDeliverFails() {
    ClientHarness h = new ClientHarness(required());
    fail(h);
    assertRefused(h, "shuffle_0_0_2");
  }

  @Test
  void sparkThatEncryptsStaysTheFallBack() {
    ClientHarness h = new ClientHarness(withCrypto());
    fail(h);
    assertEquals(1, h.spark.requests);
  }

  @Test
  void mergedBlocksAndAStoppedClientAreRefused() {
    ClientHarness h = new ClientHarness(required());
    h.fetch("shuffleChunk_0_0_1_2");
    assertRefused(h, "shuffleChunk_0_0_1_2");
    h.client.detach();
    h.fetch("shuffle_0_0_2");
    assertRefused(h, "shuffle_0_0_2");
    assertThrows(IllegalStateException.class, () -> h.client.pushBlocks("h", 1, new String[0], null, null));
  }

  @Test
  void aShuffleThatIsLeftToSparkIsRefused() {
    ClientHarness h = new ClientHarness(required());
    h.left.add(0);
    h.fetch("shuffle_0_0_2");
    assertRefused(h, "shuffle_0_0_2");
  }

  @Test
  void authenticationAloneDoesNotEncrypt() {
    assertTrue(ChannelSecurity.of(required().set("spark.authenticate", "true")).forbidsSparksFetch);
    assertTrue(!ChannelSecurity.of(withCrypto()).forbidsSparksFetch);
    SparkConf disturbed = withCrypto().set("spark.network.crypto.saslFallback", "true");
    assertTrue(ChannelSecurity.of(disturbed).forbidsSparksFetch, "SASL without encryption would follow");
    disturbed.set("spark.authenticate.enableSaslEncryption", "true");
    assertTrue(!ChannelSecurity.of(disturbed).forbidsSparksFetch);
    assertTrue(!ChannelSecurity.of(new SparkConf(false)).forbidsSparksFetch);
  }
}
