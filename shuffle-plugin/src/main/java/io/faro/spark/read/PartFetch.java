package io.faro.spark.read;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.spark.TaskContext;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.BlockManagerId;

/** Fetches one part once more over the network, and waits for it. */
final class PartFetch {
  private final PartClient client;
  private final TaskContext context;

  PartFetch(PartClient client, TaskContext context) {
    this.client = client;
    this.context = context;
  }

  /**
   * The bytes of part {@code at}, which arrived damaged, by another way; the caller owns their one reference.
   *
   * @throws ExecutionException the part does not arrive, for this cause
   */
  ManagedBuffer fetch(BlockManagerId address, Parts parts, int at) throws ExecutionException {
    CompletableFuture<ManagedBuffer> arrival = new CompletableFuture<>();
    PartClient.Listener listener = new PartClient.Listener() {
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
    };
    client.fetchAgain(address.host(), address.port(), address.executorId(), parts.only(at), listener);
    boolean taken = false;
    try {
      ManagedBuffer bytes = FetchWait.get(arrival, context);
      taken = true;
      return bytes;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      context.killTaskIfInterrupted();
      throw new IllegalStateException("the task was interrupted while it waited for " + parts.id(at), e);
    } finally {
      if (!taken && !arrival.cancel(false)) {
        // It came in the same moment.
        arrival.thenAccept(ManagedBuffer::release);
      }
    }
  }
}
