package io.faro.bench;

import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.BlockStoreClient;

/**
 * One client of the ladder, which acts like a reduce task: it keeps a few requests in flight, takes blocks from a queue
 * of the same kind as that of Spark's fetch iterator (a LinkedBlockingDeque since 4.1), reads each in bulk through its
 * stream and releases it. All sides use this code.
 */
final class Requester implements Runnable {
  /** As in Spark, each request may have a fifth of the bytes in flight. */
  private static final int REQUESTS_IN_FLIGHT = 5;
  private static final long DEADLINE_SECONDS = 60;

  private final BlockStoreClient client;
  private final Owner owner;
  private final List<String[]> requests;
  private final int requestKib;
  private final int blockBytes;
  private final Semaphore kibInFlight;
  private final ShuffleFiles check;
  private final LinkedBlockingDeque<Result> results = new LinkedBlockingDeque<>();
  private final byte[] chunk = new byte[64 << 10];

  private int next;
  private long untilNanos;
  private int requestsLeft;
  private int inFlight;
  long blocks;
  long bytes;
  Throwable failure;

  /** {@code check} is null if the bytes are not compared. */
  Requester(BlockStoreClient client, Owner owner, Shape shape, List<String[]> requests, int first,
      Semaphore kibInFlight, ShuffleFiles check) {
    this.client = client;
    this.owner = owner;
    this.requests = requests;
    this.next = first;
    this.blockBytes = shape.blockBytes;
    this.requestKib = Math.max(1, (int) ((long) shape.blockBytes * shape.blocksPerRequest >> 10));
    this.kibInFlight = kibInFlight;
    this.check = check;
  }

  /**
   * Sets when to stop: after {@code nanos}, or when {@code max} requests were issued. All issued requests are awaited.
   */
  void limit(long nanos, int max) {
    untilNanos = nanos;
    requestsLeft = max;
  }

  @Override
  public void run() {
    try {
      while (inFlight > 0 || mayIssue()) {
        // The clock is read last: otherwise it would be read for every block.
        while (inFlight < REQUESTS_IN_FLIGHT && mayIssue() && acquire()) {
          issue();
        }
        if (inFlight > 0) {
          take();
        }
      }
    } catch (Throwable e) {
      failure = e;
    }
  }

  private boolean mayIssue() {
    return requestsLeft > 0 && System.nanoTime() - untilNanos < 0;
  }

  /**
   * Takes the request's share of the bytes in flight. With no request in flight it has nothing to consume, so it waits
   * until other clients release theirs.
   */
  private boolean acquire() throws InterruptedException, TimeoutException {
    if (inFlight > 0) {
      return kibInFlight.tryAcquire(requestKib);
    }
    if (!kibInFlight.tryAcquire(requestKib, DEADLINE_SECONDS, TimeUnit.SECONDS)) {
      throw new TimeoutException("no room in flight within " + DEADLINE_SECONDS + " s");
    }
    return true;
  }

  private void issue() {
    String[] ids = requests.get(next);
    next = next + 1 == requests.size() ? 0 : next + 1;
    requestsLeft--;
    inFlight++;
    client.fetchBlocks(owner.host, owner.port, owner.executor, ids, new Request(ids.length), null);
  }

  private void take() throws Exception {
    Result result = results.poll(DEADLINE_SECONDS, TimeUnit.SECONDS);
    if (result == null) {
      throw new TimeoutException("no block within " + DEADLINE_SECONDS + " s");
    }
    if (result.error != null) {
      throw new IOException(result.block + " was not fetched", result.error);
    }
    long length = read(result);
    if (length != blockBytes) {
      throw new IOException(result.block + " has " + length + " bytes instead of " + blockBytes);
    }
    blocks++;
    bytes += length;
    if (--result.request.left == 0) {
      inFlight--;
      kibInFlight.release(requestKib);
    }
  }

  private long read(Result result) throws IOException {
    long length = 0;
    try (InputStream in = result.data.createInputStream()) {
      for (int n = in.read(chunk, 0, chunk.length); n > 0; n = in.read(chunk, 0, chunk.length)) {
        if (check != null && !check.matches(result.block, (int) length, chunk, n)) {
          throw new IOException(result.block + ": other bytes than were written, at or after " + length);
        }
        length += n;
      }
    } finally {
      result.data.release();
    }
    return length;
  }

  /** The peer that requests go to. */
  static final class Owner {
    final String host;
    final int port;
    final String executor;

    Owner(String host, int port, String executor) {
      this.host = host;
      this.port = port;
      this.executor = executor;
    }
  }

  private static final class Result {
    final Request request;
    final String block;
    final ManagedBuffer data;
    final Throwable error;

    Result(Request request, String block, ManagedBuffer data, Throwable error) {
      this.request = request;
      this.block = block;
      this.data = data;
      this.error = error;
    }
  }

  /** Passes blocks to the task's thread, as Spark's listener does: one more reference, one queue entry. */
  private final class Request implements BlockFetchingListener {
    /** Number of blocks not yet consumed; only the requester's thread uses it. */
    int left;

    Request(int blocks) {
      left = blocks;
    }

    @Override
    public void onBlockFetchSuccess(String block, ManagedBuffer data) {
      data.retain();
      results.addLast(new Result(this, block, data, null));
    }

    @Override
    public void onBlockFetchFailure(String block, Throwable error) {
      results.addLast(new Result(this, block, null, error));
    }
  }
}
