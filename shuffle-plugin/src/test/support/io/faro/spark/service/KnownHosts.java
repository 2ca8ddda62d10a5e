package io.faro.spark.service;

import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** Node services as an executor gets to know them. */
public final class KnownHosts {
  private KnownHosts() {}

  /** Services with these cards, in their places. */
  public static void tell(ServiceHosts hosts, String... cards) throws IOException {
    HostList driver = new HostList();
    for (String card : cards) {
      driver.put(new byte[0], card.getBytes(StandardCharsets.UTF_8));
    }
    hosts.take(driver.changesAfter(0));
  }
}
