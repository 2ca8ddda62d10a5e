package io.faro.e2e;

import java.util.HashSet;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/**
 * Lines by which the harness sees that an application gets on: a case has begun, tasks have ended, a condition is met.
 * It ends an application that prints none for minutes; nothing else has a deadline.
 */
public final class Marks {
    /** A local property of the jobs by which a wait looks whether its condition is met: they are no progress. */
    private static final String LOOKS = "faro.e2e.looks";
    private static final long APART_NANOS = 1_000_000_000L;
    /** Of the driver; executors have none. */
    private static volatile SparkContext context;

    private Marks() {}

    public static void begin(SparkContext sc) {
        context = sc;
        sc.addSparkListener(new Tasks());
    }

    static void caseBegun(String name) {
        System.out.println("MARK case " + name);
    }

    /** From here on the harness can say what is waited for; {@code owed}: what does not come is a leak. */
    static void waits(String what, boolean owed) {
        if (context != null) {
            System.out.println((owed ? "OWED " : "WAITS ") + what);
        }
    }

    static void met(String what) {
        if (context != null) {
            System.out.println("MARK met " + what);
        }
    }

    /** Whether a condition is met, by jobs that make no marks. */
    static boolean look(Callable<Boolean> condition) throws Exception {
        SparkContext sc = context;
        if (sc == null) {
            return condition.call();
        }
        String before = sc.getLocalProperty(LOOKS);
        sc.setLocalProperty(LOOKS, "true");
        try {
            return condition.call();
        } finally {
            sc.setLocalProperty(LOOKS, before);
        }
    }

    /** One line for all tasks that end within a second. */
    private static final class Tasks extends SparkListener {
        private final Set<Integer> looking = new HashSet<>();
        private long last = System.nanoTime() - APART_NANOS;

        @Override
        public void onStageSubmitted(SparkListenerStageSubmitted stage) {
            Properties properties = stage.properties();
            if (properties != null && properties.getProperty(LOOKS) != null) {
                looking.add(stage.stageInfo().stageId());
            }
        }

        @Override
        public void onTaskEnd(SparkListenerTaskEnd end) {
            long now = System.nanoTime();
            if (now - last >= APART_NANOS && !looking.contains(end.stageId())) {
                last = now;
                System.out.println("MARK task");
            }
        }
    }
}
