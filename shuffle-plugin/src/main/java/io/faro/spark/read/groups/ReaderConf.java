package io.faro.spark.read.groups;

import io.faro.Nullable;
import io.faro.rows.RowCodec;
import io.faro.spark.conf.SparkSettings;
import io.faro.spark.read.places.ReadPlan;
import org.apache.spark.SparkConf;
import org.apache.spark.network.util.ByteUnit;

/** Spark's settings of a shuffle's readers. */
public final class ReaderConf {
  private static final long MIB = 1 << 20;

  public final boolean wanted;
  /** Null if it is not one that native code decodes. */
  @Nullable public final RowCodec codec;
  public final boolean encrypted;
  public final boolean oldProtocol;
  final long maxBytesInFlight;
  final int maxRequestsInFlight;
  final int maxBlocksPerAddress;
  final long maxBytesToMemory;
  final int nettyAttempts;
  /** Null if map outputs have no checksums. */
  @Nullable public final String checksum;

  /** {@code wanted}: {@code spark.faro.reader} is auto. */
  public ReaderConf(SparkConf conf, boolean wanted) {
    this.wanted = wanted;
    boolean compressed = SparkSettings.flag(conf, "spark.shuffle.compress", true);
    codec = !compressed
        ? RowCodec.NONE : RowCodec.named(SparkSettings.text(conf, "spark.io.compression.codec", "lz4"));
    encrypted = SparkSettings.flag(conf, "spark.io.encryption.enabled", false);
    oldProtocol = SparkSettings.flag(conf, "spark.shuffle.useOldFetchProtocol", false);
    maxBytesInFlight = SparkSettings.bytes(conf, "spark.reducer.maxSizeInFlight", ByteUnit.MiB, 48 * MIB);
    maxRequestsInFlight = SparkSettings.count(conf, "spark.reducer.maxReqsInFlight", Integer.MAX_VALUE);
    maxBlocksPerAddress = SparkSettings.count(conf, "spark.reducer.maxBlocksInFlightPerAddress", Integer.MAX_VALUE);
    maxBytesToMemory = SparkSettings.bytes(
        conf, "spark.network.maxRemoteBlockSizeFetchToMem", ByteUnit.BYTE, 200 * MIB);
    nettyAttempts = SparkSettings.count(conf, "spark.shuffle.maxAttemptsOnNettyOOM", 10);
    checksum = SparkSettings.flag(conf, "spark.shuffle.checksum.enabled", true)
        ? SparkSettings.text(conf, "spark.shuffle.checksum.algorithm", "ADLER32") : null;
  }

  /**
   * Returns whether all bytes of a part are under checksums in it: of lz4's blocks, and of the row blocks among them.
   * The frames of the other codecs have none.
   */
  boolean partsHaveChecksums() {
    return codec == RowCodec.LZ4;
  }

  /** Limits of one group. The iterator requests a fifth of what may be in flight at once. */
  public ReadPlan.Limits limits() {
    return new ReadPlan.Limits(maxBytesInFlight / 5, maxBytesToMemory, maxBlocksPerAddress);
  }

  /** Maximum groups of an address in flight, so that their parts keep within the limit. */
  int maxGroupsPerAddress() {
    return maxBlocksPerAddress == Integer.MAX_VALUE ? Integer.MAX_VALUE
        : Math.max(1, maxBlocksPerAddress / limits().parts);
  }
}
