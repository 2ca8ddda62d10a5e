package io.faro.e2e;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.zip.CRC32;
import org.apache.spark.HashPartitioner;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/** Shapes of blocks: very many and tiny, large, larger than any frame, none at all. */
final class BlockCases {
    private BlockCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("tinyBlocks", c -> tinyBlocks(c.jsc, 200));
        cases.put("someTinyBlocks", c -> tinyBlocks(c.jsc, 40));
        cases.put("megabyteBlocks", c -> bytes(c.jsc, 6, 4, 4, 1 << 20));
        cases.put("hugeBlock", c -> bytes(c.jsc, 2, 2, 24, 1 << 20));
        cases.put("blockBeyondMemory", c -> bytes(c.jsc, 2, 2, 40, 1 << 20));
        cases.put("largeShuffle", c -> bytes(c.jsc, 8, 6, 12, 1 << 20));
        cases.put("manyOutputs", c -> manyOutputs(c.jsc, 2_000, 24));
        cases.put("someOutputs", c -> manyOutputs(c.jsc, 300, 8));
        cases.put("emptyPartitions", c -> emptyPartitions(c.jsc));
    }

    private static void tinyBlocks(JavaSparkContext jsc, int n) {
        List<Long> sums = RddCases.indices(jsc, n * n, n)
            .mapToPair(i -> new Tuple2<>(i / n, Check.mix(i)))
            .partitionBy(new HashPartitioner(n))
            .mapPartitionsWithIndex((partition, records) -> {
                long sum = 0;
                int count = 0;
                while (records.hasNext()) {
                    Tuple2<Integer, Long> record = records.next();
                    Check.equal("partition of " + record._1(), partition, record._1());
                    sum += record._2();
                    count++;
                }
                Check.equal("records of partition " + partition, n, count);
                return new ArrayList<>(java.util.Collections.singleton(sum)).iterator();
            }, true).collect();
        for (int key = 0; key < n; key++) {
            long expected = 0;
            for (int j = 0; j < n; j++) {
                expected += Check.mix((long) key * n + j);
            }
            Check.equal("sum of partition " + key, expected, sums.get(key));
        }
    }

    /** Bytes that do not compress: every map sends {@code perBlock} records to every reducer. */
    private static void bytes(
            JavaSparkContext jsc, int maps, int reduces, int perBlock, int recordSize) {
        int records = maps * reduces * perBlock;
        Map<Integer, Long> actual = new HashMap<>(RddCases.indices(jsc, records, maps)
            // Consecutive records of one map go to consecutive reducers.
            .mapToPair(i -> new Tuple2<>(i, randomBytes(i, recordSize)))
            .partitionBy(new HashPartitioner(reduces * maps) {
                @Override
                public int numPartitions() {
                    return reduces;
                }

                @Override
                public int getPartition(Object key) {
                    return ((Integer) key / maps) % reduces;
                }
            })
            .mapValues(BlockCases::crcOf).collectAsMap());
        Check.equal("records", records, actual.size());
        for (int i = 0; i < records; i++) {
            Check.equal("checksum of record " + i, crcOf(randomBytes(i, recordSize)),
                actual.get(i));
        }
    }

    /**
     * Each map sends one small record to every reducer; every 50th also sends 2 MiB to one of them.
     */
    private static void manyOutputs(JavaSparkContext jsc, int maps, int reduces) {
        int bigEvery = 50;
        int bigSize = 2 << 20;
        List<Long> actual = RddCases.indices(jsc, maps, maps).flatMapToPair(map -> {
            List<Tuple2<Integer, byte[]>> out = new ArrayList<>();
            for (int reduce = 0; reduce < reduces; reduce++) {
                out.add(new Tuple2<>(reduce, randomBytes(map * reduces + reduce, 64)));
            }
            if (map % bigEvery == 0) {
                out.add(new Tuple2<>(map / bigEvery % reduces, randomBytes(-map - 1, bigSize)));
            }
            return out.iterator();
        }).partitionBy(new HashPartitioner(reduces)).mapPartitions(records -> {
            long sum = 0;
            while (records.hasNext()) {
                sum += crcOf(records.next()._2());
            }
            return java.util.Collections.singleton(sum).iterator();
        }).collect();
        List<Long> expected = new ArrayList<>(java.util.Collections.nCopies(reduces, 0L));
        for (int map = 0; map < maps; map++) {
            for (int reduce = 0; reduce < reduces; reduce++) {
                expected.set(reduce,
                    expected.get(reduce) + crcOf(randomBytes(map * reduces + reduce, 64)));
            }
            if (map % bigEvery == 0) {
                int reduce = map / bigEvery % reduces;
                expected.set(reduce, expected.get(reduce) + crcOf(randomBytes(-map - 1, bigSize)));
            }
        }
        Check.equal("sums of the partitions", expected, actual);
    }

    private static byte[] randomBytes(int seed, int size) {
        SplittableRandom random = new SplittableRandom(seed);
        byte[] bytes = new byte[size];
        for (int at = 0; at + 8 <= size; at += 8) {
            long word = random.nextLong();
            for (int b = 0; b < 8; b++) {
                bytes[at + b] = (byte) (word >>> (8 * b));
            }
        }
        return bytes;
    }

    private static Long crcOf(byte[] bytes) {
        CRC32 crc = new CRC32();
        crc.update(bytes, 0, bytes.length);
        return crc.getValue();
    }

    private static void emptyPartitions(JavaSparkContext jsc) {
        // One map of twenty has data, for three reducers of fifty.
        Map<Integer, Long> actual = new HashMap<>(RddCases.indices(jsc, 20, 20)
            .filter(i -> i == 7)
            .flatMapToPair(i -> {
                List<Tuple2<Integer, Long>> out = new ArrayList<>();
                for (int k = 0; k < 3; k++) {
                    out.add(new Tuple2<>(k * 11, Check.mix(k)));
                }
                return out.iterator();
            }).reduceByKey(Long::sum, 50).collectAsMap());
        Map<Integer, Long> expected = new HashMap<>();
        for (int k = 0; k < 3; k++) {
            expected.put(k * 11, Check.mix(k));
        }
        Check.equal("three keys", expected, actual);
        Check.equal("nothing", 0L, RddCases.indices(jsc, 100, 10).filter(i -> i < 0)
            .mapToPair(i -> new Tuple2<>(i, i)).groupByKey(10).count());
    }
}
