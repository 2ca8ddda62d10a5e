package io.faro.e2e;

import java.io.File;
import java.util.Objects;
import java.util.concurrent.Callable;

/** Exact comparisons, and waits, which have no deadline: see {@link Marks}. */
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

    /** Waits for something that a busy machine does late. */
    static void await(String what, Callable<Boolean> condition) throws Exception {
        await(what, condition, false);
    }

    /** Waits until something was given back; if that never comes, it has leaked. */
    static void awaitReturn(String what, Callable<Boolean> condition) throws Exception {
        await(what, condition, true);
    }

    private static void await(String what, Callable<Boolean> condition, boolean owed) throws Exception {
        if (!Marks.look(condition)) {
            Marks.waits(what, owed);
            do {
                Thread.sleep(20);
            } while (!Marks.look(condition));
        }
        Marks.met(what);
    }

    static void awaitFile(File file) throws Exception {
        await(file.getName() + " should appear", file::exists);
    }

    /** The data of every case: a fixed function of the index (SplitMix64). */
    static long mix(long index) {
        long z = index * 0x9E3779B97F4A7C15L + 0x632BE59BD9B4E019L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
