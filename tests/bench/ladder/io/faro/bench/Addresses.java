package io.faro.bench;

/** Where both processes are: on this host's loopback, or where the properties say. */
final class Addresses {
  static final String OWN = System.getProperty("faro.bench.own", "127.0.0.1");
  static final String OWNER = System.getProperty("faro.bench.owner", "127.0.0.1");

  private Addresses() {}
}
