package io.faro.spark.metrics;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The meaning, unit and kind of each counter. docs/user/metrics.md is generated from this table. A counter that is
 * missing
 * here is treated as a count; tests/spark/ui fails then.
 */
public final class Metric {
  /** Behaviour of a value. */
  public enum Kind {
    /** The value only grows. */
    COUNT,
    /** The value goes up and down, or is the highest one so far. */
    LEVEL
  }

  public static final List<Metric> ALL;
  private static final Map<String, Metric> BY_NAME = new LinkedHashMap<>();

  public final String name;
  public final Kind kind;
  final String unit;
  final String doc;

  private Metric(String name, Kind kind, String unit, String doc) {
    this.name = name;
    this.kind = kind;
    this.unit = unit;
    this.doc = doc;
  }

  /** Returns whether the counter goes up and down; an unknown one does not. */
  public static boolean isLevel(String name) {
    Metric metric = BY_NAME.get(name);
    return metric != null && metric.kind == Kind.LEVEL;
  }

  private static void count(String name, String unit, String doc) {
    BY_NAME.put(name, new Metric(name, Kind.COUNT, unit, doc));
  }

  private static void level(String name, String unit, String doc) {
    BY_NAME.put(name, new Metric(name, Kind.LEVEL, unit, doc));
  }

  private static void fabric(String name, String what) {
    count("remoteBlocks." + name, "blocks",
        "arrived whole over " + what + "; of those that go to files, each piece of 4 MiB");
    count("remoteBytes." + name, "bytes", "in these blocks");
    count("servedBlocks." + name, "blocks", "sent to peers over " + what);
    count("servedBytes." + name, "bytes", "in these blocks");
    level("connections." + name, "connections", "begun or open over " + what + ", one for each peer");
  }

  private static void reason(String name, String why) {
    count("fallbackReason." + name, "requests", "of `fallbacks`: " + why);
  }

  static {
    fabric("verbs", "RDMA");
    fabric("shm", "shared memory of one host");
    fabric("tcp", "TCP");
    requests();
    exchange();
    rdmaPort();
    memory();
    besideTheArena();
    regions();
    fallBacks();
    rows();
    writers();
    sorts();
    services();
    ALL = Collections.unmodifiableList(new ArrayList<>(BY_NAME.values()));
  }

  private static void services() {
    count("serviceBlocks", "blocks", "that came from node services (`faro serve`), also in the counts of their fabric");
    count("serviceBytes", "bytes", "in these blocks");
    count("serviceLocalBlocks", "blocks", "of other executors that were read from files which the node service of this "
        + "host lends; not remote, so in no count of a fabric");
    count("serviceLocalBytes", "bytes", "in these blocks");
    count("executorBlocks", "blocks", "that came from executors after their host's node service was asked; also in the "
        + "counts of their fabric");
    count("executorBytes", "bytes", "in these blocks");
    count("replicaBlocks", "blocks", "that came from copies on node services of other hosts; also in the counts of "
        + "their fabric");
    count("replicaBytes", "bytes", "in these blocks");
    level("serviceRegistered", "executors", "that the node service of their host has taken, and whose connection to it "
        + "stands: 1, or 0");
    level("replicasBehind", "copies", "of map outputs of this host that other hosts' node services do not have yet; "
        + "each executor of a host says the same");
    count("serviceOutputs", "map outputs", "that the node service of this host keeps");
    count("serviceOutputsRefused", "map outputs", "that it did not take when they were written; this executor "
        + "serves them, and hands them over later");
  }

  private static void requests() {
    count("requests", "requests", "started");
    count("requestsFailed", "requests", "that ended in an error");
    count("retries", "requests", "sent again after a fault");
    count("routeBackoffs", "routes", "(a peer over one fabric) not used for a while after a fault");
    count("duplicateConnections", "connections", "closed because both executors had made one at the same time");
    count("idleConnections", "connections", "closed because nothing used them for a minute, or to make room");
    level("connectionBytes", "bytes", "of the arena that RDMA connections hold to send and receive messages");
    count("crcErrors", "chunks", "with a wrong checksum; fetched again");
    count("timeouts", "requests", "that exceeded `spark.faro.request.timeout`");
    count("putBack", "requests", "that gave their memory up for older ones, and were sent again");
    count("servedRequests", "requests", "of peers served");
    count("busyRefusals", "requests", "of peers refused because too many were waiting");
    count("blocksRefused", "blocks", "that peers asked for and that are not here");
    count("lateMessages", "messages", "for requests that had ended; dropped");
    count("collectiveRounds", "rounds", "of collectives completed, one for each member in this executor");
    count("collectiveRoundsFailed", "rounds", "of collectives that ended in an error");
    count("collectiveBytes", "bytes", "of arrays sent to other members");
    count("readOffers", "requests", "of peers answered with the memory address of the bytes, for the peer to read");
    count("remoteReads", "requests", "whose bytes this executor read from the peer's memory one-sidedly");
    count("remoteReadsStale", "requests", "of `remoteReads` that found replaced bytes; the peer then sent them");
    level("sealedChannel", "executors", "whose connections are encrypted: 1, or 0; see docs/user/security.md");
    level("openOutputs", "files", "of map outputs that are open for serving");
  }

