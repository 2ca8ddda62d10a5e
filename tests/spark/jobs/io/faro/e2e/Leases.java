package io.faro.e2e;

import java.util.Map;
import org.apache.spark.api.java.JavaSparkContext;

/** The arena's memory that tasks hold. */
final class Leases {
    private Leases() {}

    /** Waits until no executor holds memory of tasks that have ended. */
    static void awaitReturned(JavaSparkContext jsc) throws Exception {
        Check.await("leases of ended tasks should go back", 30, () -> {
            for (Map<String, Double> counters : FaroCounters.ofExecutors(jsc).values()) {
                double leased = counters.getOrDefault("pool.leasedBytes", 0.0)
                    - counters.getOrDefault("region.cachedBytes", 0.0)
                    - counters.getOrDefault("connectionBytes", 0.0);
                if (leased > 4 << 20) {
                    return false;
                }
            }
            return true;
        });
    }
}
