package io.faro.spark.read;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.spark.TaskContext;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Fetches a part of a group once more, after it arrived damaged. */
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

  /** Waits for the bytes of part {@code at}; the caller owns their one reference. {@code problem} is for the log. */
  ManagedBuffer fetch(Group group, int at, String problem) throws FetchFailedException {
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
