package io.faro.spark.ui;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What each counter means: the source of docs/metrics.md, and what tells levels from counts. A counter that is not here
 * works all the same, as a count; a test finds it.
 */
final class Metric {
  /** How a value behaves. */
  enum Kind {
    /** Only ever grows. */
    COUNT,
    /** Goes up and down, or is a highest value. */
    LEVEL
  }

  static final List<Metric> ALL;
  private static final Map<String, Metric> BY_NAME = new LinkedHashMap<>();

  final String name;
  final Kind kind;
  final String unit;
  final String doc;

  private Metric(String name, Kind kind, String unit, String doc) {
    this.name = name;
    this.kind = kind;
    this.unit = unit;
    this.doc = doc;
  }

  static boolean isLevel(String name) {
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
    count("remoteBlocks." + name, "blocks", "arrived whole over " + what);
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
    memory();
    regions();
    fallBacks();
    ALL = Collections.unmodifiableList(new ArrayList<>(BY_NAME.values()));
  }

  private static void requests() {
    count("requests", "requests", "started");
    count("requestsFailed", "requests", "that ended in an error");
    count("retries", "requests", "sent again after a fault");
    count("demotions", "routes", "(a peer over one fabric) put to rest after a fault");
    count("connectionsGivenUp", "connections", "of two that two executors made to each other at the same time");
    count("crcErrors", "chunks", "of which the checksum disagreed; fetched again");
    count("timeouts", "requests", "that passed `spark.faro.request.timeout`");
    count("servedRequests", "requests", "of peers that were served");
    count("busyRefusals", "requests", "of peers refused, because too many were waiting");
    count("blocksRefused", "blocks", "that peers asked for and that are not here");
    count("lateMessages", "messages", "for requests that had ended; dropped");
    count("collectiveRounds", "rounds", "of collectives that ended well, one for each member here");
    count("collectiveRoundsFailed", "rounds", "of collectives that did not");
    count("collectiveBytes", "bytes", "of arrays sent to other members");
    count("pullsOffered", "requests", "of peers answered by telling where the bytes lie in memory");
    count("pulls", "requests", "whose bytes were pulled: read from the owner's memory one-sidedly");
    count("pullsStale", "requests", "of these, of which some bytes had been replaced; fetched the other way");
    level("openOutputs", "files", "map outputs that are open to be served");
  }

  private static void exchange() {
    level("exchange.members", "endpoints", "that the schedule is made of, this one among them");
    level("exchange.activePeers", "peers", "with requests of this executor under way now");
    level("exchange.activePeersHighWater", "peers", "most that this ever were");
    level("exchange.fanIn", "peers", "that are served now");
    level("exchange.fanInHighWater", "peers", "most that were ever served at once");
    level("exchange.pairsInUse", "pairs", "active or served now: queue pairs over RDMA");
    level("exchange.pairsInUseHighWater", "pairs", "most that were ever in use at once");
    count("exchange.rounds", "rounds", "of the schedule that were begun");
    count("exchange.waits", "requests", "that waited for others, see `spark.faro.exchange`");
  }

  private static void memory() {
    level("pool.limitBytes", "bytes", "`spark.faro.memory.limit`, the cap");
    level("pool.mappedBytes", "bytes", "native memory taken now");
    level("pool.restingBytes", "bytes", "of slabs that were idle for `spark.faro.memory.idleRelease`");
    level("pool.hugeSlabs", "slabs", "(16 MiB) on the machine's huge pages");
    level("pool.wrappedBytes", "bytes", "of memory outside the slabs that counts against the cap");
    level("pool.heldBytes", "bytes", "taken out of the slabs, in whole frames (256 KiB)");
    level("pool.fragmentationBytes", "bytes", "of these that nobody can use: the rest of frames that are cut");
    level("pool.leasedBytes", "bytes", "in use now");
    level("pool.highWaterBytes", "bytes", "most that was ever in use at once");
    count("pool.acquisitions", "leases", "given");
    count("pool.reuseHits", "leases", "given from memory that had been leased before");
    count("pool.exhausted", "requests", "for memory that found none left");
    count("pool.waits", "requests", "for memory that had to wait");
    count("pool.slabsMapped", "slabs", "taken from the system for the first time");
    count("pool.mapNanos", "nanoseconds", "spent on that");
    count("pool.givenBack", "slabs", "that were idle, given back to the system");
    count("pool.registrations", "registrations", "with the RDMA device");
    count("pool.registrationNanos", "nanoseconds", "spent on them");
    count("pool.deregistrations", "registrations", "with the RDMA device ended");
    level("pool.registeredBytes", "bytes", "registered with the RDMA device now");
    level("pool.registeredHighWaterBytes", "bytes", "most that was ever registered at once");
  }

  private static void regions() {
    count("region.resident", "pieces", "of map outputs served from a frame (a hit)");
    count("region.minor", "pieces", "served from the page cache (a minor fault)");
    count("region.major", "pieces", "that came from the medium (a major fault)");
    count("region.staged", "chunks", "of map outputs brought into frames");
    count("region.stagedHits", "pieces", "found in a frame that was filled before anybody asked");
    count("region.evictions", "chunks", "that left a frame for another chunk");
    count("region.givenBack", "frames", "given back, because memory was short");
    level("region.residentChunks", "chunks", "in frames now");
    level("region.heldBytes", "bytes", "of the arena held by frames now");
  }

  private static void fallBacks() {
    count("fallbacks", "requests", "of which blocks were left to Spark's own fetch");
    count("fallbackBlocks", "blocks", "left to Spark's own fetch");
    count("failedBlocks", "blocks", "reported to Spark as failed, because nothing else was allowed or worked");
    count("lateBlocks", "blocks", "that came after their request had been given up; dropped");
    count("cardLookups", "look-ups", "of peers' endpoint cards");
    reason("cardMissing", "the peer has no endpoint card");
    reason("cardLate", "looking up the peer's card took too long");
    reason("peerRests", "the peer failed shortly before");
    reason("unreachable", "the peer could not be connected to");
    reason("connectionLost", "the connection broke");
    reason("timedOut", "`spark.faro.request.timeout` passed");
    reason("silent", "the native library did not answer");
    reason("corrupt", "bytes arrived damaged, twice");
    reason("poolExhausted", "`spark.faro.memory.limit` was used up");
    reason("refused", "the peer had too much to do");
    reason("protocol", "the peer did not keep to the protocol");
    reason("closing", "the executor was stopping");
    reason("cancelled", "the task gave it up");
    reason("blockStatus", "the peer could not give the blocks");
    reason("toDisk", "the request was to go to files, which Spark's own fetch does");
    reason("full", "too many requests were in flight");
    reason("other", "none of the above; see the log");
  }
}
