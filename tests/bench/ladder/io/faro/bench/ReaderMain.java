package io.faro.bench;

import io.faro.spark.fetch.FaroBlockStoreClient;
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import org.apache.spark.network.shuffle.BlockStoreClient;

/**
 * The process that reads. usage: ReaderMain DIRECTORY SIDE=HOW... It then reads one command per line from its input:
 *
 * <pre>
 * run SIDE SHAPE CLIENTS MILLIS    reads for so long:        done BLOCKS BYTES NANOS
 * check SIDE SHAPE                 reads and compares all:   done BLOCKS BYTES NANOS
 * counters SIDE                                              done name=value ...
 * </pre>
 * The answer to a command that fails is {@code failed} and a text.
 */
public final class ReaderMain {
  private static final int KIB_IN_FLIGHT = 48 << 10;

  /** The owner for a side whose card has the address, or that needs none. */
  private static final Requester.Owner NONE = new Requester.Owner(Addresses.OWNER, 1, "owner");

  private final ShuffleFiles files;
  private final Map<String, BlockStoreClient> clients = new HashMap<>();
  private final Map<String, LadderEndpoint> endpoints = new HashMap<>();
  private final Map<String, List<String[]>> requestsOf = new HashMap<>();
  private final Map<String, Requester.Owner> owners = new HashMap<>();

  private ReaderMain(File directory) {
    files = new ShuffleFiles(directory);
  }

  public static void main(String[] args) throws Exception {
    ReaderMain reader = new ReaderMain(new File(args[0]));
    for (int i = 1; i < args.length; i++) {
      int equals = args[i].indexOf('=');
      reader.open(args[i].substring(0, equals), args[i].substring(equals + 1));
    }
    System.out.println("ready");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String answer;
      try {
        answer = "done " + reader.obey(line.split(" "));
      } catch (Throwable e) {
        e.printStackTrace();
        answer = "failed " + rootOf(e);
      }
      System.out.println(answer.replace('\n', ' '));
    }
    System.exit(0);
  }

  private void open(String side, String how) throws Exception {
    if (side.startsWith("netty")) {
      owners.put(side, new Requester.Owner(Addresses.OWNER, Integer.parseInt(how), "owner"));
      clients.put(side, StockNetty.start(side, files));
    } else if (side.equals("free")) {
      clients.put(side, new MappedFilesClient(files));
    } else {
      LadderEndpoint endpoint = LadderEndpoint.start(side, files::data, files::index);
      endpoints.put(side, endpoint);
      FaroBlockStoreClient client = endpoint.clientOf(Base64.getDecoder().decode(how));
      clients.put(side, side.equals("faro-tcp-reader") ? new VerifyingClient(client) : client);
    }
  }

  private String obey(String[] words) throws Exception {
    if (words[0].equals("counters")) {
      return String.valueOf(endpoints.get(words[1]).counters());
    }
    boolean check = words[0].equals("check");
    Shape shape = new Shape(words[2]);
    int count = check ? 1 : Integer.parseInt(words[3]);
    List<String[]> requests = requestsOf.computeIfAbsent(words[2], key -> shape.requests());
    Semaphore inFlight = new Semaphore(KIB_IN_FLIGHT, true);
    List<Requester> all = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      Requester one = new Requester(clients.get(words[1]), owners.getOrDefault(words[1], NONE), shape, requests, requests.size() * i / count, inFlight,
          check ? files : null);
      all.add(one);
      threads.add(new Thread(one, "bench-client-" + i));
    }
    long start = System.nanoTime();
    long length = check ? 300_000_000_000L : Long.parseLong(words[4]) * 1_000_000;
    for (int i = 0; i < count; i++) {
      all.get(i).limit(start + length, check ? requests.size() : Integer.MAX_VALUE);
      threads.get(i).start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    long nanos = System.nanoTime() - start;
    long blocks = 0;
    long bytes = 0;
    for (Requester one : all) {
      if (one.failure != null) {
        throw new IllegalStateException(words[1], one.failure);
      }
      blocks += one.blocks;
      bytes += one.bytes;
    }
    if (check && blocks != (long) shape.maps * shape.reducers) {
      throw new IllegalStateException(blocks + " blocks instead of " + (long) shape.maps * shape.reducers);
    }
    return blocks + " " + bytes + " " + nanos;
  }

  private static String rootOf(Throwable error) {
    StringBuilder text = new StringBuilder();
    for (Throwable e = error; e != null; e = e.getCause()) {
      text.append(text.length() == 0 ? "" : " <- ").append(e);
    }
    return text.toString();
  }
}
