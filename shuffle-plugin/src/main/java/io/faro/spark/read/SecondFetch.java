package io.faro.spark.read;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.spark.TaskContext;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Decides whether a part of a group that arrived damaged is fetched a second time, and fetches it. */
final class SecondFetch {
  private static final Logger LOG = LoggerFactory.getLogger(SecondFetch.class);

  private final PartClient client;
  private final PartFailure failure;
  private final TaskContext context;

  SecondFetch(PartClient client, PartFailure failure, TaskContext context) {
    this.client = client;
    this.failure = failure;
    this.context = context;
  }

  /**
   * Returns the bytes of part {@code at} from a second fetch; the caller owns their one reference. Throws what ends the
   * task if there may be none.
   *
   * @param bytes the corrupt ones
   * @param isSecond whether those are of a second fetch: there is no third
   * @param handedOut whether the task has rows or records of the part, which it would have twice
   */
  ManagedBuffer ofCorrupt(Group group, int at, String problem, ManagedBuffer bytes, boolean isSecond,
      boolean handedOut) throws FetchFailedException {
    if (isSecond || handedOut) {
      throw failure.corrupt(group.address, group.parts, at, problem, bytes);
    }
    return fetch(group, at, problem);
  }

  /** Waits for the bytes. */
  private ManagedBuffer fetch(Group group, int at, String problem) throws FetchFailedException {
    LOG.warn("Faro: block {} of {} is corrupt ({}) and is fetched once more", group.parts.id(at), group.address,
        problem);
    CompletableFuture<ManagedBuffer> arrival = new CompletableFuture<>();
    client.fetchAgain(group.address.host(), group.address.port(), group.address.executorId(), group.parts.only(at),
        new PartClient.Listener() {
          @Override
          public void arrived(int part, ManagedBuffer bytes) {
            if (!arrival.complete(bytes)) {
              bytes.release();
            }
          }

          @Override
          public void failed(int part, Throwable cause) {
            arrival.completeExceptionally(cause);
          }
        });
    boolean taken = false;
    try {
      ManagedBuffer bytes = TaskWait.get(arrival, context);
      taken = true;
      return bytes;
    } catch (ExecutionException e) {
      throw failure.failed(group.address, group.parts, at, "corrupt, and not fetched once more", e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("the task was interrupted while it waited for " + group.parts.id(at), e);
    } finally {
      if (!taken && !arrival.cancel(false)) {
        // It came in the same moment.
        arrival.thenAccept(ManagedBuffer::release);
      }
    }
  }
}
