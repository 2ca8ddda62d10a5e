package io.faro.spark.transport;

import io.faro.BlockBatch;
import io.faro.BlockBytes;
import io.faro.BlockIds;
import io.faro.BlockStatus;
import io.faro.Endpoint;
import io.faro.Fabric;
import io.faro.FaroException;
import io.faro.FetchException;
import io.faro.FetchHandle;
import io.faro.FetchListener;
import io.faro.OutputFiles;
import io.faro.StagedOutput;
import io.faro.rows.MemorySlices;
import java.io.InputStream;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.apache.spark.network.buffer.ManagedBuffer;

/** {@link FaroTransport} on a native endpoint: translates types and does nothing else. */
public final class EndpointTransport implements FaroTransport {
  private final Endpoint endpoint;

  public EndpointTransport(Endpoint endpoint) {
    this.endpoint = endpoint;
  }

  @Override
  public int maxBlocks() {
    return BlockIds.MAX_BLOCKS;
  }

  @Override
  public byte[] card() throws FaroException {
    return endpoint.card();
  }

  @Override
  public long addPeer(byte[] card, List<InetAddress> knownAt) throws FaroException {
    return endpoint.addPeer(card, knownAt);
  }

  @Override
  public Fetch fetch(long peer, ShuffleIds ids, Sink sink) throws FaroException {
    BlockIds blocks = BlockIds.local();
    for (int i = 0; i < ids.count(); i++) {
      blocks.add(ids.shuffle(i), ids.map(i), ids.start(i), ids.end(i), ids.piece());
    }
    FetchHandle handle = endpoint.fetch(peer, blocks, 0, new Listener(sink));
    return handle::cancel;
  }

  @Override
  public StagedOutput stage() {
    return endpoint.stage();
  }

  @Override
  public void committed(int shuffleId, long mapId, OutputFiles files, StagedOutput staged) {
    endpoint.committed(shuffleId, mapId, files, staged);
  }

  @Override
  public void forgetShuffle(int shuffleId) {
    endpoint.forgetShuffle(shuffleId);
  }

  @Override
  public Map<String, Long> counters() {
    return endpoint.counters();
  }

  @Override
  public void close() {
    endpoint.close();
  }

  private static final class Listener implements FetchListener {
    private final Sink sink;

    Listener(Sink sink) {
      this.sink = sink;
    }

    @Override
    public void onBlocks(BlockBatch batch) {
      sink.onBlocks(new NativeBatch(batch));
    }

    @Override
    public void onError(int firstBlock, int blockCount, FetchException error) {
      sink.onError(firstBlock, blockCount, error);
    }

    @Override
    public void onComplete() {
      sink.onComplete();
    }
  }

  private static final class NativeBatch implements Batch {
    private final BlockBatch batch;

    NativeBatch(BlockBatch batch) {
      this.batch = batch;
    }

    @Override
    public int first() {
      return batch.firstBlock();
    }

    @Override
    public int count() {
      return batch.count();
    }

    @Override
    public Fabric fabric() {
      return batch.fabric();
    }

    @Override
    public String problem(int i) {
      BlockStatus status = batch.status(i);
      return status == BlockStatus.OK ? null : status.name();
    }

    @Override
    public ManagedBuffer take(int i) {
      BlockBytes bytes = batch.take(i);
      ManagedBuffer copy = batch.scarce() ? CopiedBlock.of(bytes) : null;
      return copy == null ? new FaroManagedBuffer(new NativeMemory(bytes)) : copy;
    }
  }

  private static final class NativeMemory implements BlockMemory {
    private final BlockBytes bytes;

    NativeMemory(BlockBytes bytes) {
      this.bytes = bytes;
    }

    @Override
    public long length() {
      return bytes.length();
    }

    @Override
    public void retain() {
      bytes.retain();
    }

    @Override
    public void release() {
      bytes.release();
    }

    @Override
    public InputStream inputStream() {
      return bytes.inputStream();
    }

    @Override
    public ByteBuffer nioByteBuffer() {
      return bytes.nioByteBuffer();
    }

    @Override
    public void addTo(MemorySlices slices) {
      bytes.addTo(slices);
    }
  }
}
