package io.faro.spark.ui;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * The columns of the executors' tables. One is shown if an executor has something else than 0 there.
 */
enum Column {
  VERBS_BLOCKS("Blocks verbs", "remoteBlocks.verbs", false),
  VERBS_BYTES("Bytes verbs", "remoteBytes.verbs", true),
  SHM_BLOCKS("Blocks shm", "remoteBlocks.shm", false),
  SHM_BYTES("Bytes shm", "remoteBytes.shm", true),
  TCP_BLOCKS("Blocks tcp", "remoteBlocks.tcp", false),
  TCP_BYTES("Bytes tcp", "remoteBytes.tcp", true),
  LEFT("Blocks left to Spark", "fallbackBlocks", false),
  HITS("Hits", "region.hits", false),
  MINOR_FAULTS("Minor faults", "region.minorFaults", false),
  MAJOR_FAULTS("Major faults", "region.majorFaults", false),
  EXCHANGE("Exchange", "exchange.policy", false),
  PEERS("Most active peers", "exchange.activePeersHighWater", false),
  ROUNDS("Rounds", "exchange.rounds", false),
  RETRIES("Retries", "retries", false),
  SORTS("Partitions sorted", "sorts", false),
  CRC("CRC errors", "crcErrors", false),
  MEMORY("Memory taken", "pool.mappedBytes", true),
  REGISTERED("Registered memory", "pool.registeredBytes", true),
  HIGH_WATER("Most ever in use", "pool.highWaterBytes", true),
  CAP("Cap", "pool.limitBytes", true),
  DECODERS("Row decoders", "memory.rowDecoderBytes", true),
  IDLE_DECODERS("Idle row decoders", "memory.idleRowDecoderBytes", true),
  NATIVE("All native memory", "memory.totalBytes", true),
  NATIVE_HIGH_WATER("Most native memory", "memory.totalHighWaterBytes", true);

  /** By the values of {@code exchange.policy}, from 1 on. */
  private static final List<String> POLICIES = Arrays.asList("random", "rotated", "grouped");

  final String head;
  private final String counter;
  private final boolean bytes;
  private final boolean ofMemory;

  Column(String head, String counter, boolean bytes) {
    this.head = head;
    this.counter = counter;
    this.bytes = bytes;
    this.ofMemory = counter.startsWith("pool.") || counter.startsWith("memory.");
  }

  /** {@code sums}: of each counter, over all executors; {@code ofMemory}: for the table of native memory. */
  static List<Column> present(Map<String, Long> sums, boolean ofMemory) {
    List<Column> present = new ArrayList<>();
    for (Column column : values()) {
      if (column.ofMemory == ofMemory && sums.getOrDefault(column.counter, 0L) != 0) {
        present.add(column);
      }
    }
    return present;
  }

  void write(Html html, Map<String, Long> counters) {
    Long value = counters.get(counter);
    if (value == null) {
      html.cell(-1, "");
    } else if (this == EXCHANGE) {
      html.cell(value, value >= 1 && value <= POLICIES.size() ? POLICIES.get((int) (value - 1)) : "");
    } else if (bytes) {
      html.bytesCell(value);
    } else {
      html.cell(value);
    }
  }
}
