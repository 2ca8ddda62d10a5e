package io.faro.e2e;

import java.io.DataInputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/** The local directories of the executors that run now, and the shuffle files in them. */
final class LocalFiles {
    private static final Pattern COMMITTED =
        Pattern.compile("shuffle_\\d+_\\d+_\\d+\\.(data|index|checksum\\.\\w+)");

    private LocalFiles() {}

    /** Paths of the local directories, by executor. */
    static Map<String, List<String>> directories(JavaSparkContext jsc) throws Exception {
        Map<String, List<String>> found = new TreeMap<>();
        Check.await("all executors should run a task", () -> {
            found.clear();
            List<Integer> tasks = new ArrayList<>();
            for (int i = 0; i < 16; i++) {
                tasks.add(i);
            }
            for (Tuple2<String, List<String>> one : jsc.parallelize(tasks, tasks.size()).map(i -> here()).collect()) {
                found.put(one._1(), one._2());
            }
            return found.size() >= Executors.registered(jsc);
        });
        return found;
    }

    private static Tuple2<String, List<String>> here() {
        List<String> paths = new ArrayList<>();
        for (File directory : SparkEnv.get().blockManager().diskBlockManager().localDirs()) {
            paths.add(directory.getPath());
        }
        return new Tuple2<>(SparkEnv.get().executorId(), paths);
    }

    /** All files of the executors by name. */
    static Map<String, File> all(JavaSparkContext jsc) throws Exception {
        Map<String, File> found = new TreeMap<>();
        for (List<String> paths : directories(jsc).values()) {
            for (String path : paths) {
                walk(new File(path), file -> found.put(file.getName(), file));
            }
        }
        return found;
    }

    /** Calls {@code each} for every file below the directory; one that is deleted meanwhile is left out. */
    static void walk(File directory, Consumer<File> each) {
        File[] children = directory.listFiles();
        for (File child : children == null ? new File[0] : children) {
            if (child.isDirectory()) {
                walk(child, each);
            } else {
                each.accept(child);
            }
        }
    }

    /** A shuffle file's name without its extension: that of its map output. */
    static String output(String name) {
        int dot = name.indexOf('.');
        return dot < 0 ? name : name.substring(0, dot);
    }

    /** Names of shuffle files that no map output has: spills, temporary files, and data without an index. */
    private static TreeSet<String> unfinished(JavaSparkContext jsc) throws Exception {
        TreeSet<String> names = new TreeSet<>(all(jsc).keySet());
        TreeSet<String> left = new TreeSet<>();
        for (String name : names) {
            boolean committed = COMMITTED.matcher(name).matches()
                && names.contains(output(name) + ".index");
            if (name.startsWith("temp_shuffle_") || name.startsWith("shuffle_") && !committed) {
                left.add(name);
            }
        }
        return left;
    }

    /** Waits until no such file is there: tasks that were ended may still delete theirs. */
    static void awaitNoneUnfinished(JavaSparkContext jsc) throws Exception {
        awaitNoneUnfinished(jsc, Collections.emptySet());
    }

    /** The same, without the files of the outputs {@code lost}. */
    static void awaitNoneUnfinished(JavaSparkContext jsc, Set<String> lost) throws Exception {
        TreeSet<String> before = new TreeSet<>();
        Check.awaitReturn("unfinished files should be deleted", () -> {
            TreeSet<String> left = unfinished(jsc);
            left.removeIf(name -> lost.contains(output(name)));
            // For whoever looks into the log because they stay.
            if (!left.equals(before)) {
                System.out.println("unfinished: " + left);
                before.clear();
                before.addAll(left);
            }
            return left.isEmpty();
        });
    }

    /** All numbers of an index or checksum file. */
    static long[] numbers(File file) throws IOException {
        long[] numbers = new long[(int) (file.length() / Long.BYTES)];
        try (DataInputStream in = new DataInputStream(new FileInputStream(file))) {
            for (int i = 0; i < numbers.length; i++) {
                numbers[i] = in.readLong();
            }
        }
        return numbers;
    }
}
