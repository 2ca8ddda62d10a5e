package io.faro.spark.peers;

import io.faro.Nullable;
import io.faro.spark.conf.SparkSettings;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.BlockManagerMaster;
import org.apache.spark.storage.StorageLevel;
import org.apache.spark.storage.TestBlockId;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Exchanges endpoint cards through Spark's block manager: an executor stores its card as a small block, and a peer
 * fetches that block from the port in the map status. So there is no service to run or configure, a card is protected
 * like Spark's data, and a dead executor has none. The block's name must be of a kind that every Spark version can
 * parse; the only kind with a free text is "test".
 *
 * <p>Peers know a host by the name that Spark's block manager has for it, and the addresses of that name here can be
 * others than on the peer: split DNS, NAT, two links. So they are resolved here, as Spark's own fetch does.
 *
 * <p>With the external shuffle service the map status has the service's port; the driver says where the block managers
 * of the executors are ({@link ExecutorDirectory}).
 */
public final class EndpointCards implements CardStore {
  private static final int MAX_CARD_BYTES = 4_096;

  private final SparkEnv env;
  /** Null if the map status has the addresses of executors. */
  @Nullable private final ExecutorDirectory executors;
  private final ClassTag<byte[]> tag = ClassTag$.MODULE$.apply(byte[].class);

  public EndpointCards(SparkEnv env) {
    this.env = env;
    boolean service = SparkSettings.flag(env.conf(), "spark.shuffle.service.enabled", false);
    this.executors = service ? new ExecutorDirectory(this::alive, System::nanoTime) : null;
  }

  /** False: this executor is being decommissioned, and Spark stores no more blocks here. */
  public boolean publish(byte[] card) throws IOException {
    String executor = env.executorId();
    boolean stored;
    try {
      // The driver does not get to know the block: it would log a warning when the block is lost with its executor.
      stored = env.blockManager().putSingle(
          blockOf(executor), Objects.requireNonNull(card), StorageLevel.MEMORY_AND_DISK_SER(), false, tag);
    } catch (Exception e) {
      if (isDecommissioned(e)) {
        return false;
      }
      throw e;
    }
    if (!stored) {
      throw new IOException("the block manager of executor " + executor + " did not store the endpoint card");
    }
    return true;
  }

  /** Spark's exception is not visible to Java in all versions. */
  static boolean isDecommissioned(Throwable e) {
    return e.getClass().getSimpleName().equals("BlockSavedOnDecommissionedBlockManagerException");
  }

  @Override
  public void lookUp(PeerKey peer, long since, Answer answer) throws Exception {
    PeerKey at = executors == null ? peer : executors.find(peer.executor, since);
    if (at == null) {
      answer.gone();
      return;
    }
    BlockId block = blockOf(peer.executor);
    env.blockManager().blockTransferService().fetchBlocks(
        at.host, at.port, at.executor, new String[] {block.name()},
        new Listener(peer, block, Addresses.known(at.host), answer), null);
  }

  @Override
  public boolean doubt(PeerKey peer) {
    if (executors == null) {
      // Then Spark forgets the executor's map outputs, and nothing asks for them again.
      return false;
    }
    executors.doubt(peer.executor);
    return true;
  }

  /** Waits for the card without a thread: a peer that accepts the connection and then hangs blocks nothing. */
  private final class Listener implements BlockFetchingListener {
    private final PeerKey peer;
    private final BlockId block;
    private final List<InetAddress> knownAt;
    private final Answer answer;

    Listener(PeerKey peer, BlockId block, List<InetAddress> knownAt, Answer answer) {
      this.peer = peer;
      this.block = block;
      this.knownAt = knownAt;
      this.answer = answer;
    }

    @Override
    public void onBlockFetchSuccess(String blockId, ManagedBuffer data) {
      byte[] card;
      try (InputStream in = data.createInputStream()) {
        card = read(block, in, peer);
      } catch (IOException | RuntimeException e) {
        answer.missing(e);
        return;
      }
      answer.found(card, knownAt);
    }

    @Override
    public void onBlockFetchFailure(String blockId, Throwable why) {
      if (executors != null) {
        executors.doubt(peer.executor);
      }
      answer.missing(why);
    }
  }

  private byte[] read(BlockId block, InputStream in, PeerKey peer) throws IOException {
    scala.collection.Iterator<byte[]> values = env.serializerManager().dataDeserializeStream(block, in, tag);
    byte[] card = values.hasNext() ? values.next() : new byte[0];
    if (card.length == 0 || card.length > MAX_CARD_BYTES) {
      throw new IOException("the endpoint card of " + peer + " has " + card.length + " bytes, allowed: 1 to "
          + MAX_CARD_BYTES);
    }
    return card;
  }

  /** One question to the driver. Executors that are being decommissioned are not in the answer. */
  public Map<String, PeerKey> alive() throws Exception {
    // Reflection, because the Seq that this returns has another type in Scala 2.13.
    Object peers;
    try {
      peers = BlockManagerMaster.class.getMethod("getPeers", BlockManagerId.class)
          .invoke(env.blockManager().master(), env.blockManager().blockManagerId());
    } catch (InvocationTargetException e) {
      throw new IOException("the driver does not say which executors are alive: " + e.getCause(), e.getCause());
    }
    Map<String, PeerKey> alive = new HashMap<>();
    scala.collection.Iterator<?> each = ((scala.collection.Iterable<?>) peers).iterator();
    while (each.hasNext()) {
      BlockManagerId id = (BlockManagerId) each.next();
      alive.put(id.executorId(), new PeerKey(id.executorId(), id.host(), id.port()));
    }
    return alive;
  }

  private static BlockId blockOf(String executor) {
    return new TestBlockId("faro-" + executor);
  }
}
