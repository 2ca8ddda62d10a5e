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
    refused("requestTimeoutMillis", "-5", EndpointConfig.builder().requestTimeoutMillis(-5));
  }

  @Test
  void theAdvertisedAddressIsTheBindAddressUnlessGiven() throws Exception {
    assertEquals("10.0.0.7", EndpointConfig.builder().bindAddress("10.0.0.7").build().advertisedAddress);
    assertEquals(
        "10.0.0.8",
        EndpointConfig.builder().bindAddress("0.0.0.0").advertisedAddress("10.0.0.8").build().advertisedAddress);
  }
}
