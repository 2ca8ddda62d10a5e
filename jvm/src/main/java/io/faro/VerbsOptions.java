package io.faro;

import java.util.Objects;

/** How RDMA is used, where the choice is not to be Faro's. Immutable: each method gives a changed copy. */
public final class VerbsOptions {
  /** {@code null}: chosen by the endpoint's address. */
  final String device;
  /** Negative: chosen by the endpoint's address. */
  final int gidIndex;
  final int trafficClass;
  final int timeout;
  final int retryCount;
  final int rnrRetry;

  /** What Faro would choose. */
  public VerbsOptions() {
    this(null, -1, 0, 14, 7, 7);
  }

  private VerbsOptions(
      String device, int gidIndex, int trafficClass, int timeout, int retryCount, int rnrRetry) {
    this.device = device;
    this.gidIndex = gidIndex;
    this.trafficClass = trafficClass;
    this.timeout = timeout;
    this.retryCount = retryCount;
    this.rnrRetry = rnrRetry;
  }

  /** A device, {@code mlx5_0}, or one of its ports, {@code mlx5_0:1}. */
  public VerbsOptions device(String value) {
    return new VerbsOptions(
        Objects.requireNonNull(value, "device"), gidIndex, trafficClass, timeout, retryCount, rnrRetry);
  }

  /** Index in the port's table of addresses; see {@code show_gids} or {@code rdma link}. */
  public VerbsOptions gidIndex(int value) {
    return new VerbsOptions(device, value, trafficClass, timeout, retryCount, rnrRetry);
  }

  /** Traffic class of packets, 0 to 255; its upper six bits are the DSCP that switches look at. */
  public VerbsOptions trafficClass(int value) {
    return new VerbsOptions(device, gidIndex, value, timeout, retryCount, rnrRetry);
  }

  /** Time before a packet is sent again, 1 to 31: 4.096 µs x 2^value. */
  public VerbsOptions timeout(int value) {
    return new VerbsOptions(device, gidIndex, trafficClass, value, retryCount, rnrRetry);
  }

  /** Times that a packet is sent again before the connection is given up, 0 to 7. */
  public VerbsOptions retryCount(int value) {
    return new VerbsOptions(device, gidIndex, trafficClass, timeout, value, rnrRetry);
  }

  /** Times that a packet is sent again to a peer that is not ready, 0 to 7; 7: without end. */
  public VerbsOptions rnrRetry(int value) {
    return new VerbsOptions(device, gidIndex, trafficClass, timeout, retryCount, value);
  }

  @Override
  public String toString() {
    return "device=" + (device == null ? "chosen" : device) + " gidIndex=" + (gidIndex < 0 ? "chosen" : gidIndex)
        + " trafficClass=" + trafficClass + " timeout=" + timeout + " retryCount=" + retryCount
        + " rnrRetry=" + rnrRetry;
  }

  void check() throws BadConfigurationException {
    check("verbs.trafficClass", trafficClass, 0, 255);
    check("verbs.timeout", timeout, 1, 31);
    check("verbs.retryCount", retryCount, 0, 7);
    check("verbs.rnrRetry", rnrRetry, 0, 7);
    if (gidIndex > 255) {
      throw new BadConfigurationException(
          "verbs.gidIndex", String.valueOf(gidIndex), "0 to 255, or negative for the one that Faro chooses");
    }
  }

  private static void check(String what, int value, int least, int most) throws BadConfigurationException {
    if (value < least || value > most) {
      throw new BadConfigurationException(what, String.valueOf(value), least + " to " + most);
    }
  }
}
