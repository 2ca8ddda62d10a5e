package io.faro.e2e;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import scala.Tuple2;

/** Settings of Spark's that a shuffle has to obey. */
final class SettingCases {
    private static final int MAPS = 8;
    private static final int REDUCES = 6;

    private SettingCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("volumesReused", SettingCases::volumesReused);
        cases.put("hostLocalOff", SettingCases::hostLocalOff);
    }

    private static Dataset<Row> rows(SparkSession spark) {
        return spark.range(0, 40_000, 1, MAPS).selectExpr("id", "hash(id) h").repartition(REDUCES, new Column("h"));
    }

    /**
     * An executor is killed, and the next one of its worker has the same volume: it recovers the map outputs of the
     * first one, so that no map task runs again, and both executors read them.
     */
    private static void volumesReused(Jobs.Context c) throws Exception {
        String adaptive = c.spark.conf().get("spark.sql.adaptive.enabled");
        c.spark.conf().set("spark.sql.adaptive.enabled", "false");
        Map<String, String> first = Executors.pids(c.jsc, 2);
        JavaRDD<Long> digests = rows(c.spark).toJavaRDD().map(row -> Check.mix(row.getLong(0)) ^ row.getInt(1));
        long expected = digests.reduce(Long::sum);
        c.spark.conf().set("spark.sql.adaptive.enabled", adaptive);
        MapOutputTrackerMaster tracker = (MapOutputTrackerMaster) SparkEnv.get().mapOutputTracker();
        int shuffle = newest(tracker);
        Check.equal("map outputs", MAPS, tracker.getNumAvailableOutputs(shuffle));

        String victim = first.keySet().iterator().next();
        Executors.signal(first.get(victim), "KILL");
        Check.await("another executor should be there", () -> {
            Set<String> now = Executors.pids(c.jsc, 2).keySet();
            return now.size() == 2 && !now.contains(victim);
        });
        Check.await("map outputs should be lost", () -> tracker.getNumAvailableOutputs(shuffle) < MAPS);
        Check.await("the map outputs should be recovered", () -> {
            // Executors recover when they write for the first time.
            rows(c.spark).count();
            return tracker.getNumAvailableOutputs(shuffle) == MAPS;
        });

        List<Integer> maps = new ArrayList<>();
        SparkListener listener = new SparkListener() {
            @Override
            public void onTaskEnd(SparkListenerTaskEnd end) {
                if (end.taskType().equals("ShuffleMapTask")) {
                    synchronized (maps) {
                        maps.add(end.stageId());
                    }
                }
            }
        };
        c.jsc.sc().listenerBus().waitUntilEmpty(30_000);
        c.jsc.sc().addSparkListener(listener);
        try {
            Check.equal("digest of recovered outputs", expected, digests.reduce(Long::sum));
            c.jsc.sc().listenerBus().waitUntilEmpty(30_000);
            synchronized (maps) {
                Check.equal("stages of map tasks that ran again", new ArrayList<>(), maps);
            }
        } finally {
            c.jsc.sc().removeSparkListener(listener);
        }
        List<Integer> tasks = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            tasks.add(i);
        }
        Set<Boolean> deleted = new HashSet<>(c.jsc.parallelize(tasks, 8)
            .map(i -> SparkEnv.get().blockManager().diskBlockManager().deleteFilesOnStop()).collect());
        Check.that("files stay when an executor stops", !deleted.contains(true));
    }

    /** The id of the shuffle that was registered last. */
    private static int newest(MapOutputTrackerMaster tracker) {
        int id = 0;
        while (tracker.containsShuffle(id + 1)) {
            id++;
        }
        return id;
    }

    /** Spark's own reader too reads over the network where executors do not see each other's files. */
    private static void hostLocalOff(Jobs.Context c) throws Exception {
        List<Tuple2<Integer, Integer>> pairs = new ArrayList<>();
        for (int i = 0; i < 2_000; i++) {
            pairs.add(new Tuple2<>(i, i));
        }
        JavaPairRDD<Integer, Integer> sums = c.jsc.parallelizePairs(pairs, MAPS)
            .mapToPair(pair -> new Tuple2<>(pair._1() % 100, 1)).reduceByKey(Integer::sum, REDUCES);
        StageFigures figures = StageFigures.of(c.jsc.sc(), () ->
            Check.equal("keys", 100L, sums.filter(pair -> pair._2() == 20).count()));
        Check.that("blocks should be remote", figures.reads.stream().anyMatch(read -> read.remoteBlocksFetched() > 0));
    }
}
