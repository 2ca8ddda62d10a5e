package io.faro.spark.read;

import io.faro.rows.MemorySlices;
import io.faro.rows.RowReader;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.zip.Checksum;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.storage.BlockManagerId;

/** A block that Spark hands over as a stream: of a file, as it lies there. */
final class StreamInput implements Input {
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

  private final InputStream stream;
  private final BlockManagerId address;
  private final Parts part;
  private final PartFailure failure;
  private final Chunk chunk;
  /** Of the bytes that were read; {@code null}: the part has none. */
  private final Checksum sum;
  private boolean ended;

  StreamInput(InputStream stream, BlockManagerId address, Parts part, PartFailure failure, Chunk chunk) {
    this.stream = stream;
    this.address = address;
    this.part = part;
    this.failure = failure;
    this.chunk = chunk;
    sum = failure.running(part, 0);
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
      int bytes = stream.read(chunk.heap());
      if (sum != null && bytes > 0) {
        sum.update(chunk.heap(), 0, bytes);
      }
      return bytes;
    } catch (IOException e) {
      throw failure.failed(address, part, 0, "its file cannot be read", e);
    }
  }

  @Override
  public void failed(int at, String problem, boolean corrupt, boolean handedOut) throws FetchFailedException {
    while (read() >= 0) {
      // The checksum is of all bytes.
    }
    throw failure.corrupt(address, part, 0, problem, sum == null ? null : (Long) sum.getValue());
  }

  @Override
  public void close() throws IOException {
    stream.close();
  }
}
