package io.faro.spark.read;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.spark.TaskContext;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.BlockManagerId;

/** Fetches one part over the network, and waits for it. */
final class PartFetch {
  private final PartClient client;
  private final TaskContext context;

  PartFetch(PartClient client, TaskContext context) {
    this.client = client;
    this.context = context;
  }

  /**
   * The bytes of part {@code at}; the caller owns their one reference.
   *
   * @param again whether the bytes arrived damaged: by another way then
   * @throws ExecutionException the part does not arrive, for this cause
   */
  ManagedBuffer fetch(BlockManagerId address, Parts parts, int at, boolean again) throws ExecutionException {
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
    if (again) {
      client.fetchAgain(address.host(), address.port(), address.executorId(), parts.only(at), listener);
    } else {
      client.fetch(address.host(), address.port(), address.executorId(), parts.only(at), listener);
    }
    boolean taken = false;
    try {
      ManagedBuffer bytes = TaskWait.get(arrival, context);
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
