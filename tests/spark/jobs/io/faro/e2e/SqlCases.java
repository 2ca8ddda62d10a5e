package io.faro.e2e;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** The shuffles of SQL; every expected value is worked out here in plain Java. */
final class SqlCases {
    static final int ROWS = 300_000;
    static final int GROUPS = 1_009;

    private SqlCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("sqlAggregate", c -> aggregate(c.spark));
        cases.put("sqlJoin", c -> join(c.spark));
        cases.put("sqlWideJoin", c -> wideJoin(c.spark));
        cases.put("sqlLargeJoin", c -> largeJoin(c.spark));
        cases.put("sqlRepartition", c -> repartition(c.spark));
        cases.put("sqlWindow", c -> window(c.spark));
        cases.put("sqlOrder", c -> order(c.spark));
    }

    /** Column g, v of row id, computed alike by SQL and by Java. */
    static int groupOf(long id) {
        return (int) ((id * 7919 + id / 13) % GROUPS);
    }

    static long valueOf(long id) {
        return (id * 104_729) % 1_000_003;
    }

    static void facts(SparkSession spark) {
        spark.range(0, ROWS, 1, 8).selectExpr("id",
            "cast((id * 7919 + id div 13) % " + GROUPS + " as int) g",
            "(id * 104729) % 1000003 v",
            "concat('row-', cast(id as string)) s").createOrReplaceTempView("facts");
    }

    private static void aggregate(SparkSession spark) {
        facts(spark);
        Map<Integer, List<Long>> expected = new HashMap<>();
        for (long id = 0; id < ROWS; id++) {
            List<Long> had = expected.getOrDefault(groupOf(id), Arrays.asList(0L, 0L, -1L));
            expected.put(groupOf(id), Arrays.asList(
                had.get(0) + 1, had.get(1) + valueOf(id), Math.max(had.get(2), valueOf(id))));
        }
        Map<Integer, List<Long>> actual = new HashMap<>();
        for (Row row : spark.sql(
                "select g, count(*), sum(v), max(v) from facts group by g").collectAsList()) {
            actual.put(row.getInt(0),
                Arrays.asList(row.getLong(1), row.getLong(2), row.getLong(3)));
        }
        Check.equal("aggregates", expected, actual);
        Row distinct = spark.sql(
            "select count(distinct g), count(distinct v), count(distinct s) from facts").first();
        Check.equal("distinct groups", (long) GROUPS, distinct.getLong(0));
        Check.equal("distinct strings", (long) ROWS, distinct.getLong(2));
    }

    private static void join(SparkSession spark) {
        facts(spark);
        spark.range(0, GROUPS, 1, 3).selectExpr("cast(id as int) g", "id * id weight")
            .createOrReplaceTempView("weights");
        long expected = 0;
        long rows = 0;
        for (long id = 0; id < ROWS; id++) {
            long g = groupOf(id);
            if (g % 3 != 0) {
                expected += valueOf(id) + g * g;
                rows++;
            }
        }
        Row actual = spark.sql("select /*+ MERGE(w) */ count(*), sum(f.v + w.weight), "
            + "sum(length(f.s)) from facts f join weights w on f.g = w.g where w.g % 3 <> 0")
            .first();
        Check.equal("joined rows", rows, actual.getLong(0));
        Check.equal("joined sum", expected, actual.getLong(1));
        // Rows without a partner come back once.
        Row outer = spark.sql("select /*+ MERGE(w) */ count(*), count(w.g) from facts f "
            + "left join (select * from weights where g % 2 = 0) w on f.g = w.g").first();
        long partners = 0;
        for (long id = 0; id < ROWS; id++) {
            partners += groupOf(id) % 2 == 0 ? 1 : 0;
        }
        Check.equal("outer rows", (long) ROWS, outer.getLong(0));
        Check.equal("outer partners", partners, outer.getLong(1));
    }

    /**
     * Two inputs that do not fit the arena, read by all tasks at the same time: a task takes a row of one input only
     * when it has one of the other, so blocks of both must keep arriving.
     */
    private static void wideJoin(SparkSession spark) {
        long rows = 500_000;
        for (String side : Arrays.asList("one", "two")) {
            spark.range(0, rows, 1, 40).selectExpr("id k",
                "concat('" + side + "-', repeat(hex(id * 7919), 24)) p").createOrReplaceTempView(side);
        }
        Row actual = spark.sql("select /*+ MERGE(two) */ count(*), sum(length(one.p)), sum(length(two.p)), "
            + "bit_xor(xxhash64(one.p)) = bit_xor(xxhash64(replace(two.p, 'two-', 'one-'))) "
            + "from one join two on one.k = two.k").first();
        long length = 0;
        for (long id = 0; id < rows; id++) {
            length += 4 + 24L * Long.toHexString(id * 7919).length();
        }
        Check.equal("rows", rows, actual.getLong(0));
        Check.equal("length of one side", length, actual.getLong(1));
        Check.equal("length of the other", length, actual.getLong(2));
        Check.equal("same contents", true, actual.getBoolean(3));
    }

    /** A sort-merge join of two inputs of some 150 MB each that LZ4 cannot compress. */
    private static void largeJoin(SparkSession spark) {
        long rows = 500_000;
        StringBuilder words = new StringBuilder("''");
        for (int word = 0; word < 18; word++) {
            words.append(", hex(xxhash64(id, ").append(word).append("))");
        }
        for (String side : Arrays.asList("left_side", "right_side")) {
            spark.range(0, rows, 1, 100).selectExpr("id k", "concat(" + words + ") p")
                .createOrReplaceTempView(side);
        }
        Row actual = spark.sql("select /*+ MERGE(r) */ count(*), sum(l.k), "
            + "sum(if(l.p = r.p, 1, 0)), min(length(l.p)) > 100 "
            + "from left_side l join right_side r on l.k = r.k").first();
        Check.equal("rows", rows, actual.getLong(0));
        Check.equal("sum of the keys", rows * (rows - 1) / 2, actual.getLong(1));
        Check.equal("rows with the same contents", rows, actual.getLong(2));
        Check.equal("contents are there", true, actual.getBoolean(3));
    }

    private static void repartition(SparkSession spark) {
        facts(spark);
        long xor = 0;
        long sum = 0;
        for (long id = 0; id < ROWS; id++) {
            xor ^= id * 31 + valueOf(id);
            sum += ("row-" + id).length();
        }
        for (String hint : Arrays.asList("repartition(37)", "repartition(37, g)",
                "repartition_by_range(11, v)")) {
            Row actual = spark.sql("select bit_xor(id * 31 + v), sum(length(s)), count(*) from "
                + "(select /*+ " + hint + " */ * from facts)").first();
            Check.equal("xor after " + hint, xor, actual.getLong(0));
            Check.equal("lengths after " + hint, sum, actual.getLong(1));
            Check.equal("rows after " + hint, (long) ROWS, actual.getLong(2));
        }
    }

    private static void window(SparkSession spark) {
        facts(spark);
        // Within a group, the difference of neighbours adds up to last minus first.
        long[] first = new long[GROUPS];
        long[] last = new long[GROUPS];
        Arrays.fill(first, -1);
        long numbers = 0;
        int[] count = new int[GROUPS];
        for (long id = 0; id < ROWS; id++) {
            int g = groupOf(id);
            first[g] = first[g] < 0 ? id : first[g];
            last[g] = id;
            numbers += ++count[g];
        }
        long expected = 0;
        for (int g = 0; g < GROUPS; g++) {
            expected += last[g] - first[g];
        }
        Row actual = spark.sql("select sum(id - before), sum(n) from (select id, "
            + "lag(id) over (partition by g order by id) before, "
            + "row_number() over (partition by g order by id) n from facts)").first();
        Check.equal("neighbours", expected, actual.getLong(0));
        Check.equal("row numbers", numbers, actual.getLong(1));
    }

    private static void order(SparkSession spark) {
        facts(spark);
        List<Row> rows = spark.sql("select v, id from facts order by v desc, id").collectAsList();
        Check.equal("rows", ROWS, rows.size());
        long seen = 0;
        for (int i = 0; i < rows.size(); i++) {
            Row row = rows.get(i);
            Check.equal("value of " + row.getLong(1), valueOf(row.getLong(1)), row.getLong(0));
            seen ^= Check.mix(row.getLong(1));
            if (i > 0) {
                Row before = rows.get(i - 1);
                Check.that("order at " + i, before.getLong(0) > row.getLong(0)
                    || before.getLong(0) == row.getLong(0) && before.getLong(1) < row.getLong(1));
            }
        }
        long expected = 0;
        for (long id = 0; id < ROWS; id++) {
            expected ^= Check.mix(id);
        }
        Check.equal("every id once", expected, seen);
    }
}
