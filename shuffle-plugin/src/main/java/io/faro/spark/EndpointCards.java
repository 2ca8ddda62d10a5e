package io.faro.spark;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Objects;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.StorageLevel;
import org.apache.spark.storage.TestBlockId;
import org.apache.spark.util.io.ChunkedByteBuffer;
import scala.Option;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * Exchanges endpoint cards through Spark's block manager: an executor stores its card as a small block, and a peer
 * fetches that block from the port in the map status. So there is no service to run or configure, a card is protected
 * like Spark's data, and a dead executor has none. The block's name must be of a kind that every Spark version can
 * parse; the only kind with a free text is "test".
 *
 * <p>With the external shuffle service the map status has the service's port, so the driver is asked for the executor
 * that has the block.
 */
final class EndpointCards implements CardStore {
  private static final int MAX_CARD_BYTES = 4_096;

  private final SparkEnv env;
  private final boolean throughDriver;
  private final ClassTag<byte[]> tag = ClassTag$.MODULE$.apply(byte[].class);

  EndpointCards(SparkEnv env) {
    this.env = env;
    this.throughDriver = env.conf().getBoolean("spark.shuffle.service.enabled", false);
  }

  void publish(byte[] card) throws IOException {
    String executor = env.executorId();
    // The driver gets to know the block only if peers ask it: it logs a warning for each block lost with an executor.
    boolean stored = env.blockManager().putSingle(
        blockOf(executor), Objects.requireNonNull(card), StorageLevel.MEMORY_AND_DISK_SER(), throughDriver, tag);
    if (!stored) {
      throw new IOException("the block manager of executor " + executor + " did not store the endpoint card");
    }
  }

  @Override
  public byte[] lookUp(PeerKey peer) throws Exception {
    BlockManager blocks = env.blockManager();
    BlockId block = blockOf(peer.executor);
    if (throughDriver) {
      Option<ChunkedByteBuffer> bytes = blocks.getRemoteBytes(block);
      return bytes.isEmpty() ? null : read(block, new ByteArrayInputStream(bytes.get().toArray()), peer);
    }
    ManagedBuffer bytes =
        blocks.blockTransferService().fetchBlockSync(peer.host, peer.port, peer.executor, block.name(), null);
    try (InputStream in = bytes.createInputStream()) {
      return read(block, in, peer);
    } finally {
      bytes.release();
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

  private static BlockId blockOf(String executor) {
    return new TestBlockId("faro-" + executor);
  }
}
