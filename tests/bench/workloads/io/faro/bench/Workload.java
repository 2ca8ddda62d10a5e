package io.faro.bench;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** The measured jobs, each with one shuffle into a sink that keeps nothing. */
enum Workload {
  /** Has 400 x 400 tiny blocks. */
  A1 {
    @Override
    Dataset<Row> build(SparkSession spark, int divisor) {
      int parts = divisor == 1 ? 400 : 100;
      return spark.range(0, 1_600_000 / divisor, 1, parts)
          .selectExpr("id", "hash(id) h").repartition(parts, column("h"));
    }
  },
  /** Has 24 x 8 blocks of strings of a kilobyte; the application runs it with spark.shuffle.compress=false. */
  B1 {
    @Override
    Dataset<Row> build(SparkSession spark, int divisor) {
      return spark.range(0, 786_432 / divisor, 1, 24)
          .selectExpr("id", "repeat(substr(cast(id+10000000 as string),1,8),125) s")
          .repartition(8, column("id"));
    }
  },
  /** Has 24 x 8 blocks of narrow rows, with lz4. */
  B2 {
    @Override
    Dataset<Row> build(SparkSession spark, int divisor) {
      return spark.range(0, 24_000_000 / divisor, 1, 24)
          .selectExpr("id", "hash(id) h", "xxhash64(id) x").repartition(8, column("h"));
    }
  },
  /** Sorts 4 million rows by range, with 40 x 40 blocks. */
  S {
    @Override
    Dataset<Row> build(SparkSession spark, int divisor) {
      return spark.range(0, 4_000_000 / divisor, 1, 40)
          .selectExpr("xxhash64(id) k", "repeat(hex(id), 8) p")
          .repartitionByRange(40, column("k")).sortWithinPartitions("k");
    }
  },
  /** Joins 6 with 3 million rows by a shuffled hash join, then counts by group. */
  J {
    @Override
    Dataset<Row> build(SparkSession spark, int divisor) {
      spark.conf().set("spark.sql.autoBroadcastJoinThreshold", "-1");
      spark.conf().set("spark.sql.shuffle.partitions", "64");
      Dataset<Row> left = side(spark, 6_000_000 / divisor);
      Dataset<Row> right = side(spark, 3_000_000 / divisor).hint("shuffle_hash").selectExpr("k", "v as v2");
      return left.join(right, "k").groupBy("w").count();
    }

    private Dataset<Row> side(SparkSession spark, long rows) {
      return spark.range(0, rows, 1, 24)
          .selectExpr("xxhash64(id) % 2000000 k", "id v", "hash(id) w");
    }
  },
  /**
   * Has 600 map tasks with 100 rows each and 8 reduce tasks, to measure the cost of a task before and after its rows.
   */
  M600 {
    @Override
    Dataset<Row> build(SparkSession spark, int divisor) {
      return tinyTasks(spark, 600 / divisor, 8);
    }
  },
  /** Is M600 with Spark's default number of reduce tasks: most blocks have no row or one. */
  M600x200 {
    @Override
    Dataset<Row> build(SparkSession spark, int divisor) {
      return tinyTasks(spark, 600 / divisor, 200);
    }
  },
  M3000 {
    @Override
    Dataset<Row> build(SparkSession spark, int divisor) {
      return tinyTasks(spark, 3_000 / divisor, 8);
    }
  },
  /** Has 3,000 reduce tasks, each with 8 blocks of a few rows. */
  R3000 {
    @Override
    Dataset<Row> build(SparkSession spark, int divisor) {
      return spark.range(0, 300_000 / divisor, 1, 8)
          .selectExpr("id", "hash(id) h").repartition(3_000 / divisor, column("h"));
    }
  },
  /**
   * Has TeraSort's shape: 10 GB in 100 million rows of a key and 90 bytes, sorted in 8 parts that do not fit in memory.
   */
  TERA {
    @Override
    Dataset<Row> build(SparkSession spark, int divisor) {
      return spark.range(0, 100_000_000 / divisor, 1, 80)
          .selectExpr("xxhash64(id) k", "repeat(hex(id + 68719476736), 10) p")
          .repartitionByRange(8, column("k")).sortWithinPartitions("k");
    }
  },
  /** Has 2,000 x 2,000 blocks of ten rows. */
  X2000 {
    @Override
    Dataset<Row> build(SparkSession spark, int divisor) {
      int parts = divisor == 1 ? 2_000 : 200;
      return spark.range(0, 40_000_000 / divisor, 1, parts)
          .selectExpr("id", "hash(id) h").repartition(parts, column("h"));
    }
  };

  private static Dataset<Row> tinyTasks(SparkSession spark, int maps, int reduces) {
    return spark.range(0, 100L * maps, 1, maps).selectExpr("id", "hash(id) h").repartition(reduces, column("h"));
  }

  private static org.apache.spark.sql.Column column(String name) {
    return org.apache.spark.sql.functions.col(name);
  }

  /** Returns the job's data. {@code divisor} 1 stands for the real size. */
  abstract Dataset<Row> build(SparkSession spark, int divisor);

  void run(SparkSession spark, int divisor) {
    build(spark, divisor).write().format("noop").mode("overwrite").save();
  }
}
