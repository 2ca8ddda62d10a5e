package io.faro.e2e;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.storage.StorageLevel;
import scala.Tuple2;

/** The shuffles of the RDD API: with and without map-side combining, sorted, several parents. */
final class RddCases {
    private static final int RECORDS = 200_000;
    private static final int KEYS = 997;

    private RddCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("groupByKey", c -> groupByKey(c.jsc));
        cases.put("reduceByKey", c -> reduceByKey(c.jsc));
        cases.put("sortByKey", c -> sortByKey(c.jsc));
        cases.put("cogroup", c -> cogroup(c.jsc));
        cases.put("chained", c -> chained(c.jsc));
    }

    /** Records 0 until count, made in the executors. */
    static JavaRDD<Integer> indices(JavaSparkContext jsc, int count, int partitions) {
        List<Integer> starts = new ArrayList<>();
        for (int p = 0; p < partitions; p++) {
            starts.add(p);
        }
        return jsc.parallelize(starts, partitions).flatMap(p -> {
            List<Integer> mine = new ArrayList<>();
            for (int i = p; i < count; i += partitions) {
                mine.add(i);
            }
            return mine.iterator();
        });
    }

    static int keyOf(int index) {
        return (int) Math.floorMod(Check.mix(index), (long) KEYS);
    }

    static long valueOf(int index) {
        return Check.mix(index + 1_000_000_007L);
    }

    static JavaPairRDD<Integer, Long> pairs(JavaSparkContext jsc, int partitions) {
        return indices(jsc, RECORDS, partitions)
            .mapToPair(i -> new Tuple2<>(keyOf(i), valueOf(i)));
    }

    /** For each key: how many values, their sum, their exclusive or. */
    static Map<Integer, List<Long>> expected() {
        Map<Integer, List<Long>> all = new HashMap<>();
        for (int i = 0; i < RECORDS; i++) {
            List<Long> had = all.getOrDefault(keyOf(i), Arrays.asList(0L, 0L, 0L));
            all.put(keyOf(i), Arrays.asList(
                had.get(0) + 1, had.get(1) + valueOf(i), had.get(2) ^ valueOf(i)));
        }
        return all;
    }

    static List<Long> digest(Iterable<Long> values) {
        long count = 0;
        long sum = 0;
        long xor = 0;
        for (long v : values) {
            count++;
            sum += v;
            xor ^= v;
        }
        return Arrays.asList(count, sum, xor);
    }

    private static void groupByKey(JavaSparkContext jsc) {
        Map<Integer, List<Long>> actual =
            new HashMap<>(pairs(jsc, 12).groupByKey(9).mapValues(RddCases::digest).collectAsMap());
        Check.equal("groups", expected(), actual);
    }

    private static void reduceByKey(JavaSparkContext jsc) {
        Map<Integer, Long> expected = new HashMap<>();
        for (int i = 0; i < RECORDS; i++) {
            expected.merge(keyOf(i), valueOf(i), Long::sum);
        }
        Check.equal("sums", expected,
            new HashMap<>(pairs(jsc, 12).reduceByKey(Long::sum, 9).collectAsMap()));
    }

    private static void sortByKey(JavaSparkContext jsc) {
        long[] expected = new long[RECORDS];
        for (int i = 0; i < RECORDS; i++) {
            expected[i] = valueOf(i);
        }
        Arrays.sort(expected);
        List<Long> actual = indices(jsc, RECORDS, 8)
            .mapToPair(i -> new Tuple2<>(valueOf(i), i)).sortByKey(true, 7).keys().collect();
        Check.equal("count", expected.length, actual.size());
        for (int i = 0; i < expected.length; i++) {
            Check.equal("position " + i, expected[i], actual.get(i));
        }
    }

    private static void cogroup(JavaSparkContext jsc) {
        JavaPairRDD<Integer, Long> few = indices(jsc, KEYS, 3)
            .filter(k -> k % 2 == 0).mapToPair(k -> new Tuple2<>(k, Check.mix(-k)));
        Map<Integer, List<List<Long>>> actual = new HashMap<>(pairs(jsc, 6).cogroup(few, 5)
            .mapValues(both -> Arrays.asList(digest(both._1()), digest(both._2())))
            .collectAsMap());
        Map<Integer, List<List<Long>>> expected = new HashMap<>();
        expected().forEach((k, left) -> expected.put(k, Arrays.asList(left,
            digest(k % 2 == 0 ? Arrays.asList(Check.mix(-k)) : new ArrayList<>()))));
        Check.equal("cogroups", expected, actual);
    }

    /** Three shuffles in a row, one of them read twice. */
    private static void chained(JavaSparkContext jsc) {
        JavaPairRDD<Integer, List<Long>> grouped =
            pairs(jsc, 6).groupByKey(5).mapValues(RddCases::digest);
        JavaPairRDD<Long, Long> again = grouped
            .mapToPair(kv -> new Tuple2<>(kv._1() % 10L, kv._2().get(2)))
            .persist(StorageLevel.MEMORY_ONLY());
        Map<Long, Long> expected = new HashMap<>();
        expected().forEach((k, v) -> expected.merge(k % 10L, v.get(2), (a, b) -> a ^ b));
        Check.equal("first read", expected,
            new HashMap<>(again.reduceByKey((a, b) -> a ^ b, 3).collectAsMap()));
        Check.equal("second read", expected,
            new HashMap<>(again.repartition(4).reduceByKey((a, b) -> a ^ b, 2).collectAsMap()));
        again.unpersist();
    }
}
