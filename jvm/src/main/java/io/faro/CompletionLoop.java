package io.faro;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Body of {@code faro-completions}: takes records of finished blocks from a native queue, many with one JNI call, and
 * calls their listeners. All records of a fetch are in one queue, and a queue has one thread. That keeps the blocks of
 * a fetch in order without a lock per block. A listener delays the other fetches of its queue, so it must be short.
 * Errors of listeners and records do not end the thread. It ends with the endpoint, or if native code fails {@value
 * #MAX_FAILURES} times in a row.
 */
final class CompletionLoop implements Runnable {
  private static final Logger LOG = LoggerFactory.getLogger(CompletionLoop.class);

  static final int MAX_FAILURES = 8;
  private static final int BUFFER_BYTES = 1 << 20;
  private static final long WAIT_MILLIS = 250;
  private static final int CLOSED = -1;

  private final long endpoint;
  private final int queue;
  private final Requests requests;
  private final Arena arena;

  CompletionLoop(long endpoint, int queue, Requests requests, Arena arena) {
    this.endpoint = endpoint;
    this.queue = queue;
    this.requests = requests;
    this.arena = arena;
  }

  private static ByteBuffer allocate(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  @Override
  public void run() {
    ByteBuffer records = allocate(BUFFER_BYTES);
    int failures = 0;
    while (failures < MAX_FAILURES) {
      try {
        int bytes = Native.completions(endpoint, queue, records, WAIT_MILLIS);
        failures = 0;
        if (bytes == CLOSED) {
          return;
        }
        if (bytes < CLOSED) {
          records = allocate(-bytes);
        } else {
          deliverAll(records, bytes);
        }
      } catch (EndpointException.Closed e) {
        return;
      } catch (Throwable t) {
        failures++;
        LOG.error("Taking completions from native code failed ({} of {} times in a row)", failures, MAX_FAILURES, t);
        abandonAll(requests, FetchError.PROTOCOL, "completions are lost: " + t);
      }
    }
    LOG.error("This process fetches no more blocks through Faro");
    abandonRest(requests, "completions fail");
  }

  /** Delivers the whole records in the first {@code bytes} bytes. */
  void deliverAll(ByteBuffer records, int bytes) {
    for (int at = 0; at < bytes; ) {
      int length = RecordDescriptor.checkedBytes(records, at, bytes - at);
      deliver(records, at);
      at += length;
    }
  }

  private void deliver(ByteBuffer records, int at) {
    long request = RecordDescriptor.request(records, at);
    FetchHandle handle = requests.find(request);
    int outcome = RecordDescriptor.outcome(records, at);
    if (outcome == 0) {
      deliverBlocks(records, at, handle);
    } else if (handle != null) {
      handle.failed(
          FetchError.ofCode(outcome),
          RecordDescriptor.firstBlock(records, at),
          RecordDescriptor.blockCount(records, at),
          RecordDescriptor.detail(records, at));
    }
    if (handle != null && RecordDescriptor.last(records, at)) {
      requests.remove(request);
      handle.completed();
    }
  }

  private void deliverBlocks(ByteBuffer records, int at, FetchHandle handle) {
    ArenaBatch batch = null;
    try {
      if (handle != null) {
        batch = ArenaBatch.decode(records, at, arena);
      }
    } catch (Throwable t) {
      LOG.error("Blocks of request {} cannot be delivered", handle.request(), t);
      handle.failed(
          FetchError.PROTOCOL,
          RecordDescriptor.firstBlock(records, at),
          RecordDescriptor.blockCount(records, at),
          "blocks arrived but cannot be delivered: " + t);
    } finally {
      long memory = RecordDescriptor.batch(records, at);
      if (batch == null && memory != 0) {
        arena.release(memory, 0, RecordDescriptor.sliceCount(records, at));
      }
    }
    if (batch != null) {
      handle.blocks(batch);
    }
  }

  private static void abandonAll(Requests requests, FetchError why, String detail) {
    for (FetchHandle handle : requests.takeAll()) {
      handle.abandon(why, detail);
    }
  }

  /** Ends all fetches that are left, and accepts no more. */
  static void abandonRest(Requests requests, String detail) {
    for (FetchHandle handle : requests.end()) {
      handle.abandon(FetchError.CLOSING, detail);
    }
  }
}
