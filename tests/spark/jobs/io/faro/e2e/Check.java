package io.faro.e2e;

import java.io.File;
import java.util.Objects;
import java.util.concurrent.Callable;

/** Exact comparisons and waits with a deadline. */
final class Check {
    private static volatile Object last;

    private Check() {}

    /** Keeps an RDD until here: Spark removes the shuffles of those that the driver's JVM has collected. */
    static void inUse(Object rdd) {
        last = rdd;
        last = null;
    }

    static void equal(String what, Object expected, Object actual) {
        if (!Objects.equals(expected, actual)) {
            throw new AssertionError(what + ": expected " + expected + " but was " + actual);
        }
    }

    static void that(String what, boolean holds) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void await(String what, int seconds, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + seconds * 1_000_000_000L;
        while (!condition.call()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError(what + ": not within " + seconds + " s");
            }
            Thread.sleep(20);
        }
    }

    static void awaitFile(File file, int seconds) throws Exception {
        await(file.getName() + " should appear", seconds, file::exists);
    }

    /** The data of every case: a fixed function of the index (SplitMix64). */
    static long mix(long index) {
        long z = index * 0x9E3779B97F4A7C15L + 0x632BE59BD9B4E019L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
