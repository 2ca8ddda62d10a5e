package io.faro.e2e;

import java.io.File;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Queries whose exchanges are Apache DataFusion Comet's, with adaptive execution and without it: the answers are those
 * of stock Spark, and the plans show which exchange it was.
 */
final class CometCases {
    /** All of it is what Comet does itself: it aggregates numbers, and groups by strings too. */
    private static final String[] QUERIES = {
        "select g, substring(s, 1, 6) p, count(*) n, sum(v) v, max(id) m from comet_facts group by g, substring(s, 1, 6)",
        "select /*+ MERGE(w) */ f.g, w.weight, f.s, f.d, f.flag from comet_facts f join comet_weights w "
            + "on f.g = w.g where w.g % 3 <> 0 and f.v % 10 = 0",
        "select /*+ REPARTITION(7, id) */ id, s, d, flag from comet_facts where v % 10 = 0",
    };

    private CometCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("cometNative", c -> queries(c, "native", "CometNativeShuffle"));
        cases.put("cometColumnar", c -> queries(c, "jvm", "CometColumnarShuffle"));
        cases.put("cometOfRows", c -> ofRows(c.spark));
        cases.put("cometKilled", CometCases::killed);
    }

    /** Files that Comet's own scan reads, so that all of a plan is Comet's. */
    private static void tables(Jobs.Context context) {
        File place = new File(context.scratch, "comet");
        SparkSession spark = context.spark;
        if (!place.exists()) {
            SqlCases.facts(spark);
            spark.sql("select id, g, v, s, cast(v / 7 as double) d, id % 2 = 0 flag from facts")
                .write().parquet(place + "/facts");
            spark.range(0, SqlCases.GROUPS, 1, 3).selectExpr("cast(id as int) g", "id * id weight")
                .write().parquet(place + "/weights");
        }
        spark.read().parquet(place + "/facts").createOrReplaceTempView("comet_facts");
        spark.read().parquet(place + "/weights").createOrReplaceTempView("comet_weights");
    }

    private static void queries(Jobs.Context context, String mode, String kind) throws Exception {
        tables(context);
        SparkSession spark = context.spark;
        for (String query : QUERIES) {
            List<String> expected = stock(spark, query);
            for (boolean adaptive : new boolean[] {true, false}) {
                spark.conf().set("spark.sql.adaptive.enabled", adaptive);
                spark.conf().set("spark.comet.exec.shuffle.mode", mode);
                try {
                    Dataset<Row> asked = spark.sql(query);
                    Check.equal("rows of " + query, expected, sorted(asked));
                    Object exchange = Plans.node(asked, "CometShuffleExchangeExec");
                    Check.equal("shuffle type of " + query, kind,
                        Plans.call(exchange, "shuffleType").toString());
                } finally {
                    spark.conf().unset("spark.comet.exec.shuffle.mode");
                    spark.conf().unset("spark.sql.adaptive.enabled");
                }
            }
        }
    }

    /** Rows that Spark makes and Comet's exchange moves. */
    private static void ofRows(SparkSession spark) throws Exception {
        SqlCases.facts(spark);
        String query = "select g, count(*) n, sum(v) v, max(s) s from facts group by g";
        List<String> expected = stock(spark, query);
        spark.conf().set("spark.comet.exec.shuffle.mode", "jvm");
        try {
            Dataset<Row> asked = spark.sql(query);
            Check.equal("rows", expected, sorted(asked));
            Object exchange = Plans.node(asked, "CometShuffleExchangeExec");
            Check.equal("shuffle type", "CometColumnarShuffle", Plans.call(exchange, "shuffleType").toString());
        } finally {
            spark.conf().unset("spark.comet.exec.shuffle.mode");
        }
    }

    /** An executor is killed between two reads of the same exchange. */
    private static void killed(Jobs.Context context) throws Exception {
        tables(context);
        String query = QUERIES[0];
        List<String> expected = stock(context.spark, query);
        Dataset<Row> asked = context.spark.sql(query).repartition(5);
        Check.equal("rows", expected, sorted(asked));
        Map<String, String> pids = Executors.pids(context.jsc, 2);
        Executors.signal(pids.values().iterator().next(), "KILL");
        Check.equal("rows after an executor was killed", expected, sorted(asked));
        // Two that live, and a shuffle between them.
        Executors.pids(context.jsc, 2);
        Check.equal("rows of a new query", expected, sorted(context.spark.sql(query)));
    }

    private static List<String> stock(SparkSession spark, String query) {
        spark.conf().set("spark.comet.enabled", false);
        try {
            return sorted(spark.sql(query));
        } finally {
            spark.conf().unset("spark.comet.enabled");
        }
    }

    private static List<String> sorted(Dataset<Row> query) {
        List<String> rows = new ArrayList<>();
        for (Row row : query.collectAsList()) {
            rows.add(row.toString());
        }
        Collections.sort(rows);
        Check.that("there should be rows", !rows.isEmpty());
        return rows;
    }
}
