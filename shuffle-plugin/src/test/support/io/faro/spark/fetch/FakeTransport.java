package io.faro.spark.fetch;

import io.faro.BlockBatch;
import io.faro.BlockBytes;
import io.faro.BlockIds;
import io.faro.BlockStatus;
import io.faro.Fabric;
import io.faro.FaroException;
import io.faro.FetchListener;
import io.faro.spark.transport.FaroTransport;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.IntFunction;

/** A transport in which nothing happens but what the test makes happen. */
final class FakeTransport implements FaroTransport {
  final List<StartedFetch> started = new ArrayList<>();
  final List<FakeMemory> memory = new ArrayList<>();
  /** The peers that the endpoint backs off from. */
  final Set<Long> backedOff = new HashSet<>();
  final List<Long> blamed = new ArrayList<>();
  int maxBlocks = 1_000;
  int cancelled;
  FaroException refuse;
  RuntimeException takeFails;

  static final class StartedFetch {
    final long peer;
    final BlockIds ids;
    final FetchListener listener;
    final boolean verifies;

    StartedFetch(long peer, BlockIds ids, FetchListener listener, boolean verifies) {
      this.peer = peer;
      this.ids = ids;
      this.listener = listener;
      this.verifies = verifies;
    }
  }

  StartedFetch last() {
    return started.get(started.size() - 1);
  }

  /** The only block of a request arrives with this content. */
  void arrive(StartedFetch fetch, String content) {
    arrive(fetch, 0, 1, at -> content);
  }

  /** Blocks {@code first} to {@code first + count - 1} arrive, each with its position as its content. */
  void arrive(StartedFetch fetch, int first, int count, int... refused) {
    arrive(fetch, first, count, at -> "block " + at, refused);
  }

  private void arrive(StartedFetch fetch, int first, int count, IntFunction<String> content, int... refused) {
    fetch.listener.onBlocks(new BlockBatch() {
      @Override
      public long request() {
        return 1;
      }

      @Override
      public int firstBlock() {
        return first;
      }

      @Override
      public int count() {
        return count;
      }

      @Override
      public Fabric fabric() {
        return Fabric.TCP;
      }

      @Override
      public boolean scarce() {
        return false;
      }

      @Override
      public BlockStatus status(int i) {
        for (int at : refused) {
          if (at == first + i) {
            return BlockStatus.UNKNOWN_OUTPUT;
          }
        }
        return BlockStatus.OK;
      }

      @Override
      public long length(int i) {
        return bytes(i).length;
      }

      @Override
      public BlockBytes take(int i) {
        if (takeFails != null) {
          throw takeFails;
        }
        FakeMemory taken = new FakeMemory(bytes(i));
        memory.add(taken);
        return taken;
      }

      private byte[] bytes(int i) {
        return content.apply(first + i).getBytes(StandardCharsets.UTF_8);
      }
    });
  }

  int references() {
    return memory.stream().mapToInt(m -> m.references).sum();
  }

  @Override
  public int maxBlocks() {
    return maxBlocks;
  }

  @Override
  public long addPeer(byte[] card, List<InetAddress> knownAt) {
    return card[0];
  }

  @Override
  public Fetch fetch(long peer, BlockIds ids, FetchListener listener, boolean verifies) throws FaroException {
    if (refuse != null) {
      throw refuse;
    }
    started.add(new StartedFetch(peer, ids, listener, verifies));
    return () -> cancelled++;
  }

  @Override
  public boolean isBackedOff(long peer) {
    return backedOff.contains(peer);
  }

  @Override
  public void blame(long peer) {
    blamed.add(peer);
  }
}
