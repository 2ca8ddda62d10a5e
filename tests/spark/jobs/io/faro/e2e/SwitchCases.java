package io.faro.e2e;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.executor.ShuffleReadMetrics;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * {@code spark.faro.enabled} for a session, a query and a job: the answers are the same, and what Faro counts moves
 * only where it is on. A query that is switched off must have had remote blocks all the same.
 */
final class SwitchCases {
    private static final String KEY = "spark.faro.enabled";
    private static final String QUERY =
        "select g, count(*), sum(v), max(s) from facts group by g order by g";
    /** What is counted for a shuffle and by none of the jobs that read the counters. */
    private static final String[] COUNTED = {
        "remoteBlocks.", "remoteBytes.", "rowReaders", "groupedReaders", "rowWriters", "sparkReaders.",
        "sparkWriters.", "fallback", "cancelledRequests", "retries"};

    private SwitchCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("switchSession", SwitchCases::session);
        cases.put("switchRddOfQuery", SwitchCases::rddOfQuery);
        cases.put("switchJobs", SwitchCases::jobs);
        cases.put("switchAqe", SwitchCases::adaptive);
        cases.put("switchBadValue", SwitchCases::badValue);
        cases.put("switchedOff", SwitchCases::off);
    }

    private static TreeMap<String, Double> counted(JavaSparkContext jsc) {
        TreeMap<String, Double> sums = new TreeMap<>();
        for (Map<String, Double> one : FaroCounters.ofExecutors(jsc).values()) {
            one.forEach((name, value) -> {
                for (String start : COUNTED) {
                    if (name.startsWith(start)) {
                        sums.merge(name, value, Double::sum);
                    }
                }
            });
        }
        return sums;
    }

    /** Runs it with Faro. */
    private static <T> T moves(Jobs.Context context, String what, Callable<T> job) throws Exception {
        TreeMap<String, Double> before = counted(context.jsc);
        T answer = remote(context, what, job);
        Check.that(what + " should go through Faro: " + before, !before.equals(counted(context.jsc)));
        return answer;
    }

    /** Runs it without Faro. */
    private static <T> T rests(Jobs.Context context, String what, Callable<T> job) throws Exception {
        TreeMap<String, Double> before = counted(context.jsc);
        T answer = remote(context, what, job);
        Check.equal("what Faro counted after " + what, before, counted(context.jsc));
        return answer;
    }

    private static <T> T remote(Jobs.Context context, String what, Callable<T> job) throws Exception {
        List<T> answer = new ArrayList<>();
        StageFigures figures = StageFigures.of(context.spark.sparkContext(), () -> {
            try {
                answer.add(job.call());
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        long blocks = 0;
        for (ShuffleReadMetrics read : figures.reads) {
            blocks += read.remoteBlocksFetched();
        }
        Check.that(what + " should have remote blocks", blocks > 0);
        return answer.get(0);
    }

    private static List<Row> asked(SparkSession spark) {
        return spark.sql(QUERY).collectAsList();
    }

    private static void session(Jobs.Context context) throws Exception {
        // The case before may have killed one: on one executor no block is remote.
        Executors.pids(context.jsc, 2);
        SparkSession spark = context.spark;
        SparkSession other = spark.newSession();
        SqlCases.facts(spark);
        SqlCases.facts(other);
        SparkSession.setActiveSession(spark);
        List<Row> expected = moves(context, "a query before", () -> asked(spark));
        spark.conf().set(KEY, "false");
        try {
            Check.equal("rows without Faro", expected, rests(context, "a query of the session", () -> asked(spark)));
            Check.equal("rows of another session", expected, moves(context, "a query of another session",
                () -> asked(other)));
            spark.sql("SET " + KEY + "=true");
            Check.equal("rows with Faro", expected, moves(context, "a query after SET true", () -> asked(spark)));
            spark.sql("SET " + KEY + "=FALSE");
            Check.equal("rows after SET", expected, rests(context, "a query after SET FALSE", () -> asked(spark)));
        } finally {
            spark.conf().unset(KEY);
        }
        Check.equal("rows afterwards", expected, moves(context, "a query afterwards", () -> asked(spark)));
    }

    /** Not within an execution of SQL: no local property says it, only the active session knows. */
    private static void rddOfQuery(Jobs.Context context) throws Exception {
        SparkSession spark = context.spark;
        SqlCases.facts(spark);
        SparkSession.setActiveSession(spark);
        Callable<Long> job = () -> spark.sql(QUERY).javaRDD().count();
        spark.conf().set(KEY, "false");
        try {
            Check.equal("rows without Faro", (long) SqlCases.GROUPS, rests(context, "Dataset.rdd", job));
        } finally {
            spark.conf().unset(KEY);
        }
        Check.equal("rows afterwards", (long) SqlCases.GROUPS, moves(context, "Dataset.rdd afterwards", job));
    }

    private static void jobs(Jobs.Context context) throws Exception {
        Callable<Map<Integer, Long>> job = () -> {
            List<Integer> numbers = new ArrayList<>();
            for (int i = 0; i < 10_000; i++) {
                numbers.add(i);
            }
            return new TreeMap<>(context.jsc.parallelize(numbers, 6)
                .mapToPair(i -> new scala.Tuple2<>(i % 101, (long) i)).reduceByKey(Long::sum, 5).collectAsMap());
        };
        Map<Integer, Long> expected = moves(context, "a job of RDDs", job);
        context.jsc.setLocalProperty(KEY, "false");
        try {
            Check.equal("sums without Faro", expected, rests(context, "a job that is switched off", job));
        } finally {
            context.jsc.setLocalProperty(KEY, null);
        }
        Check.equal("sums afterwards", expected, moves(context, "a job of RDDs afterwards", job));
    }

    /** A join of a query with itself: reused exchanges, and reads that adaptive execution coalesces. */
    private static void adaptive(Jobs.Context context) throws Exception {
        SparkSession spark = context.spark;
        SqlCases.facts(spark);
        spark.conf().set("spark.sql.autoBroadcastJoinThreshold", "-1");
        spark.conf().set("spark.sql.shuffle.partitions", "20");
        try {
            Callable<List<Row>> query = () -> {
                Dataset<Row> joined = spark.sql("with f as (select g, count(*) n, sum(v) t from facts group by g) "
                    + "select a.g, a.n + b.n n, a.t - b.t t, (select max(n + t) from f) m "
                    + "from f a join f b on a.g = b.g order by a.g");
                List<Row> rows = joined.collectAsList();
                String plan = joined.getClass().getMethod("queryExecution").invoke(joined).toString();
                for (String part : new String[] {"isFinalPlan=true", "ReusedExchange", "AQEShuffleRead"}) {
                    Check.that("the final plan should have '" + part + "':\n" + plan, plan.contains(part));
                }
                return rows;
            };
            List<Row> expected = moves(context, "an adaptive query", query);
            spark.conf().set(KEY, "false");
            Check.equal("rows without Faro", expected, rests(context, "an adaptive query without Faro", query));
            spark.conf().unset(KEY);
            Check.equal("rows afterwards", expected, moves(context, "an adaptive query afterwards", query));
        } finally {
            spark.conf().unset(KEY);
            spark.conf().unset("spark.sql.autoBroadcastJoinThreshold");
            spark.conf().unset("spark.sql.shuffle.partitions");
        }
    }

    private static void badValue(Jobs.Context context) throws Exception {
        SparkSession spark = context.spark;
        SqlCases.facts(spark);
        spark.conf().set(KEY, "perhaps");
        try {
            asked(spark);
            throw new AssertionError("the query ran with " + KEY + "=perhaps");
        } catch (Exception e) {
            StringBuilder said = new StringBuilder();
            for (Throwable t = e; t != null; t = t.getCause()) {
                said.append(t.getMessage()).append(" / ");
            }
            Check.that("the message should name value and allowed: " + said,
                said.toString().contains(KEY + " is 'perhaps', allowed: true, false"));
        } finally {
            spark.conf().unset(KEY);
        }
        Check.equal("groups afterwards", SqlCases.GROUPS, asked(spark).size());
    }

    /** In an application that was submitted with false nothing of Faro is there, whatever a session says. */
    private static void off(Jobs.Context context) throws Exception {
        SparkSession spark = context.spark;
        SqlCases.facts(spark);
        spark.conf().set(KEY, "true");
        try {
            Check.equal("groups", SqlCases.GROUPS,
                rests(context, "a query of an application without Faro", () -> asked(spark)).size());
        } finally {
            spark.conf().set(KEY, "false");
        }
        Check.equal("counters of Faro", Collections.emptyMap(), counted(context.jsc));
    }
}
