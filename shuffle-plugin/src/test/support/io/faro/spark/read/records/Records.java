package io.faro.spark.read.records;

import io.faro.spark.read.groups.FetchedGroup;
import io.faro.spark.read.groups.GroupFetch.GroupBuffer;
import io.faro.spark.read.groups.PartFailure;
import io.faro.spark.read.groups.SecondFetch;
import io.faro.spark.read.places.Blocks;
import io.faro.spark.read.places.Parts;
import io.faro.spark.read.places.ReadPlan.Group;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NettyManagedBuffer;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.serializer.SerializationStream;
import org.apache.spark.serializer.SerializerManager;
import org.apache.spark.storage.ShuffleBlockId;
import scala.Option;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** Blocks as Spark writes them: two records each, {@code (part, "k-part")} and {@code (-part - 1, "l-part")}. */
public final class Records {
  private static final ClassTag<Object> ANY = ClassTag$.MODULE$.apply(Object.class);

  final KryoSerializer serializer;
  final Decompression decompression;
  private final SerializerManager streams;
  private final List<ByteBuf> made = new ArrayList<>();

  /** {@code codec}: none or one of Spark's. */
  Records(String codec) {
    SparkConf conf = new SparkConf(false)
        .set("spark.shuffle.compress", String.valueOf(!codec.equals("none")))
        .set("spark.io.compression.codec", codec.equals("none") ? "lz4" : codec);
    serializer = new KryoSerializer(conf);
    streams = new SerializerManager(serializer, conf, Option.empty());
    decompression = new Decompression(streams, Blocks.SHUFFLE);
  }

  /** The bytes of a part. */
  byte[] bytes(int part) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    SerializationStream to = serializer.newInstance()
        .serializeStream(streams.wrapForCompression(new ShuffleBlockId(Blocks.SHUFFLE, part, 0), out));
    to.writeKey(part, ANY).writeValue("k-" + part, ANY);
    to.writeKey(-part - 1, ANY).writeValue("l-" + part, ANY);
    to.close();
    return out.toByteArray();
  }

  /** Returns the records that the reader of these parts must give. */
  static List<String> expected(int parts) {
    List<String> all = new ArrayList<>();
    for (int part = 0; part < parts; part++) {
      all.add(part + "=k-" + part);
      all.add(-part - 1 + "=l-" + part);
    }
    return all;
  }

  /** Returns the bytes as a buffer that has arrived. */
  ManagedBuffer buffer(byte[] bytes) {
    ByteBuf buffer = Unpooled.directBuffer(bytes.length).writeBytes(bytes);
    made.add(buffer);
    return new NettyManagedBuffer(buffer);
  }

  /**
   * Returns a source of parts that have arrived together; {@code null} bytes: a part did not, for the reason in {@code
   * causes}. {@code closed} runs each time that it is closed.
   */
  GroupRecords group(Parts parts, byte[][] bytes, Throwable[] causes, SecondFetch secondFetch, PartFailure failure,
      Runnable closed) {
    ManagedBuffer[] buffers = new ManagedBuffer[bytes.length];
    for (int i = 0; i < bytes.length; i++) {
      buffers[i] = bytes[i] == null ? null : buffer(bytes[i]);
    }
    GroupBuffer buffer = new GroupBuffer(new Group(Blocks.address("1"), parts, 0), buffers, causes);
    InputStream handle = new ByteArrayInputStream(new byte[0]) {
      @Override
      public void close() {
        closed.run();
        buffer.release();
      }
    };
    return new GroupRecords(new FetchedGroup(buffer, handle, secondFetch, failure), decompression, failure);
  }

  /** Buffers that were not released. */
  long held() {
    return made.stream().filter(buffer -> buffer.refCnt() != 0).count();
  }

  /** A byte of the block's body differs: lz4's hash finds it. */
  static byte[] damaged(byte[] bytes) {
    byte[] other = bytes.clone();
    other[bytes.length - 25] ^= 0x55;
    return other;
  }
}
