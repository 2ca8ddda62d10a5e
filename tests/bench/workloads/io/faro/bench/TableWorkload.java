package io.faro.bench;

import java.io.File;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/** Jobs that read Parquet tables, as users' jobs do; the views that they read have the tables' names. */
enum TableWorkload {
  /** Repartitions narrow rows to Spark's default number of partitions. */
  NARROW {
    @Override
    Dataset<Row> build(SparkSession spark) {
      return spark.table("narrow").repartition(200, functions.col("h"));
    }
  },
  /** Sorts by range. */
  SORT {
    @Override
    Dataset<Row> build(SparkSession spark) {
      return spark.table("sort_rows").repartitionByRange(40, functions.col("k")).sortWithinPartitions("k");
    }
  },
  /** Joins 6 with 3 million rows by a shuffled hash join, then counts by group. The hint rules out a broadcast. */
  JOIN {
    @Override
    Dataset<Row> build(SparkSession spark) {
      return spark.sql("SELECT /*+ SHUFFLE_HASH(r) */ w, count(*) n, sum(v2 - v) s "
          + "FROM join_left l JOIN join_right r ON l.k = r.k GROUP BY w");
    }
  };

  abstract Dataset<Row> build(SparkSession spark);

  void run(SparkSession spark) {
    build(spark).write().format("noop").mode("overwrite").save();
  }

  /**
   * Returns one row on the result: the number of rows, the sum of their hashes, and the number of partitions that are
   * not in order.
   */
  List<Row> digest(SparkSession spark) {
    boolean sorted = this == SORT;
    long rows = 0;
    long hashes = 0;
    long disordered = 0;
    long highest = Long.MIN_VALUE;
    // The results are in the order of the partitions.
    for (long[] one : build(spark).toJavaRDD().mapPartitions(part -> one(part, sorted)).collect()) {
      rows += one[0];
      hashes += one[1];
      disordered += sorted && (one[2] > 0 || one[0] > 0 && one[3] < highest) ? 1 : 0;
      highest = one[0] > 0 ? one[4] : highest;
    }
    return Collections.singletonList(RowFactory.create(rows, hashes, disordered));
  }

  /**
   * Returns the number of rows, the sum of their hashes, the number of rows with a lower key than the one before, and
   * the first and the last key.
   */
  private static Iterator<long[]> one(Iterator<Row> rows, boolean sorted) {
    long[] found = new long[5];
    while (rows.hasNext()) {
      Row row = rows.next();
      if (sorted) {
        long key = row.getLong(0);
        found[2] += found[0] > 0 && key < found[4] ? 1 : 0;
        found[3] = found[0] == 0 ? key : found[3];
        found[4] = key;
      }
      found[0]++;
      found[1] += row.hashCode();
    }
    return Collections.singleton(found).iterator();
  }

  /** Writes the tables, each to its own folder. {@code divisor} 1 stands for the real size. */
  static void writeTables(SparkSession spark, String folder, int divisor) {
    write(spark.range(0, 24_000_000 / divisor, 1, 24)
        .selectExpr("id", "hash(id) h", "xxhash64(id) x"), folder, "narrow");
    write(spark.range(0, 4_000_000 / divisor, 1, 8)
        .selectExpr("xxhash64(id) k", "repeat(hex(id), 8) p"), folder, "sort_rows");
    write(spark.range(0, 6_000_000 / divisor, 1, 8)
        .selectExpr("xxhash64(id) % 2000000 k", "id v", "hash(id) w"), folder, "join_left");
    write(spark.range(0, 3_000_000 / divisor, 1, 4).selectExpr("xxhash64(id) % 2000000 k", "id v2"), folder,
        "join_right");
  }

  private static void write(Dataset<Row> rows, String folder, String name) {
    rows.write().parquet(new File(folder, name).getPath());
  }
}
