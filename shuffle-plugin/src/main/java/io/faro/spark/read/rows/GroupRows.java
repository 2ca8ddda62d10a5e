package io.faro.spark.read.rows;

import io.faro.rows.MemorySlices;
import io.faro.rows.RowReader;
import io.faro.spark.read.groups.FetchedGroup;
import io.faro.spark.read.groups.PartClient.NativeBytes;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;

/** The rows of a fetched group, decoded where its bytes lie. */
final class GroupRows implements RowSource {
  private final FetchedGroup fetched;
  private final MemorySlices slices;
  /** The first part that was not given to the reader, and the first of those that it has. */
  private int next;
  private int first;
  /** Copies of parts that were on the heap; the reader has only their addresses. */
  private final List<ByteBuffer> copies = new ArrayList<>();

  GroupRows(FetchedGroup fetched, MemorySlices slices) {
    this.fetched = fetched;
    this.slices = slices;
  }

  @Override
  public boolean feed(RowReader reader) throws FetchFailedException {
    if (next == fetched.count()) {
      return false;
    }
    if (!fetched.hasBytes(next)) {
      throw fetched.withoutBytes(next);
    }
    slices.clear();
    copies.clear();
    first = next;
    // A part without bytes ends the task when the rows of those before it were read.
    while (next < fetched.count() && fetched.hasBytes(next)) {
      add(fetched.part(next));
      next++;
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
    fetched.corrupt(first + part, problem, handedOut);
    next = first + part;
  }

  @Override
  public void close() throws IOException {
    slices.clear();
    fetched.close();
  }
}
