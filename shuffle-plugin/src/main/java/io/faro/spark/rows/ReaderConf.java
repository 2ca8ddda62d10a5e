package io.faro.spark.rows;

import io.faro.rows.RowCodec;
import org.apache.spark.SparkConf;

/** Spark's settings of a shuffle's readers. */
final class ReaderConf {
  private static final long MIB = 1 << 20;

  final boolean wanted;
  /** {@code null}: not one that native code decodes. */
  final RowCodec codec;
  final boolean encrypted;
  final boolean oldProtocol;
  final long maxBytesInFlight;
  final int maxRequestsInFlight;
  final int maxBlocksPerAddress;
  final long maxBytesToMemory;
  final int nettyAttempts;
  /** {@code null}: map outputs have no checksums. */
  final String checksum;

  /** {@code wanted}: {@code spark.faro.reader} is auto. */
  ReaderConf(SparkConf conf, boolean wanted) {
    this.wanted = wanted;
    codec = !conf.getBoolean("spark.shuffle.compress", true)
        ? RowCodec.NONE : RowCodec.named(conf.get("spark.io.compression.codec", "lz4"));
    encrypted = conf.getBoolean("spark.io.encryption.enabled", false);
    oldProtocol = conf.getBoolean("spark.shuffle.useOldFetchProtocol", false);
    maxBytesInFlight = conf.getSizeAsMb("spark.reducer.maxSizeInFlight", "48m") * MIB;
    maxRequestsInFlight = conf.getInt("spark.reducer.maxReqsInFlight", Integer.MAX_VALUE);
    maxBlocksPerAddress = conf.getInt("spark.reducer.maxBlocksInFlightPerAddress", Integer.MAX_VALUE);
    maxBytesToMemory = conf.getSizeAsBytes("spark.network.maxRemoteBlockSizeFetchToMem", 200 * MIB + "b");
    nettyAttempts = conf.getInt("spark.shuffle.maxAttemptsOnNettyOOM", 10);
    checksum = conf.getBoolean("spark.shuffle.checksum.enabled", true)
        ? conf.get("spark.shuffle.checksum.algorithm", "ADLER32") : null;
  }

  /** Of one group: what the iterator requests at once is a fifth of what may be in flight. */
  ReadPlan.Limits limits() {
    return new ReadPlan.Limits(maxBytesInFlight / 5, maxBytesToMemory, maxBlocksPerAddress);
  }

  /** How many groups of an address may be in flight, so that their parts keep within the limit. */
  int maxGroupsPerAddress() {
    return maxBlocksPerAddress == Integer.MAX_VALUE ? Integer.MAX_VALUE
        : Math.max(1, maxBlocksPerAddress / limits().parts);
  }
}
