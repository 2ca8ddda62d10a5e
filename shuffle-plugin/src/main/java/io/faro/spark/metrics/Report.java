package io.faro.spark.metrics;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * A report of an executor to the driver. It is sent as bytes and not as an object, because the class loader of the
 * driver's RPC threads may not have this class. Counters are totals, so the next report replaces a lost one. Shuffles
 * and the node services of hosts have what was added since the last report, so that the driver keeps one entry for each
 * and not one for each and executor. The {@code number} of a repeated report is the same.
 *
 * <pre>
 *   u8 version | utf executor | utf host | i64 number | utf problem
 *   | i32 n { utf name, i64 value }              counters
 *   | i32 n { i32 id, i32 n { utf, i64 } }       shuffles
 *   | i32 n { utf host, i32 n { utf, i64 } }   node services
 *   | i32 n { utf peer, i64 requests, i64 blocks, i64 bytes, i64 nanos, i64 slowest }
 * </pre>
 */
public final class Report {
  static final int VERSION = 3;
  private static final int MAX_PROBLEM = 500;
  static final int MAX_COUNTERS = 512;
  static final int MAX_SHUFFLES = 64;
  static final int MAX_SERVICES = 64;
  static final int MAX_PEERS = 8;

  public String executor = "";
  public String host = "";
  public long number;
  /** The reason why Faro does not run in this executor; empty: it does. */
  public String problem = "";
  public Map<String, Long> counters = new TreeMap<>();
  public Map<Integer, Map<String, Long>> shuffles = new LinkedHashMap<>();
  public Map<String, Map<String, Long>> services = new LinkedHashMap<>();
  public List<PeerFigures> peers = new ArrayList<>();

  byte[] encode() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeByte(VERSION);
    out.writeUTF(executor);
    out.writeUTF(host);
    out.writeLong(number);
    out.writeUTF(problem.substring(0, Math.min(MAX_PROBLEM, problem.length())));
    write(out, counters);
    out.writeInt(shuffles.size());
    for (Map.Entry<Integer, Map<String, Long>> shuffle : shuffles.entrySet()) {
      out.writeInt(shuffle.getKey());
      write(out, shuffle.getValue());
    }
    out.writeInt(services.size());
    for (Map.Entry<String, Map<String, Long>> service : services.entrySet()) {
      out.writeUTF(service.getKey());
      write(out, service.getValue());
    }
    out.writeInt(peers.size());
    for (PeerFigures peer : peers) {
      out.writeUTF(peer.peer);
      out.writeLong(peer.requests);
      out.writeLong(peer.blocks);
      out.writeLong(peer.bytes);
      out.writeLong(peer.nanos);
      out.writeLong(peer.slowestNanos);
    }
    return bytes.toByteArray();
  }

  private static void write(DataOutputStream out, Map<String, Long> figures) throws IOException {
    out.writeInt(figures.size());
    for (Map.Entry<String, Long> figure : figures.entrySet()) {
      out.writeUTF(figure.getKey());
      out.writeLong(figure.getValue());
    }
  }

  /** Reads a report; throws for one of another version or with too many entries. */
  public static Report decode(byte[] bytes) throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
    int version = in.readUnsignedByte();
    if (version != VERSION) {
      throw new IOException("a report of version " + version + ", this driver reads " + VERSION);
    }
    Report report = new Report();
    report.executor = in.readUTF();
    report.host = in.readUTF();
    report.number = in.readLong();
    report.problem = in.readUTF();
    report.counters = read(in);
    for (int left = count(in, "shuffles", MAX_SHUFFLES); left > 0; left--) {
      report.shuffles.put(in.readInt(), read(in));
    }
    for (int left = count(in, "services", MAX_SERVICES); left > 0; left--) {
      report.services.put(in.readUTF(), read(in));
    }
    for (int left = count(in, "peers", MAX_PEERS); left > 0; left--) {
      PeerFigures peer = new PeerFigures();
      peer.peer = in.readUTF();
      peer.requests = in.readLong();
      peer.blocks = in.readLong();
      peer.bytes = in.readLong();
      peer.nanos = in.readLong();
      peer.slowestNanos = in.readLong();
      report.peers.add(peer);
    }
    return report;
  }

  private static Map<String, Long> read(DataInputStream in) throws IOException {
    Map<String, Long> figures = new TreeMap<>();
    for (int left = count(in, "counters", MAX_COUNTERS); left > 0; left--) {
      figures.put(in.readUTF(), in.readLong());
    }
    return figures;
  }

  private static int count(DataInputStream in, String what, int max) throws IOException {
    int count = in.readInt();
    if (count < 0 || count > max) {
      throw new IOException("a report of " + count + " " + what + ", 0 to " + max + " are allowed");
    }
    return count;
  }
}
