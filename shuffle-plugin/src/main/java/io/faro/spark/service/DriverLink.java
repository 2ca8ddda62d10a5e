package io.faro.spark.service;

import io.faro.Nullable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.util.RpcUtils;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** An executor's questions to the driver about node services. Each blocks, at most as long as Spark's RPC waits. */
public final class DriverLink {
  private static final byte[] NOTHING = new byte[0];

  private final SparkEnv env;
  private final ClassTag<byte[]> tag = ClassTag$.MODULE$.apply(byte[].class);
  /** Null until it is found. */
  @Nullable private volatile RpcEndpointRef driver;

  public DriverLink(SparkEnv env) {
    this.env = env;
  }

  private RpcEndpointRef driver() {
    RpcEndpointRef known = driver;
    if (known == null) {
      known = RpcUtils.makeDriverRef(ServiceRpcEndpoint.NAME, env.conf(), env.rpcEnv());
      driver = known;
    }
    return known;
  }

  private byte[] ask(Message.Kind kind, String executor, byte[] bytes) throws IOException {
    return driver().askSync(new Message(kind, executor, bytes).encode(), tag);
  }

  byte[] token() throws IOException {
    return ask(Message.Kind.TOKEN, env.executorId(), NOTHING);
  }

  /**
   * A service, whose card is {@code now}, keeps this executor's outputs. Before its restart its card was
   * {@code before}; empty: this executor has seen no other.
   */
  void kept(byte[] before, byte[] now) throws IOException {
    ask(Message.Kind.KEPT, env.executorId(), Message.cards(before, now));
  }

  /** Which outputs of this executor are not kept has changed. Does not wait. */
  void unkept(UnkeptShuffles shuffles) throws IOException {
    driver().send(new Message(Message.Kind.UNKEPT, env.executorId(), shuffles.encode()).encode());
  }

  /** The service that keeps the outputs of an executor; null if none does. */
  @Nullable public KeptBy serviceOf(String executor) throws IOException {
    byte[] answer = ask(Message.Kind.CARD, executor, NOTHING);
    return answer.length == 0 ? null : KeptBy.decode(answer);
  }

  /** Those of these executors whose outputs are kept by the service that keeps this one's. */
  Set<String> neighbours(List<String> executors) throws IOException {
    Set<String> found = new HashSet<>();
    List<String> asked = new ArrayList<>();
    int bytes = 0;
    for (String executor : executors) {
      // Three bytes for a character at most.
      int more = 3 * executor.length() + 1;
      if (bytes + more > Message.MAX_BYTES) {
        found.addAll(askNeighbours(asked));
        asked.clear();
        bytes = 0;
      }
      asked.add(executor);
      bytes += more;
    }
    found.addAll(askNeighbours(asked));
    return found;
  }

  private List<String> askNeighbours(List<String> executors) throws IOException {
    return executors.isEmpty() ? executors
        : Message.names(ask(Message.Kind.NEIGHBOURS, env.executorId(), Message.names(executors)));
  }

  /** Returns what has changed in the list of services when there is a newer version; empty: the application ends. */
  byte[] hostsAfter(int version) throws IOException {
    return ask(Message.Kind.HOSTS, env.executorId(), ByteBuffer.allocate(4).putInt(version).array());
  }

  /** Returns when the application ends; throws when nothing was said for as long as Spark's RPC waits. */
  void awaitEnd() throws IOException {
    ask(Message.Kind.END, env.executorId(), NOTHING);
  }
}
