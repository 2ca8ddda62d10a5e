package io.faro.spark.service;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.Set;

/**
 * The shuffles of which an executor has outputs that no service keeps. Each list replaces the executor's earlier ones,
 * which Spark's RPC may deliver after it.
 *
 * <pre>
 *   i64 number | i32 n, n x i32 shuffle | UTF-8 why
 * </pre>
 */
final class UnkeptShuffles {
  /** Longer lists stand for all shuffles. */
  static final int MAX_SHUFFLES = 2_000;
  private static final int ALL = -1;
  private static final int MAX_REASON = 500;

  final long number;
  /** The reason of the newest output. */
  final String why;
  private final Set<Integer> shuffles;

  UnkeptShuffles(long number, Collection<Integer> shuffles, String why) {
    this.number = number;
    this.shuffles = shuffles.size() > MAX_SHUFFLES ? Collections.singleton(ALL) : new HashSet<>(shuffles);
    this.why = why.substring(0, Math.min(MAX_REASON, why.length()));
  }

  boolean isEmpty() {
    return shuffles.isEmpty();
  }

  boolean hasAnyOf(Set<Integer> registered) {
    return shuffles.contains(ALL) ? !registered.isEmpty() : !Collections.disjoint(shuffles, registered);
  }

  byte[] encode() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeLong(number);
    out.writeInt(shuffles.size());
    for (int shuffle : shuffles) {
      out.writeInt(shuffle);
    }
    out.write(why.getBytes(StandardCharsets.UTF_8));
    return bytes.toByteArray();
  }

  static UnkeptShuffles decode(byte[] from) throws IOException {
    ByteBuffer in = ByteBuffer.wrap(from);
    int count = from.length < Long.BYTES + Integer.BYTES ? -1 : in.getInt(Long.BYTES);
    if (count < 0 || count > MAX_SHUFFLES || count > (from.length - Long.BYTES - Integer.BYTES) / Integer.BYTES) {
      throw new IOException("a list of " + count + " shuffles in " + from.length + " bytes");
    }
    long number = in.getLong();
    in.getInt();
    Set<Integer> shuffles = new HashSet<>();
    for (int i = 0; i < count; i++) {
      shuffles.add(in.getInt());
    }
    return new UnkeptShuffles(number, shuffles, StandardCharsets.UTF_8.decode(in).toString());
  }
}
