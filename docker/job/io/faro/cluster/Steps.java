package io.faro.cluster;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/**
 * Shuffles whose results are known beforehand: row {@code i} carries {@code mix(i)}, which no other
 * row has. Each says what is wrong with its result, or null.
 */
final class Steps implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final int IN_GROUP = 50;

    private final transient JavaSparkContext spark;
    private final int rows;
    private final int partitions;

    Steps(JavaSparkContext spark, int rows, int partitions) {
        this.spark = spark;
        this.rows = rows;
        this.partitions = partitions;
    }

    /** Every group has its rows, all of them, with their values. */
    String group() {
        int groups = rows / IN_GROUP;
        List<Long> wrong = ids().mapToPair(i -> new Tuple2<>(i % groups, new Tuple2<>(i, mix(i))))
            .groupByKey(partitions)
            .map(group -> isWhole(group._1(), group._2(), groups) ? 0L : 1L)
            .mapPartitions(found -> {
                long[] counts = new long[2];
                found.forEachRemaining(one -> counts[one.intValue()]++);
                List<Long> both = new ArrayList<>();
                both.add(counts[0]);
                both.add(counts[1]);
                return both.iterator();
            }).collect();
        long good = 0;
        long bad = 0;
        for (int i = 0; i < wrong.size(); i += 2) {
            good += wrong.get(i);
            bad += wrong.get(i + 1);
        }
        return good == groups && bad == 0
            ? null : good + " of " + groups + " groups are whole, " + bad + " are not";
    }

    private boolean isWhole(int group, Iterable<Tuple2<Integer, Long>> members, int groups) {
        long count = 0;
        long sum = 0;
        for (Tuple2<Integer, Long> row : members) {
            if (row._1() % groups != group || row._2() != mix(row._1())) {
                return false;
            }
            count++;
            sum += row._1();
        }
        long wanted = (rows - group + groups - 1) / groups;
        return count == wanted && sum == wanted * group + groups * (wanted * (wanted - 1) / 2);
    }

    /** All rows come back, each once, in the order of their values. */
    String sort() {
        List<long[]> parts = ids().mapToPair(i -> new Tuple2<>(mix(i), i))
            .sortByKey(true, partitions)
            .mapPartitions(Steps::summary)
            .collect();
        long count = 0;
        long sum = 0;
        long last = Long.MIN_VALUE;
        for (long[] part : parts) {
            if (part[0] < 0 || part[1] < last) {
                return "the rows are not in order, or not with their values";
            }
            last = part[2];
            count += part[0];
            sum += part[3];
        }
        long wanted = (long) rows * (rows - 1) / 2;
        return count == rows && sum == wanted ? null
            : count + " of " + rows + " rows, whose sum is " + sum + " instead of " + wanted;
    }

    /** {count, first, last, sum of ids}; a count of -1 if a row is out of order or another's. */
    private static Iterator<long[]> summary(Iterator<Tuple2<Long, Integer>> sorted) {
        if (!sorted.hasNext()) {
            return Collections.emptyIterator();
        }
        long[] part = {0, 0, Long.MIN_VALUE, 0};
        while (sorted.hasNext()) {
            Tuple2<Long, Integer> row = sorted.next();
            if (row._1() <= part[2] || row._1() != mix(row._2())) {
                part[0] = -1;
                break;
            }
            part[1] = part[0] == 0 ? row._1() : part[1];
            part[2] = row._1();
            part[3] += row._2();
            part[0]++;
        }
        return Collections.singletonList(part).iterator();
    }

    private JavaRDD<Integer> ids() {
        List<Integer> numbers = new ArrayList<>();
        for (int part = 0; part < partitions; part++) {
            numbers.add(part);
        }
        long all = rows;
        int parts = partitions;
        // Ranges, so that every group has rows of many maps.
        return spark.parallelize(numbers, partitions).flatMap(part -> IntStream
            .range((int) (all * part / parts), (int) (all * (part + 1) / parts)).iterator());
    }

    /** SplitMix64's last step: one to one, and what looks random does not compress. */
    private static long mix(long i) {
        long z = (i + 1) * 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
