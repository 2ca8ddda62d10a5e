package io.faro.e2e;

import org.apache.spark.SparkConf;
import org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO;

/** Spark's local disk under another name: Faro cannot know where such a plugin keeps map outputs. */
public final class OtherShuffleDataIO extends LocalDiskShuffleDataIO {
    public OtherShuffleDataIO(SparkConf conf) {
        super(conf);
    }
}
