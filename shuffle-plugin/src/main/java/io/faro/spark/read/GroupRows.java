package io.faro.spark.read;

import io.faro.rows.MemorySlices;
import io.faro.rows.RowReader;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;

/** A group of parts that Spark's iterator has fetched, decoded where its bytes lie. */
final class GroupRows implements RowSource {
  private final GroupBuffer buffer;
  /** Closing it tells Spark's iterator that the group was read. */
  private final InputStream handle;
  private final SecondFetch repeat;
  private final PartFailure failure;
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

  GroupRows(GroupBuffer buffer, InputStream handle, SecondFetch repeat, PartFailure failure, MemorySlices slices) {
    this.buffer = buffer;
    this.handle = handle;
    this.repeat = repeat;
    this.failure = failure;
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
    dropAgain();
    again = repeat.fetch(group, at, problem);
    againAt = at;
    next = at;
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
