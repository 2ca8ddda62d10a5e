package io.faro.e2e;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.util.LongAccumulator;

/** Executors and nodes that leave where a shuffle service has their map outputs, or had them. */
final class ServiceCases {
    private ServiceCases() {}

    static void register(Map<String, Jobs.Case> cases) {
        cases.put("leaveInMidJob", c -> leaveInMidJob(c.jsc, c.scratch));
        cases.put("nodeLost", c -> nodeLost(c.jsc, c.scratch));
        cases.put("shuffleFiles", c -> shuffleFiles(c.jsc, c.spark));
    }

    /**
     * In the middle of one job an executor with map outputs leaves because it has nothing to do, and another one joins,
     * which reads outputs of both. No map task runs again.
     */
    private static void leaveInMidJob(JavaSparkContext jsc, File scratch) throws Exception {
        File seen = new File(scratch, "readers-seen");
        Check.that("scratch directory " + seen, seen.mkdirs());
        LongAccumulator maps = jsc.sc().longAccumulator("map tasks");
        List<String> pids = new ArrayList<>(Executors.pids(jsc, 2).values());
        JavaPairRDD<Integer, Long> second = RddCases.pairs(jsc, 8).partitionBy(new HashPartitioner(6))
            .mapPartitionsToPair(records -> {
                maps.add(1);
                if (TaskContext.getPartitionId() == 0) {
                    // This one is in work until the other one has left.
                    String own = Executors.pid();
                    Check.await("the other executor should leave",
                        () -> pids.stream().noneMatch(pid -> !pid.equals(own) && Executors.alive(pid)));
                }
                return records;
            });
        Map<Integer, List<Long>> got = new HashMap<>(second.partitionBy(new HashPartitioner(7))
            .mapPartitionsToPair(records -> {
                new File(seen, Executors.pid()).createNewFile();
                Check.await("a new executor should join", () -> seen.list().length >= 2);
                return records;
            }).groupByKey(new HashPartitioner(5)).mapValues(RddCases::digest).collectAsMap());
        Check.equal("groups", RddCases.expected(), got);
        Check.equal("map tasks run", 6L, (long) maps.value());
    }

    /** The test kills a node, with its executor and its shuffle service, when this line is written. */
    private static void nodeLost(JavaSparkContext jsc, File scratch) throws Exception {
        LongAccumulator maps = jsc.sc().longAccumulator("map tasks");
        JavaPairRDD<Integer, Iterable<Long>> grouped = RddCases.pairs(jsc, 8).mapPartitionsToPair(records -> {
            maps.add(1);
            return records;
        }).groupByKey(6);
        Check.equal("before", RddCases.expected(), digests(grouped));
        Executors.pids(jsc, 2);
        long before = maps.value();
        System.out.println("NODE MAY GO");
        Check.awaitFile(new File(scratch, "node-lost"));
        Check.equal("after", RddCases.expected(), digests(grouped));
        Check.that("map tasks should run again", maps.value() > before);
    }

    /** The modes of the files of shuffles; the service deletes those of an executor that left. */
    private static void shuffleFiles(JavaSparkContext jsc, org.apache.spark.sql.SparkSession spark) throws Exception {
        List<String> pids = new ArrayList<>(Executors.pids(jsc, 2).values());
        List<Object> held = shuffle(jsc, spark);
        List<String> places = jsc.parallelize(new ArrayList<>(java.util.Arrays.asList(0, 1, 2, 3, 4, 5, 6, 7)), 8)
            .flatMap(i -> {
                BlockManager blocks = SparkEnv.get().blockManager();
                List<String> found = new ArrayList<>();
                for (File dir : blocks.diskBlockManager().localDirs()) {
                    found.add(dir.getPath());
                }
                return found.iterator();
            }).distinct().collect();
        TreeSet<String> modes = new TreeSet<>();
        for (File file : shuffleFiles(places)) {
            modes.add(mode(file.getParentFile().toPath()) + " of a directory");
            modes.add(mode(file.toPath()) + " of " + file.getName().replaceAll("[0-9]+", "N").replaceAll(".*\\.", ""));
        }
        Check.that("there should be files of shuffles in " + places, !modes.isEmpty());
        System.out.println("MODES " + modes);
        int before = Executors.registered(jsc);
        Executors.signal(pids.get(0), "KILL");
        // Of executors that the driver believes to live it does not ask the service to remove anything.
        Check.await("the driver should know", () -> Executors.registered(jsc) < before);
        held.clear();
        // Spark's cleaner asks for the removal when the collector has found that nobody can read the shuffles.
        // The service is asked for data and index files only: files of checksums stay until the application ends.
        Check.awaitReturn("all data and index files should be gone", () -> {
            System.gc();
            return shuffleFiles(places).stream().allMatch(file -> file.getName().contains(".checksum."));
        });
    }

    /** Returns what keeps the shuffles from being removed. */
    private static List<Object> shuffle(JavaSparkContext jsc, org.apache.spark.sql.SparkSession spark) {
        JavaPairRDD<Integer, Iterable<Long>> groups = RddCases.pairs(jsc, 8).groupByKey(6);
        Check.equal("groups", RddCases.expected(), digests(groups));
        JavaRDD<?> rows = spark.range(0, 20_000, 1, 8).repartition(6).javaRDD();
        Check.equal("rows", 20_000L, rows.count());
        return new ArrayList<>(java.util.Arrays.asList(groups, rows));
    }

    private static List<File> shuffleFiles(List<String> places) throws Exception {
        List<File> found = new ArrayList<>();
        for (String place : places) {
            if (!new File(place).isDirectory()) {
                continue;
            }
            try (Stream<Path> all = Files.walk(new File(place).toPath())) {
                found.addAll(all.map(Path::toFile).filter(file -> file.getName().startsWith("shuffle_"))
                    .collect(Collectors.toList()));
            } catch (java.io.UncheckedIOException e) {
                // Deleted while it was looked at: what is left is found the next time.
                found.add(new File(place));
            }
        }
        return found;
    }

    private static String mode(Path path) throws Exception {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(path));
    }

    private static Map<Integer, List<Long>> digests(JavaPairRDD<Integer, Iterable<Long>> grouped) {
        return new HashMap<>(grouped.mapValues(RddCases::digest).collectAsMap());
    }
}
