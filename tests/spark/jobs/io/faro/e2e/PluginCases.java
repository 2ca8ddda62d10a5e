package io.faro.e2e;

import java.util.Map;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.executor.ShuffleReadMetrics;

/** Faro behind another shuffle manager, which counts what it reads as without Faro. */
final class PluginCases {
    private static final String[] FABRICS = {"tcp", "shm", "verbs"};

    private PluginCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("remoteThroughFaro", PluginCases::remoteThroughFaro);
    }

    /** As many blocks and bytes came through Faro as Spark counts remote. */
    private static void remoteThroughFaro(Jobs.Context context) throws Exception {
        SqlCases.facts(context.spark);
        String query = "select g, count(*), max(s) from facts group by g";
        long blocks = -counted(context.jsc, "remoteBlocks.");
        long bytes = -counted(context.jsc, "remoteBytes.");
        StageFigures figures = StageFigures.of(context.spark.sparkContext(), () ->
            Check.equal("groups", SqlCases.GROUPS, context.spark.sql(query).collectAsList().size()));
        blocks += counted(context.jsc, "remoteBlocks.");
        bytes += counted(context.jsc, "remoteBytes.");
        long remoteBlocks = 0;
        long remoteBytes = 0;
        for (ShuffleReadMetrics read : figures.reads) {
            remoteBlocks += read.remoteBlocksFetched();
            remoteBytes += read.remoteBytesRead();
        }
        Check.that("there should be remote blocks", remoteBlocks > 0);
        Check.equal("remote blocks", remoteBlocks, blocks);
        Check.equal("remote bytes", remoteBytes, bytes);
    }

    private static long counted(JavaSparkContext jsc, String name) {
        long total = 0;
        for (String fabric : FABRICS) {
            total += Math.max(0, FaroCounters.total(jsc, name + fabric));
        }
        return total;
    }
}
