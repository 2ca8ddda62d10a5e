package io.faro.spark.write;

import io.faro.Nullable;
import java.util.zip.Adler32;
import java.util.zip.CRC32;
import java.util.zip.Checksum;

/** Spark's checksums of the partitions of one map output, over their bytes in the order of the file. */
final class PartitionSums {
  /** Null if there are none. */
  @Nullable private final Checksum[] sums;

  /** {@code algorithm}: as {@code spark.shuffle.checksum.algorithm}; null if there are no checksums. */
  PartitionSums(@Nullable String algorithm, int partitions) {
    sums = algorithm == null ? null : new Checksum[partitions];
    for (int i = 0; sums != null && i < partitions; i++) {
      sums[i] = of(algorithm);
    }
  }

  static boolean knows(String algorithm) {
    return algorithm == null || algorithm.equals("ADLER32") || algorithm.equals("CRC32") || algorithm.equals("CRC32C");
  }

  private static Checksum of(String algorithm) {
    switch (algorithm) {
      case "ADLER32":
        return new Adler32();
      case "CRC32":
        return new CRC32();
      case "CRC32C":
        return crc32c();
      default:
        throw new IllegalArgumentException("checksum algorithm " + algorithm + "; ADLER32, CRC32 and CRC32C are known");
    }
  }

  /** Java 8 does not have it, and Spark that runs there does not ask for it. */
  private static Checksum crc32c() {
    try {
      return (Checksum) Class.forName("java.util.zip.CRC32C").getConstructor().newInstance();
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this Java has no CRC32C", e);
    }
  }

  void update(int partition, byte[] bytes, int offset, int length) {
    if (sums != null) {
      sums[partition].update(bytes, offset, length);
    }
  }

  /** Returns the sums in the form in which Spark's writers hand them over: none for no algorithm. */
  long[] values() {
    long[] values = new long[sums == null ? 0 : sums.length];
    for (int i = 0; i < values.length; i++) {
      values[i] = sums[i].getValue();
    }
    return values;
  }
}
