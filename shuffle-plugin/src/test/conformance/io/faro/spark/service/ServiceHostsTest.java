package io.faro.spark.service;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

/** Where copies of map outputs are. */
class ServiceHostsTest {
  @Test
  void readersKnowWhereCopiesAreWhenTheyKnowWhoHasTheOutput() throws IOException {
    HostList driver = new HostList();
    for (int i = 0; i < 6; i++) {
      driver.put(new byte[0], ("card " + i).getBytes(StandardCharsets.UTF_8));
    }
    ServiceHosts hosts = new ServiceHosts(1);
    hosts.take(driver.changesAfter(0));
    assertEquals(0, hosts.copiesOf("9", 0, 0).length);
    hosts.keeps("9", 1);
    assertArrayEquals(new int[] {3, 4, 2}, hosts.copiesOf("9", 0, 0));
    ServiceHosts without = new ServiceHosts(0);
    without.take(driver.changesAfter(0));
    without.keeps("9", 1);
    assertEquals(0, without.copiesOf("9", 0, 0).length);
  }

  @Test
  void aPlaceThatTurnsOutToBeAnotherServicesHasNoCopies() throws IOException {
    HostList driver = new HostList();
    byte[][] cards = {{1}, {2}, {3}, {4}, {5}, {6}};
    for (byte[] card : cards) {
      driver.put(new byte[0], card);
    }
    ServiceHosts hosts = new ServiceHosts(1);
    hosts.take(driver.changesAfter(0));
    int before = hosts.version();
    assertEquals(0, driver.put(cards[0], cards[3]), "the service of place 3 is that of place 0, started again");
    hosts.take(driver.changesAfter(before));
    hosts.keeps("9", 1);
    assertArrayEquals(new int[] {4, 2, 0}, hosts.copiesOf("9", 0, 0));
    assertArrayEquals(cards[3], hosts.card(0));
    assertNull(hosts.card(3));
  }
}
