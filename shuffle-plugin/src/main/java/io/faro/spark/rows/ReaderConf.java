package io.faro.spark.rows;

import io.faro.rows.RowCodec;
import org.apache.spark.SparkConf;
import org.apache.spark.io.CompressionCodec$;

/** Spark's settings of a shuffle's readers. */
final class ReaderConf {
  private static final long MIB = 1 << 20;

  final boolean wanted;
  /** {@code null}: not one that native code decodes. */
  final RowCodec codec;
  /** Whether compressed blocks, one after the other, are one compressed stream. */
  final boolean concatenates;
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
    boolean compressed = conf.getBoolean("spark.shuffle.compress", true);
    codec = !compressed
        ? RowCodec.NONE : RowCodec.named(conf.get("spark.io.compression.codec", "lz4"));
    concatenates = !compressed || codec != null || concatenates(conf);
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

  private static boolean concatenates(SparkConf conf) {
    CompressionCodec$ codecs = CompressionCodec$.MODULE$;
    try {
      return codecs.supportsConcatenationOfSerializedStreams(codecs.createCodec(conf));
    } catch (RuntimeException e) {
      // A codec that cannot be made here: Spark's reader says why.
      return false;
    }
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
