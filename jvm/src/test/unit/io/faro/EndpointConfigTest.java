package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

/** Wrong settings are named with what is allowed, before anything is opened. */
class EndpointConfigTest {
  private static void refused(String key, String value, EndpointConfig.Builder builder) {
    BadConfigurationException e = assertThrows(BadConfigurationException.class, builder::build);
    assertEquals(key, e.key());
    assertEquals(value, e.value());
    assertEquals(key + " is '" + value + "', allowed: " + e.allowed(), e.getMessage());
  }

  @Test
  void wrongValuesCarryKeyAndValue() {
    refused("port", "65536", EndpointConfig.builder().port(65_536));
    refused("port", "-1", EndpointConfig.builder().port(-1));
    refused("memoryLimitBytes", "0", EndpointConfig.builder().memoryLimitBytes(0));
    refused("idleReleaseMillis", "-1", EndpointConfig.builder().idleReleaseMillis(-1));
    refused("requestTimeoutMillis", "-5", EndpointConfig.builder().requestTimeoutMillis(-5));
  }

  @Test
  void wrongValuesOfRdmaToo() throws Exception {
    VerbsOptions verbs = new VerbsOptions();
    refused("verbs.gidIndex", "256", EndpointConfig.builder().verbs(verbs.gidIndex(256)));
    refused("verbs.trafficClass", "-1", EndpointConfig.builder().verbs(verbs.trafficClass(-1)));
    refused("verbs.trafficClass", "256", EndpointConfig.builder().verbs(verbs.trafficClass(256)));
    refused("verbs.timeout", "0", EndpointConfig.builder().verbs(verbs.timeout(0)));
    refused("verbs.timeout", "32", EndpointConfig.builder().verbs(verbs.timeout(32)));
    refused("verbs.retryCount", "8", EndpointConfig.builder().verbs(verbs.retryCount(8)));
    refused("verbs.rnrRetry", "8", EndpointConfig.builder().verbs(verbs.rnrRetry(8)));
    VerbsOptions all = verbs.device("mlx5_0:1").gidIndex(255).trafficClass(255).timeout(31).retryCount(0).rnrRetry(7);
    assertEquals(all, EndpointConfig.builder().verbs(all).build().verbs);
  }

  @Test
  void theAdvertisedAddressIsTheBindAddressUnlessGiven() throws Exception {
    assertEquals("10.0.0.7", EndpointConfig.builder().bindAddress("10.0.0.7").build().advertisedAddress);
    assertEquals(
        "10.0.0.8",
        EndpointConfig.builder().bindAddress("0.0.0.0").advertisedAddress("10.0.0.8").build().advertisedAddress);
  }
}