  private static void exchange() {
    level("exchange.members", "endpoints", "in the schedule, including this one");
    level("exchange.policy", "order", "of peers that runs: 1 random, 2 rotated, 3 grouped; 0 without peers");
    level("exchange.activePeers", "peers", "with requests of this executor in flight now");
    level("exchange.activePeersHighWater", "peers", "highest value of `exchange.activePeers`");
    level("exchange.fanIn", "peers", "being served now");
    level("exchange.fanInHighWater", "peers", "highest value of `exchange.fanIn`");
    level("exchange.pairsInUse", "pairs", "of executors active or being served now; over RDMA, queue pairs in use");
    level("exchange.pairsInUseHighWater", "pairs", "highest value of `exchange.pairsInUse`");
    count("exchange.rounds", "rounds", "of the schedule started");
    count("exchange.waits", "requests", "that waited for other requests, see `spark.faro.exchange`");
  }

  private static void rdmaPort() {
    count("rdmaPort.retransmits", "packets", "that the RDMA port sent again since this executor opened it, of all "
        + "processes of the host; 0 where the driver does not count them");
    count("rdmaPort.outOfSequence", "packets", "of that port that were lost or overtaken on their way");
    count("rdmaPort.notReady", "packets", "of that port that met a receiver that was not ready (RNR)");
  }

  private static void memory() {
    level("pool.limitBytes", "bytes", "`spark.faro.memory.limit`, the cap");
    level("pool.mappedBytes", "bytes", "of native memory taken from the system now");
    level("pool.idleBytes", "bytes", "of slabs not used for `spark.faro.memory.idleRelease`; de-registered");
    level("pool.hugeSlabs", "slabs", "(16 MiB) on the machine's huge pages");
    level("pool.externalBytes", "bytes", "of memory outside the slabs that counts against the cap");
    level("pool.pageBytes", "bytes", "of the slabs in use, in whole pages (256 KiB)");
    level("pool.fragmentationBytes", "bytes", "of `pool.pageBytes` that are not leased: the unused parts of pages");
    level("pool.leasedBytes", "bytes", "leased now");
    level("pool.highWaterBytes", "bytes", "highest value of `pool.leasedBytes`");
    count("pool.acquisitions", "leases", "given");
    count("pool.reuseHits", "leases", "given from memory that was leased before");
    count("pool.exhausted", "requests", "for memory that failed because the cap was reached");
    count("pool.waits", "requests", "for memory that had to wait");
    count("pool.slabsMapped", "slabs", "mapped for the first time");
    count("pool.mapNanos", "nanoseconds", "spent on mapping slabs");
    count("pool.slabsReleased", "slabs", "given back to the system after being idle");
    count("pool.registrations", "registrations", "with the RDMA device");
    count("pool.registrationNanos", "nanoseconds", "spent on registrations");
    count("pool.deregistrations", "registrations", "with the RDMA device removed");
    level("pool.registeredBytes", "bytes", "registered with the RDMA device now");
    level("pool.registeredHighWaterBytes", "bytes", "highest value of `pool.registeredBytes`");
  }

  /** Memory that is in no arena, see docs/user/memory.md. */
  private static void besideTheArena() {
    level("memory.rowDecoderBytes", "bytes", "of native memory of the decoders of rows that readers have open");
    level("memory.compressorBytes", "bytes", "of native memory of the compressors of map tasks");
    level("memory.requestBytes", "bytes", "of native memory of the requests of peers that are being served");
    level("memory.pathBytes", "bytes", "of native memory of the paths of known map outputs");
    level("memory.offsetBytes", "bytes", "of native memory of the offsets of known map outputs");
    level("memory.connectionBytes", "bytes", "of native memory of the stream connections' buffers in this process");
    level("memory.copiedBytes", "bytes", "of blocks that were copied into Spark's Netty pool, as memory was scarce");
    level("memory.totalBytes", "bytes", "of `pool.mappedBytes`, `pool.externalBytes` and all of `memory.*` together");
    level("memory.totalHighWaterBytes", "bytes", "highest value of `memory.totalBytes` that was read");
    level("memory.tasksHighWaterBytes", "bytes", "highest sum of these decoders and compressors");
  }

