package io.faro.spark.read.rows;

import io.faro.rows.MemorySlices;
import io.faro.rows.RowReader;
import io.faro.spark.read.groups.StreamPart;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.spark.shuffle.FetchFailedException;

/** The rows of a part that Spark hands over as the stream of a file. */
final class StreamRows implements RowSource {
  /** Memory for the bytes on their way to native code, of one task. */
  static final class Chunk {
    private static final int BYTES = 64 << 10;

    private ByteBuffer memory;
    private byte[] heap;
    private final MemorySlices slices = new MemorySlices();

    private ByteBuffer memory() {
      if (memory == null) {
        memory = ByteBuffer.allocateDirect(BYTES);
      }
      return memory;
    }

    private byte[] heap() {
      if (heap == null) {
        heap = new byte[BYTES];
      }
      return heap;
    }
  }

  private final StreamPart part;
  private final Chunk chunk;
  private boolean ended;

  StreamRows(StreamPart part, Chunk chunk) {
    this.part = part;
    this.chunk = chunk;
  }

  @Override
  public boolean feed(RowReader reader) throws FetchFailedException {
    if (ended) {
      return false;
    }
    int bytes = read();
    chunk.slices.clear();
    if (bytes > 0) {
      ByteBuffer memory = chunk.memory();
      memory.clear();
      memory.put(chunk.heap(), 0, bytes);
      chunk.slices.add(memory, 0, bytes);
    } else if (bytes < 0) {
      ended = true;
      chunk.slices.endPart();
    }
    reader.input(chunk.slices);
    return true;
  }

  private int read() throws FetchFailedException {
    try {
      return part.read(chunk.heap(), 0, Chunk.BYTES);
    } catch (IOException e) {
      throw part.unreadable(e);
    }
  }

  @Override
  public void failed(int at, String problem, boolean corrupt, boolean handedOut) throws FetchFailedException {
    FetchFailedException failed;
    try {
      failed = part.corrupt(problem, chunk.heap());
    } catch (IOException e) {
      throw part.unreadable(e);
    }
    throw failed;
  }

  @Override
  public void close() throws IOException {
    part.close();
  }
}
