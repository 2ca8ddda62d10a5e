package io.faro.spark.read.groups;

import io.faro.spark.metrics.Reason;
import io.faro.spark.read.places.FetchWait;
import io.faro.spark.read.places.Parts;
import io.faro.spark.read.places.ReadPlan.Group;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.spark.TaskContext;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Decides whether a part of a group that arrived damaged is fetched a second time, and fetches it. */
public final class SecondFetch {
  private static final Logger LOG = LoggerFactory.getLogger(SecondFetch.class);

  private final PartClient client;
  private final TaskContext context;
  private final PartFailure failure;

  public SecondFetch(PartClient client, TaskContext context, PartFailure failure) {
    this.client = client;
    this.context = context;
    this.failure = failure;
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
    LOG.warn("Faro: block {} of {} is corrupt ({}) and is fetched once more", group.parts.id(at), group.address,
        problem);
    try {
      return anew(group.address, group.parts, at);
    } catch (ExecutionException e) {
      throw failure.failed(group.address, group.parts, at, "corrupt, and not fetched once more", e.getCause());
    }
  }

  /**
   * The bytes of part {@code at}, which arrived damaged, by another way; the caller owns their one reference.
   *
   * @throws ExecutionException the part does not arrive, for this cause
   */
  private ManagedBuffer anew(BlockManagerId address, Parts parts, int at) throws ExecutionException {
    CompletableFuture<ManagedBuffer> arrival = new CompletableFuture<>();
    BlockListener listener = new BlockListener() {
      @Override
      public void arrived(int part, ManagedBuffer bytes) {
        if (!arrival.complete(bytes)) {
          bytes.release();
        }
      }

      @Override
      public void left(int[] at, Reason reason, Throwable cause, boolean onTaskThread) {
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
