package io.faro.spark;

import io.faro.rows.RowCodec;
import io.faro.spark.codec.RowBlockEncoder;
import io.faro.spark.codec.Streams;
import io.faro.spark.write.CommittingWriter;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.BaseShuffleHandle;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import scala.Option;

/**
 * Spark's own shuffle, with Spark's own reader, whose map outputs of rows become row blocks when they are written. For
 * jobs with the local property {@link #PACK}.
 */
public final class PackingManager extends SortShuffleManager {
  /** {@code rows}, or {@code damaged}: with one wrong bit in each block. */
  public static final String PACK = "faro.test.pack";
  /** A setting; false: the codec comes by {@code spark.io.compression.codec}, or not at all. */
  public static final String INSTALL = "spark.faro.test.install";
  public static final AtomicLong BLOCKS = new AtomicLong();
  private static final int ROWS_OF_A_BLOCK = 300;

  private final boolean installs;
  private final boolean zstd;

  public PackingManager(SparkConf conf, boolean isDriver) {
    super(conf);
    installs = conf.getBoolean(INSTALL, true);
    zstd = RowCodec.named(conf.get("spark.io.compression.codec", "lz4")) == RowCodec.ZSTD;
  }

  @Override
  public <K, V> ShuffleWriter<K, V> getWriter(
      ShuffleHandle handle, long mapId, TaskContext context, ShuffleWriteMetricsReporter metrics) {
    ShuffleWriter<K, V> writer = super.getWriter(handle, mapId, context, metrics);
    String pack = context.getLocalProperty(PACK);
    boolean rows = ((BaseShuffleHandle<?, ?, ?>) handle).dependency().serializer().getClass().getName()
        .endsWith("UnsafeRowSerializer");
    return pack == null || !rows
        ? writer : new CommittingWriter<>(writer, () -> pack(handle.shuffleId(), mapId, pack.equals("damaged")));
  }

  @Override
  public <K, C> ShuffleReader<K, C> getReader(ShuffleHandle handle, int startMapIndex, int endMapIndex,
      int startPartition, int endPartition, TaskContext context, ShuffleReadMetricsReporter metrics) {
    if (installs && SparkCodec.install().ordinal() > SparkCodec.Outcome.THERE_ALREADY.ordinal()) {
      throw new IllegalStateException("no codec for row blocks: " + SparkCodec.install());
    }
    return super.getReader(handle, startMapIndex, endMapIndex, startPartition, endPartition, context, metrics);
  }

  /** Writes both files of a map output again. */
  private void pack(int shuffleId, long mapId, boolean damaged) {
    // Not by the interface, which does not have it since Spark 4.3.
    IndexShuffleBlockResolver resolver = shuffleBlockResolver();
    File data = resolver.getDataFile(shuffleId, mapId);
    File index = resolver.getIndexFile(shuffleId, mapId, Option.empty());
    try {
      ByteBuffer offsets = ByteBuffer.wrap(Files.readAllBytes(index.toPath()));
      ByteBuffer bytes = ByteBuffer.wrap(Files.exists(data.toPath()) ? Files.readAllBytes(data.toPath()) : new byte[0]);
      ByteArrayOutputStream packed = new ByteArrayOutputStream();
      for (int at = 0; at + 2 * Long.BYTES <= offsets.capacity(); at += Long.BYTES) {
        byte[] part = new byte[(int) (offsets.getLong(at + Long.BYTES) - offsets.getLong(at))];
        bytes.get(part);
        offsets.putLong(at, packed.size());
        byte[] rows = zstd ? Streams.decodedZstd(part, 1 << 16) : Streams.decoded(part, 1 << 16);
        for (byte[] block : blocks(rows, new Random(mapId + at))) {
          block[damaged ? block.length / 2 : 0] ^= (byte) (damaged ? 1 : 0);
          packed.write(block);
        }
      }
      offsets.putLong(offsets.capacity() - Long.BYTES, packed.size());
      Files.write(data.toPath(), packed.toByteArray());
      Files.write(index.toPath(), offsets.array());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static List<byte[]> blocks(byte[] stream, Random random) {
    RowBlockEncoder encoder = new RowBlockEncoder(random);
    List<byte[]> blocks = new ArrayList<>();
    List<byte[]> rows = new ArrayList<>();
    ByteBuffer left = ByteBuffer.wrap(stream);
    int words = Integer.MAX_VALUE;
    while (left.hasRemaining()) {
      byte[] row = new byte[left.getInt()];
      left.get(row);
      rows.add(row);
      words = Math.min(words, row.length / Long.BYTES);
      if (rows.size() == ROWS_OF_A_BLOCK || !left.hasRemaining()) {
        blocks.add(encoder.block(rows, words));
        rows.clear();
        words = Integer.MAX_VALUE;
        BLOCKS.incrementAndGet();
      }
    }
    return blocks;
  }
}
