package io.faro.e2e;

import java.io.File;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;

/**
 * The program that the harness submits: runs the named cases in one application, prints one line
 * for each ({@code CASE name OK millis} or {@code CASE name FAILED why}), then what Faro counted.
 *
 * <p>Compiled once for Java 8 against Spark 3.5 and run on every version, so it keeps to what is
 * the same in all of them: the Java API, SQL text, and no Scala collections.
 */
public final class Jobs {
    private Jobs() {}

    interface Case {
        void run(Context context) throws Exception;
    }

    /** What a case is given. */
    static final class Context {
        final SparkSession spark;
        final JavaSparkContext jsc;
        /** Seen by the driver and by the executors: they are on one machine. */
        final File scratch;

        Context(SparkSession spark, File scratch) {
            this.spark = spark;
            this.jsc = JavaSparkContext.fromSparkContext(spark.sparkContext());
            this.scratch = scratch;
        }
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 2) {
            throw new IllegalArgumentException("expected: SCRATCH_DIR CASE...");
        }
        File scratch = new File(args[0]);
        if (args[1].equals("badConfig")) {
            System.exit(BadConfig.run(scratch));
        }
        Map<String, Case> known = new LinkedHashMap<>();
        RddCases.register(known);
        BlockCases.register(known);
        SqlCases.register(known);
        SortCases.register(known);
        AqeCases.register(known);
        FailureCases.register(known);
        ElasticCases.register(known);
        NodeServiceCases.register(known);
        LentCases.register(known);
        ManyLentCases.register(known);
        ServiceCases.register(known);
        RowCases.register(known);
        RowLifeCases.register(known);
        RowBlockCases.register(known);
        StreamCases.register(known);
        WriterCases.register(known);
        WriterMemory.register(known);
        WriterFailures.register(known);
        UiCases.register(known);
        PluginCases.register(known);
        SettingCases.register(known);
        SwitchCases.register(known);
        CometCases.register(known);
        registerFaroCases(known);

        SparkSession spark = SparkSession.builder().getOrCreate();
        int failed = 0;
        Context context = new Context(spark, scratch);
        Marks.begin(spark.sparkContext());
        for (int i = 1; i < args.length; i++) {
            Case test = known.get(args[i]);
            if (test == null) {
                throw new IllegalArgumentException(
                    "no case named " + args[i] + "; there are: " + known.keySet());
            }
            failed += runOne(args[i], test, context) ? 0 : 1;
        }
        report(context);
        spark.stop();
        System.out.println("JOBS DONE");
        System.exit(failed == 0 ? 0 : 1);
    }

    /** Cases that call Faro's own API are compiled only where there is a jar of it. */
    private static void registerFaroCases(Map<String, Case> known) throws Exception {
        try {
            Class.forName("io.faro.e2e.BarrierCases").getDeclaredMethod("register", Map.class)
                .invoke(null, known);
        } catch (ClassNotFoundException | NoClassDefFoundError e) {
            // Stock Spark is being tested, or runs beside Faro.
        }
    }

    private static boolean runOne(String name, Case test, Context context) {
        Marks.caseBegun(name);
        long start = System.nanoTime();
        try {
            test.run(context);
            System.out.println("CASE " + name + " OK " + (System.nanoTime() - start) / 1_000_000);
            return true;
        } catch (Exception | Error e) {
            e.printStackTrace();
            String why = String.valueOf(e.getMessage()).split("\n")[0];
            System.out.println("CASE " + name + " FAILED " + e.getClass().getSimpleName() + ": "
                + why);
            return false;
        }
    }

    private static void report(Context context) {
        try {
            for (Map.Entry<String, TreeMap<String, Double>> executor
                    : FaroCounters.ofExecutors(context.jsc).entrySet()) {
                System.out.println("COUNTERS " + executor.getKey() + " " + executor.getValue());
            }
        } catch (Exception e) {
            System.out.println("COUNTERS unavailable: " + e);
        }
    }
}
