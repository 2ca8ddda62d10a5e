package io.faro.e2e;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Sorts of Spark SQL behind a shuffle: the same answers with {@code spark.faro.sort} and without it. With Faro they are
 * its own, as the plan and the counters tell.
 */
final class SortCases {
    private static final String KEY = "spark.faro.sort";
    private static final int ROWS = 60_000;
    /** Every type with an order that native code knows, with nulls and equal values, and one that it does not know. */
    private static final String COLUMNS = "id, "
        + "if(h % 11 = 0, null, h % 3 = 0) b, "
        + "if(h % 13 = 0, null, cast(h % 127 as tinyint)) i8, "
        + "if(h % 12 = 0, null, cast(h % 30000 as smallint)) i16, "
        + "if(h % 17 = 0, null, cast(h % 500 as int)) i32, "
        + "if(h % 19 = 0, null, h) i64, "
        + "if(h % 7 = 0, null, date_add(date'1969-06-01', cast(h % 900 as int))) d, "
        + "timestamp_micros(h % 1000000000000) t, "
        + "if(h % 5 = 0, float('nan'), if(h % 9 = 0, float('-0.0'), if(h % 4 = 0, float('0.0'), cast(h % 77 as float)))) f, "
        + "if(h % 6 = 0, double('nan'), if(h % 10 = 0, double('-infinity'), h / 7.0d)) x, "
        + "if(h % 8 = 0, null, cast(h % 1000000 / 100.0 as decimal(12,2))) p, "
        + "cast(cast(h as decimal(38,0)) * 100000000000000 as decimal(38,2)) w, "
        + "if(h % 14 = 0, null, concat('key-', cast(h % 3000 as string))) s, "
        + "if(h % 15 = 0, null, concat(repeat('long', 20), cast(h % 70 as string), repeat('-', cast(abs(h) % 90 as int)))) l, "
        + "unhex(hex(h)) y, "
        + "make_ym_interval(0, cast(h % 50 as int)) m, "
        + "make_dt_interval(cast(h % 40 as int)) n, "
        + "array(h % 20, h % 3) a";
    private static final List<String> ORDERS = Arrays.asList(
        "i32, i64, id", "b, i8 desc, id", "i16 desc nulls first, id", "f, id", "f desc, x, id", "x nulls last, id desc",
        "d desc, t, id", "p, w, id", "w desc, id", "s, p desc, d, id", "s desc nulls last, id", "l, id", "l desc, i32, id",
        "y, id", "m, n desc, id", "i8, a, id desc", "b, abs(i32), id");

    private SortCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("sorts", SortCases::sorts);
        cases.put("sortsOfJoins", SortCases::joins);
        cases.put("sortsEndEarly", SortCases::endEarly);
    }

    private static boolean isFaro(SparkSession spark) {
        return spark.sparkContext().conf().get("spark.shuffle.manager", "").contains("Faro");
    }

    private static <T> T with(SparkSession spark, boolean on, Callable<T> job) throws Exception {
        String before = spark.conf().get(KEY, "true");
        spark.conf().set(KEY, Boolean.toString(on));
        try {
            return job.call();
        } finally {
            spark.conf().set(KEY, before);
        }
    }

    private static void sorts(Jobs.Context context) throws Exception {
        SparkSession spark = context.spark;
        spark.range(0, ROWS, 1, 4).selectExpr("id", "xxhash64(id div 2) h").createOrReplaceTempView("hashes");
        for (String order : ORDERS) {
            String text = "select id, hash(*) from (select /*+ repartition(3, i8) */ * from (select " + COLUMNS
                + " from hashes)) sort by " + order;
            List<Row> expected = sorted(spark, false, text);
            Check.equal("rows by " + order, ROWS, expected.size());
            Check.equal("rows by " + order, expected, sorted(spark, true, text));
        }
        if (isFaro(spark)) {
            Check.that("partitions that Faro sorted", FaroCounters.total(context.jsc, "sorts") >= 3 * ORDERS.size());
            Check.equal("partitions left for memory", 0L, FaroCounters.total(context.jsc, "sparkSorts.memory"));
        }
    }

    private static List<Row> sorted(SparkSession spark, boolean on, String text) throws Exception {
        return with(spark, on, () -> {
            Dataset<Row> query = spark.sql(text);
            List<Row> rows = query.collectAsList();
            String plan = Plans.call(Plans.call(query, "queryExecution"), "executedPlan").toString();
            Check.equal("a sort of Faro's in " + plan, on && isFaro(spark), plan.contains("FaroSort"));
            return rows;
        });
    }

    /** Both sides of a join and a window, all in the same tasks. */
    private static void joins(Jobs.Context context) throws Exception {
        SparkSession spark = context.spark;
        SqlCases.facts(spark);
        spark.range(0, SqlCases.ROWS, 1, 5).selectExpr("cast((id * 7919 + id div 13) % " + SqlCases.GROUPS + " as int) g",
            "id % 4000 k", "id * 3 w").createOrReplaceTempView("others");
        String text = "select /*+ MERGE(o) */ count(*), sum(hash(f.s, o.w)), max(n) from (select *, row_number() over "
            + "(partition by g order by v desc, id) n from facts) f join others o on f.g = o.g and f.id % 4000 = o.k";
        List<Row> expected = with(spark, false, () -> spark.sql(text).collectAsList());
        Dataset<Row> query = with(spark, true, () -> spark.sql(text));
        Check.equal("joined", expected, with(spark, true, query::collectAsList));
        if (isFaro(spark)) {
            String plan = Plans.call(Plans.call(query, "queryExecution"), "executedPlan").toString();
            Check.that("sorts of a window and both sides in " + plan, plan.split("FaroSort").length - 1 >= 3);
        }
    }

    /** A task that stops in the middle of its rows gives its memory back: Spark ends tasks of others with an error. */
    private static void endEarly(Jobs.Context context) throws Exception {
        SparkSession spark = context.spark;
        SqlCases.facts(spark);
        List<Long> ids = new ArrayList<>();
        for (Row row : with(spark, true, () -> spark.sql("select id from (select * from (select /*+ repartition(2, g) */ * "
                + "from facts) sort by v, id) limit 5").collectAsList())) {
            ids.add(row.getLong(0));
        }
        Check.equal("rows of a limit", 5, ids.size());
        Check.equal("different rows", 5, (int) ids.stream().distinct().count());
    }
}
