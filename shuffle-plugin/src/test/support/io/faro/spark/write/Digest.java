package io.faro.spark.write;

import java.io.InputStream;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.spark.SparkEnv;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.storage.ShuffleBlockId;
import scala.Option;
import scala.Product2;
import scala.Tuple2;
import scala.collection.JavaConverters;

/**
 * Digest of a map output's rows, by partition, in any order: their number, their bytes, and the sum of their hashes.
 */
final class Digest {
  final long[] rows;
  final long[] bytes;
  private final long[] sums;

  private Digest(int partitions) {
    rows = new long[partitions];
    bytes = new long[partitions];
    sums = new long[partitions];
  }

  private void add(int partition, UnsafeRow row) {
    rows[partition]++;
    bytes[partition] += row.getSizeInBytes();
    sums[partition] += XXH64.hashUnsafeBytes(row.getBaseObject(), row.getBaseOffset(), row.getSizeInBytes(), 42);
  }

  static Digest of(RandomRows rows) {
    Digest digest = new Digest(rows.partitions);
    for (Iterator<Product2<Integer, UnsafeRow>> i = rows.rows(); i.hasNext();) {
      Product2<Integer, UnsafeRow> row = i.next();
      digest.add(row._1(), row._2());
    }
    return digest;
  }

  /** Returns the digest of the rows that Spark's own classes read. */
  static Digest written(MapTask task) throws Exception {
    Digest digest = new Digest(task.partitions);
    SerializerInstance serializer = task.dependency.serializer().newInstance();
    for (int i = 0; i < task.partitions; i++) {
      ShuffleBlockId block = new ShuffleBlockId(task.dependency.shuffleId(), task.mapId, i);
      if (task.lengths[i] > 0) {
        try (InputStream in = task.resolver().getBlockData(block, Option.empty()).createInputStream()) {
          Iterator<Tuple2<Object, Object>> rows = JavaConverters.asJavaIterator(serializer.deserializeStream(
              SparkEnv.get().serializerManager().wrapStream(block, in)).asKeyValueIterator());
          while (rows.hasNext()) {
            digest.add(i, (UnsafeRow) rows.next()._2());
          }
        }
      }
    }
    return digest;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Digest && Arrays.equals(rows, ((Digest) other).rows)
        && Arrays.equals(bytes, ((Digest) other).bytes) && Arrays.equals(sums, ((Digest) other).sums);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(sums);
  }

  @Override
  public String toString() {
    return "rows " + Arrays.toString(rows) + " with bytes " + Arrays.toString(bytes);
  }
}
