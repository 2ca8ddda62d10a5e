package io.faro.e2e;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.storage.RDDInfo;
import org.apache.spark.storage.StorageLevel;

/** Map tasks of Spark SQL that have too little memory for what they write. */
final class WriterMemory {
    private static final int REDUCES = 12;

    private WriterMemory() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("writerSpills", c -> spills(c));
        cases.put("writerBeside", c -> beside(c.spark));
        cases.put("writerKeepsCached", c -> keepsCached(c));
    }

    /** The output of one task is more than ten times the memory that it gets. */
    private static void spills(Jobs.Context c) throws Exception {
        long rows = 3_200_000;
        // 64 bytes that no codec makes smaller: 80 in all.
        List<String> columns = new ArrayList<>(Arrays.asList("id"));
        List<String> equal = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            columns.add("xxhash64(id, " + i + ") h" + i);
            equal.add("h" + i + " = xxhash64(id, " + i + ")");
        }
        String same = String.join(" and ", equal);
        WriterCases.with(c.spark, WriterCases.ADAPTIVE, "false", context -> {
            Dataset<Row> query = c.spark.range(0, rows, 1, 1).selectExpr(columns.toArray(new String[0]))
                .repartition(REDUCES, new Column("id")).selectExpr("id", same + " same")
                .selectExpr("count(*)", "sum(id)", "count(if(same, 1, null))");
            List<Row> answers = new ArrayList<>();
            StageFigures figures = StageFigures.of(c.jsc.sc(), () -> answers.addAll(query.collectAsList()));
            Check.equal("rows", "[" + rows + "," + rows * (rows - 1) / 2 + "," + rows + "]", answers.get(0).toString());
            TaskMetrics map = figures.stages.get(0);
            String seen = "peak " + map.peakExecutionMemory() + ", written " + map.shuffleWriteMetrics().bytesWritten()
                + ", spilled " + map.memoryBytesSpilled() + " of memory, " + map.diskBytesSpilled() + " to disk";
            System.out.println("writerSpills: " + seen);
            Check.that(seen, map.shuffleWriteMetrics().bytesWritten() > 10 * map.peakExecutionMemory());
            Check.that(seen, map.memoryBytesSpilled() > 0 && map.diskBytesSpilled() > 0);
            Check.equal("records written", rows, map.shuffleWriteMetrics().recordsWritten());
        }, c);
        LocalFiles.awaitNoneUnfinished(c.jsc);
    }

    /**
     * Blocks are cached until the executors' memory is full, far beyond the part that Spark keeps for storage. Shuffles
     * of few partitions, of more rows than all that memory, evict none of them: Spark's writer of few partitions takes
     * no execution memory, and Faro's only what is spare. By hash, because Spark sorts rows that it deals out in turn.
     */
    private static void keepsCached(Jobs.Context c) throws Exception {
        int blocks = 160;
        JavaRDD<byte[]> cached = c.jsc.parallelize(new ArrayList<>(Collections.nCopies(blocks, 1 << 20)), blocks)
            .map(bytes -> new byte[bytes]).persist(StorageLevel.MEMORY_ONLY());
        Check.equal("blocks", (long) blocks, cached.count());
        int before = cachedBlocks(c);
        Check.that(before + " blocks of " + blocks + ": there is room for all, or for hardly any",
            before >= blocks / 2 && before < blocks);
        WriterCases.with(c.spark, WriterCases.ADAPTIVE, "false", context -> {
            for (int partitions : new int[] {20, 190}) {
                long rows = 400_000;
                Row row = c.spark.range(0, rows, 1, 2)
                    .selectExpr("id", "repeat(sha2(cast(id as string), 256), 8) t")
                    .repartition(partitions, new Column("id"))
                    .selectExpr("count(*)", "sum(id)", "sum(length(t))").collectAsList().get(0);
                Check.equal("rows", "[" + rows + "," + rows * (rows - 1) / 2 + "," + rows * 512 + "]", row.toString());
                Check.equal("blocks cached after a shuffle of " + partitions, before, cachedBlocks(c));
            }
        }, c);
        cached.unpersist(true);
    }

    private static int cachedBlocks(Jobs.Context c) {
        int cached = 0;
        for (RDDInfo rdd : c.jsc.sc().getRDDStorageInfo()) {
            cached += rdd.numCachedPartitions();
        }
        return cached;
    }

    /** In one task: two sorts and a join, an aggregation, one more sort, and the writer. */
    private static void beside(SparkSession spark) throws Exception {
        long rows = 600_000;
        long keys = 60_000;
        String threshold = spark.conf().get("spark.sql.autoBroadcastJoinThreshold");
        spark.conf().set("spark.sql.autoBroadcastJoinThreshold", "-1");
        spark.conf().set("spark.sql.adaptive.coalescePartitions.enabled", "false");
        try {
            spark.range(0, rows, 1, 16).selectExpr("id", "id % " + keys + " k", "repeat(cast(id as string), 30) t")
                .createOrReplaceTempView("many");
            spark.range(0, keys, 1, 8).selectExpr("id k", "repeat('w', 100) w").createOrReplaceTempView("keyed");
            Row row = spark.sql("select m.k, count(*) n, sum(m.id) s, max(t) t, first(w) w from many m join keyed o "
                    + "on m.k = o.k group by m.k").repartition(20)
                .selectExpr("count(*)", "sum(k)", "sum(n)", "sum(s)",
                    "sum(if(length(w) = 100 and cast(substring(t, 1, length(t) / 30) as long) % " + keys
                        + " = k, 0, 1))")
                .collectAsList().get(0);
            Check.equal("groups", keys, row.getLong(0));
            Check.equal("keys", keys * (keys - 1) / 2, row.getLong(1));
            Check.equal("rows", rows, row.getLong(2));
            Check.equal("ids", rows * (rows - 1) / 2, row.getLong(3));
            Check.equal("wrong texts", 0L, row.getLong(4));
        } finally {
            spark.conf().set("spark.sql.autoBroadcastJoinThreshold", threshold);
            spark.conf().unset("spark.sql.adaptive.coalescePartitions.enabled");
        }
    }
}
