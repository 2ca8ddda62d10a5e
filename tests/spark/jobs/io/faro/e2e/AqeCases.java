package io.faro.e2e;

import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** What adaptive execution does to reads: ranges of reducers, ranges of maps, local reads. */
final class AqeCases {
    private AqeCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("aqeCoalesced", c -> coalesced(c.spark));
        cases.put("aqeSkewed", c -> skewed(c.spark));
        cases.put("aqeLocal", c -> local(c.spark));
    }

    /** Runs the query and demands that its final plan has a read of that kind. */
    private static Row only(Dataset<Row> query, String kind) throws Exception {
        Row row = query.collectAsList().get(0);
        // Dataset.queryExecution is declared in another class since 4.0.
        String plan = query.getClass().getMethod("queryExecution").invoke(query).toString();
        Check.that("the final plan should have '" + kind + "':\n" + plan,
            plan.contains("isFinalPlan=true") && plan.contains(kind));
        return row;
    }

    private static void coalesced(SparkSession spark) throws Exception {
        SqlCases.facts(spark);
        spark.conf().set("spark.sql.shuffle.partitions", "60");
        try {
            Row row = only(spark.sql("select sum(n), sum(total), count(*) from "
                + "(select g, count(*) n, sum(v) total from facts group by g)"),
                "AQEShuffleRead coalesced");
            long total = 0;
            for (long id = 0; id < SqlCases.ROWS; id++) {
                total += SqlCases.valueOf(id);
            }
            Check.equal("rows", (long) SqlCases.ROWS, row.getLong(0));
            Check.equal("total", total, row.getLong(1));
            Check.equal("groups", (long) SqlCases.GROUPS, row.getLong(2));
        } finally {
            spark.conf().unset("spark.sql.shuffle.partitions");
        }
    }

    private static void skewed(SparkSession spark) throws Exception {
        spark.conf().set("spark.sql.autoBroadcastJoinThreshold", "-1");
        spark.conf().set("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "64KB");
        spark.conf().set("spark.sql.adaptive.skewJoin.skewedPartitionFactor", "2");
        spark.conf().set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "64KB");
        try {
            // Nine rows of ten have key 0.
            spark.range(0, SqlCases.ROWS, 1, 8).selectExpr(
                "case when id % 10 = 0 then id % 500 else 0 end k", "id", "xxhash64(id) noise")
                .createOrReplaceTempView("leaning");
            spark.range(0, 500, 1, 2).selectExpr("id k", "id + 5 w")
                .createOrReplaceTempView("small");
            // The noise keeps the parts large, whatever packs them.
            Row row = only(spark.sql("select sum(l.id), sum(s.w), count(*), bit_xor(noise) "
                + "from leaning l join small s on l.k = s.k"), "skew");
            long ids = 0;
            long weights = 0;
            long noise = spark.sql("select bit_xor(noise) from leaning").collectAsList().get(0).getLong(0);
            for (long id = 0; id < SqlCases.ROWS; id++) {
                ids += id;
                weights += (id % 10 == 0 ? id % 500 : 0) + 5;
            }
            Check.equal("ids", ids, row.getLong(0));
            Check.equal("weights", weights, row.getLong(1));
            Check.equal("rows", (long) SqlCases.ROWS, row.getLong(2));
            Check.equal("noise", noise, row.getLong(3));
        } finally {
            spark.conf().unset("spark.sql.autoBroadcastJoinThreshold");
            spark.conf().unset("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes");
            spark.conf().unset("spark.sql.adaptive.skewJoin.skewedPartitionFactor");
            spark.conf().unset("spark.sql.adaptive.advisoryPartitionSizeInBytes");
        }
    }

    private static void local(SparkSession spark) throws Exception {
        SqlCases.facts(spark);
        spark.conf().set("spark.sql.autoBroadcastJoinThreshold", "-1");
        spark.conf().set("spark.sql.adaptive.autoBroadcastJoinThreshold", "10MB");
        try {
            // Planned as a sort-merge join; the small side is found to be small when it has run.
            spark.range(0, SqlCases.GROUPS, 1, 4).selectExpr("cast(id as int) g", "id * 3 w")
                .where("id % 100 = 1").createOrReplaceTempView("few");
            Row row = only(spark.sql("select count(*), sum(f.v), sum(w) "
                + "from facts f join few on f.g = few.g"), "AQEShuffleRead local");
            long rows = 0;
            long values = 0;
            long weights = 0;
            for (long id = 0; id < SqlCases.ROWS; id++) {
                int g = SqlCases.groupOf(id);
                if (g % 100 == 1) {
                    rows++;
                    values += SqlCases.valueOf(id);
                    weights += g * 3;
                }
            }
            Check.equal("rows", rows, row.getLong(0));
            Check.equal("values", values, row.getLong(1));
            Check.equal("weights", weights, row.getLong(2));
        } finally {
            spark.conf().unset("spark.sql.autoBroadcastJoinThreshold");
            spark.conf().unset("spark.sql.adaptive.autoBroadcastJoinThreshold");
        }
    }
}