  private static void regions() {
    count("region.hits", "reads", "of map outputs served from the chunk cache");
    count("region.minorFaults", "reads", "of map outputs served from the page cache");
    count("region.majorFaults", "reads", "of map outputs served from the storage device");
    count("region.prefetched", "chunks", "of map outputs read into the chunk cache before a request");
    count("region.prefetchHits", "reads", "of `region.hits` served from prefetched chunks");
    count("region.evictions", "chunks", "dropped from the chunk cache to make room for another chunk");
    count("region.pagesReleased", "pages", "of the chunk cache given back to the arena because memory was short");
    level("region.cachedChunks", "chunks", "in the chunk cache now");
    level("region.cachedBytes", "bytes", "of the arena used by the chunk cache now");
  }

  private static void fallBacks() {
    count("fallbacks", "requests", "with blocks left to Spark's own fetch");
    count("fallbackBlocks", "blocks", "left to Spark's own fetch");
    count("failedBlocks", "blocks", "reported to Spark as failed, because the fall-back was not allowed or failed too");
    count("lateBlocks", "blocks", "that arrived after their request had ended; dropped");
    count("cancelledRequests", "requests", "cancelled because their task had ended or was killed");
    count("cardLookups", "look-ups", "of peers' endpoint cards");
    reason("cardMissing", "the peer has no endpoint card");
    reason("cardTimeout", "looking up the peer's card took too long");
    reason("executorGone", "the executor has ended; the external shuffle service has its map outputs");
    reason("peerBackoff", "a request to the peer failed shortly before");
    reason("unreachable", "connecting to the peer failed");
    reason("connectionLost", "the connection broke");
    reason("timedOut", "`spark.faro.request.timeout` passed");
    reason("unresponsive", "the native library did not answer");
    reason("corrupt", "bytes arrived damaged, twice");
    reason("poolExhausted", "`spark.faro.memory.limit` was used up");
    reason("refused", "the peer was overloaded");
    reason("protocol", "the peer broke the protocol");
    reason("closing", "the executor was stopping");
    reason("cancelled", "the task cancelled the request");
    reason("blockStatus", "the peer could not read the blocks");
    reason("askedAgain", "Spark found the block damaged and asked for it again");
    reason("full", "too many requests were in flight");
    reason("other", "none of the above; see the log");
  }

  private static void rows() {
    count("rowReaders", "reads", "of a shuffle by a task whose rows native code decoded, see `spark.faro.reader`");
    count("groupedReaders", "reads", "of a shuffle by a task that deserialised groups of blocks as one stream each");
    sparks("setting", "`spark.faro.reader` is `spark`");
    sparks("serializer", "its serializer's objects cannot be moved within a stream, as with Java's serializer");
    sparks("encryption", "`spark.io.encryption.enabled` is true");
    sparks("codec", "streams of its codec cannot be joined; those of lz4, zstd, snappy and lzf can");
    sparks("oldProtocol", "`spark.shuffle.useOldFetchProtocol` is true");
    sparks("pushMerged", "push-based shuffle has merged its blocks");
    sparks("noAccess", "this Spark does not have what Faro's reader needs");
  }

  private static void writers() {
    count("rowWriters", "map tasks", "whose rows Faro's writer wrote, see `spark.faro.writer`");
    count("rowBlocks", "row blocks", "in the map outputs of these tasks, see `spark.faro.rowBlocks`");
    sparksWriter("setting", "`spark.faro.writer` is `spark`");
    sparksWriter("serializer", "its serializer is not Spark SQL's");
    sparksWriter("aggregation", "it combines or sorts while writing");
    sparksWriter("encryption", "`spark.io.encryption.enabled` is true");
    sparksWriter("codec", "its codec is neither lz4 nor zstd");
    sparksWriter("checksum", "its checksums are not ADLER32, CRC32 or CRC32C");
    sparksWriter("partitions", "it has too many partitions for a buffer of each");
    sparksWriter("noAccess", "this Spark does not have what Faro's writer needs");
  }

  private static void sorts() {
    count("sorts", "partitions", "that Faro sorted, see `spark.faro.sort`");
    count("sortRuns", "runs", "of sorted rows that moved to disk because the task's memory ended");
    for (SortDeclineReason why : SortDeclineReason.values()) {
      count(why.counter(), why.unit(), (why.isDrivers ? "in plans, counted by the driver, " : "")
          + "left to Spark's own sort: " + why.text);
    }
  }

  private static void sparksWriter(String name, String why) {
    count("sparkWriters." + name, "map tasks", "written by Spark's own writer: " + why);
  }

  private static void sparks(String name, String why) {
    count("sparkReaders." + name, "reads", "of a shuffle by Spark's own reader: " + why);
  }
}
