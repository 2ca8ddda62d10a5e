package io.faro.bench;

import java.io.DataInputStream;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.Channels;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.Files;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.network.BlockDataManager;
import org.apache.spark.network.buffer.FileSegmentManagedBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.client.StreamCallbackWithID;
import org.apache.spark.network.netty.NettyBlockTransferService;
import org.apache.spark.network.netty.SparkTransportConf;
import org.apache.spark.network.shuffle.checksum.Cause;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.ShuffleBlockId;
import org.apache.spark.storage.StorageLevel;
import scala.Option;
import scala.reflect.ClassTag;

/**
 * Spark's own block transfer service, client and server, with Spark's default settings; or with authentication and
 * network encryption by the named cipher.
 */
final class StockNetty {
  private StockNetty() {}

  /** Starts the service of a side: netty, netty-ctr or netty-gcm. */
  static NettyBlockTransferService start(String side, ShuffleFiles files) {
    SparkConf conf = new SparkConf(false).set("spark.app.id", "faro-bench");
    if (!side.equals("netty")) {
      conf.set("spark.authenticate", "true").set("spark.authenticate.secret", "known to all of the bench")
          .set("spark.network.crypto.enabled", "true")
          .set("spark.network.crypto.cipher", side.equals("netty-gcm") ? "AES/GCM/NoPadding" : "AES/CTR/NoPadding");
    }
    SecurityManager security = new SecurityManager(conf, Option.empty(), null);
    SerializerManager serializers = new SerializerManager(new JavaSerializer(conf), conf);
    // 0 cores stand for all of the machine, as in an executor without a limit.
    NettyBlockTransferService service =
        new NettyBlockTransferService(conf, security, serializers, Addresses.OWN, Addresses.OWN, 0, 0, null);
    service.init(new Blocks(conf, files));
    return service;
  }

  /**
   * Answers as BlockManager and IndexShuffleBlockResolver do: for each block, opens the index and reads two offsets.
   */
  private static final class Blocks implements BlockDataManager {
    private final ShuffleFiles files;
    private final TransportConf transport;

    Blocks(SparkConf conf, ShuffleFiles files) {
      this.files = files;
      this.transport = SparkTransportConf.fromSparkConf(conf, "shuffle", 0, Option.empty(), Option.empty());
    }

    @Override
    public ManagedBuffer getLocalBlockData(BlockId id) {
      ShuffleBlockId block = (ShuffleBlockId) id;
      File index = files.index(block.shuffleId(), block.mapId());
      try (SeekableByteChannel channel = Files.newByteChannel(index.toPath())) {
        channel.position(block.reduceId() * 8L);
        DataInputStream in = new DataInputStream(Channels.newInputStream(channel));
        long from = in.readLong();
        long to = in.readLong();
        if (channel.position() != block.reduceId() * 8L + 16) {
          throw new IllegalStateException("read past the offsets of " + id);
        }
        return new FileSegmentManagedBuffer(
            transport, files.data(block.shuffleId(), block.mapId()), from, to - from);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    @Override
    public Cause diagnoseShuffleBlockCorruption(BlockId id, long checksum, String algorithm) {
      throw new UnsupportedOperationException();
    }

    @Override
    public String[] getLocalDiskDirs() {
      throw new UnsupportedOperationException();
    }

    @Override
    public ManagedBuffer getHostLocalShuffleData(BlockId id, String[] dirs) {
      throw new UnsupportedOperationException();
    }

    @Override
    public boolean putBlockData(BlockId id, ManagedBuffer data, StorageLevel level, ClassTag<?> tag,
        Option<Object> task, boolean last) {
      throw new UnsupportedOperationException();
    }

    @Override
    public StreamCallbackWithID putBlockDataAsStream(BlockId id, StorageLevel level, ClassTag<?> tag,
        Option<Object> task, boolean last) {
      throw new UnsupportedOperationException();
    }

    @Override
    public void releaseLock(BlockId id, Option<TaskContext> task) {}
  }
}
