package io.faro.spark.rows;

import io.faro.rows.MemorySlices;
import io.faro.rows.RowReader;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.spark.TaskContext;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A group of parts that Spark's iterator has fetched, decoded where its bytes lie. */
final class GroupInput implements Input {
  private static final Logger LOG = LoggerFactory.getLogger(GroupInput.class);

  private final GroupBuffer buffer;
  /** Closing it tells Spark's iterator that the group was read. */
  private final InputStream handle;
  private final PartClient client;
  private final PartFailure failure;
  private final TaskContext context;
  private final MemorySlices slices;
  private final Group group;
  /** The first part that was not given to the reader, and the first of those that it has. */
  private int next;
  private int first;
  /** Part {@code againAt} anew, after it arrived damaged; {@code null}: no part did. */
  private ManagedBuffer again;
  private int againAt = -1;
  /** Copies of parts that were on the heap; the reader has only their addresses. */
  private final List<ByteBuffer> copies = new ArrayList<>();
  private boolean closed;

  GroupInput(GroupBuffer buffer, InputStream handle, PartClient client, PartFailure failure, TaskContext context,
      MemorySlices slices) {
    this.buffer = buffer;
    this.handle = handle;
    this.client = client;
    this.failure = failure;
    this.context = context;
    this.slices = slices;
    this.group = buffer.group;
  }

  @Override
  public boolean feed(RowReader reader) throws FetchFailedException {
    if (next == group.parts.count()) {
      return false;
    }
    if (next > againAt) {
      dropAgain();
    }
    slices.clear();
    copies.clear();
    first = next;
    if (again != null) {
      add(again);
      next++;
    }
    for (; next < group.parts.count() && again == null; next++) {
      ManagedBuffer part = buffer.part(next);
      if (part == null || part.size() == 0) {
        if (next > first) {
          break;
        }
        if (part == null) {
          throw failure.failed(group.address, group.parts, next, "not fetched", buffer.cause(next));
        }
        throw failure.corrupt(group.address, group.parts, next, "no bytes arrived", part);
      }
      add(part);
    }
    reader.input(slices);
    return true;
  }

  private void add(ManagedBuffer part) {
    if (part instanceof NativeBytes) {
      ((NativeBytes) part).addTo(slices);
      return;
    }
    try {
      ByteBuffer bytes = part.nioByteBuffer();
      if (!bytes.isDirect()) {
        ByteBuffer direct = ByteBuffer.allocateDirect(bytes.remaining());
        direct.put(bytes);
        direct.flip();
        copies.add(direct);
        bytes = direct;
      }
      slices.add(bytes, bytes.position(), bytes.remaining());
      slices.endPart();
    } catch (IOException e) {
      throw new IllegalStateException("a fetched part cannot be read", e);
    }
  }

  @Override
  public void failed(int part, String problem, boolean corrupt, boolean handedOut) throws FetchFailedException {
    int at = first + part;
    ManagedBuffer bytes = again == null ? buffer.part(at) : again;
    if (handedOut || at == againAt) {
      throw failure.corrupt(group.address, group.parts, at, problem, bytes);
    }
    LOG.warn("Faro: block {} of {} is corrupt ({}) and is fetched once more", group.parts.id(at), group.address,
        problem);
    dropAgain();
    again = fetchAgain(at);
    againAt = at;
    next = at;
  }

  private ManagedBuffer fetchAgain(int at) throws FetchFailedException {
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

  private void dropAgain() {
    if (again != null) {
      again.release();
      again = null;
    }
  }

  @Override
  public void close() throws IOException {
    if (!closed) {
      closed = true;
      dropAgain();
      slices.clear();
      handle.close();
    }
  }
}
