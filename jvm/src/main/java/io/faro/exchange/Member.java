package io.faro.exchange;

import java.nio.charset.StandardCharsets;
import java.util.Comparator;

/** An endpoint as every node knows it: a unique identity that is never used again, and where it runs. */
public final class Member {
  /** By UTF-8 bytes, as Rust orders strings; {@link String#compareTo} orders UTF-16 units, which differs. */
  static final Comparator<String> BY_BYTES = Member::compareBytes;

  private final String id;
  private final String host;
  private final String rack;

  /** {@code rack} is empty when unknown. */
  public Member(String id, String host, String rack) {
    this.id = id;
    this.host = host;
    this.rack = rack;
  }

  public String id() {
    return id;
  }

  public String host() {
    return host;
  }

  public String rack() {
    return rack;
  }

  private static int compareBytes(String a, String b) {
    byte[] left = a.getBytes(StandardCharsets.UTF_8);
    byte[] right = b.getBytes(StandardCharsets.UTF_8);
    for (int i = 0; i < Math.min(left.length, right.length); i++) {
      int difference = (left[i] & 0xff) - (right[i] & 0xff);
      if (difference != 0) {
        return difference;
      }
    }
    return left.length - right.length;
  }

  @Override
  public String toString() {
    return id + "@" + host + (rack.isEmpty() ? "" : "/" + rack);
  }
}
