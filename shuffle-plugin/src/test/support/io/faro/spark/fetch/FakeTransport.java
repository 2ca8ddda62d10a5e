package io.faro.spark.fetch;

import io.faro.Fabric;
import io.faro.FaroException;
import io.faro.OutputFiles;
import io.faro.StagedOutput;
import io.faro.spark.transport.FaroManagedBuffer;
import io.faro.spark.transport.FaroTransport;
import io.faro.spark.transport.ShuffleIds;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import org.apache.spark.network.buffer.ManagedBuffer;

/** A transport in which nothing happens but what the test makes happen. */
final class FakeTransport implements FaroTransport {
  final List<Started> started = new ArrayList<>();
  final List<FakeMemory> memory = new ArrayList<>();
  final List<Integer> forgotten = new ArrayList<>();
  int maxBlocks = 1_000;
  int cancelled;
  FaroException refuse;
  RuntimeException takeFails;

  static final class Started {
    final long peer;
    final ShuffleIds ids;
    final Sink sink;

    Started(long peer, ShuffleIds ids, Sink sink) {
      this.peer = peer;
      this.ids = ids;
      this.sink = sink;
    }
  }

  Started last() {
    return started.get(started.size() - 1);
  }

  /** The only block of a request arrives with this content. */
  void arrive(Started fetch, String content) {
    arrive(fetch, 0, 1, at -> content);
  }

  /** Blocks {@code first} to {@code first + count - 1} arrive, each with its position as its content. */
  void arrive(Started fetch, int first, int count, int... refused) {
    arrive(fetch, first, count, at -> "block " + at, refused);
  }

  private void arrive(Started fetch, int first, int count, IntFunction<String> content, int... refused) {
    fetch.sink.onBlocks(new Batch() {
      @Override
      public int first() {
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
      public String problem(int i) {
        for (int at : refused) {
          if (at == first + i) {
            return "UNKNOWN_OUTPUT";
          }
        }
        return null;
      }

      @Override
      public ManagedBuffer take(int i) {
        if (takeFails != null) {
          throw takeFails;
        }
        FakeMemory bytes = new FakeMemory(content.apply(first + i).getBytes(StandardCharsets.UTF_8));
        memory.add(bytes);
        return new FaroManagedBuffer(bytes);
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
  public byte[] card() {
    return "card".getBytes(StandardCharsets.UTF_8);
  }

  @Override
  public long addPeer(byte[] card, List<InetAddress> knownAt) {
    return card[0];
  }

  @Override
  public Fetch fetch(long peer, ShuffleIds ids, Sink sink) throws FaroException {
    if (refuse != null) {
      throw refuse;
    }
    started.add(new Started(peer, ids, sink));
    return () -> cancelled++;
  }

  @Override
  public StagedOutput stage() {
    return null;
  }

  @Override
  public void committed(int shuffleId, long mapId, OutputFiles files, StagedOutput staged) {}

  @Override
  public void forgetShuffle(int shuffleId) {
    forgotten.add(shuffleId);
  }

  @Override
  public Map<String, Long> counters() {
    return new LinkedHashMap<>();
  }

  @Override
  public void close() {}
}
