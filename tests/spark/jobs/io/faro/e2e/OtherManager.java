package io.faro.e2e;

import java.util.HashMap;
import org.apache.spark.SparkConf;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.shuffle.sort.SortShuffleManager;

/**
 * Spark's sort shuffle with a block resolver of another class: Faro cannot know where such a manager keeps its map
 * outputs. For Spark 3.5, because the resolver's constructor differs between versions.
 */
public final class OtherManager extends SortShuffleManager {
    /** Null in the constructor of the superclass, which may call methods here. */
    private final IndexShuffleBlockResolver resolver;

    public OtherManager(SparkConf conf) {
        super(conf);
        resolver = new OtherFiles(conf);
    }

    @Override
    public IndexShuffleBlockResolver shuffleBlockResolver() {
        return resolver == null ? super.shuffleBlockResolver() : resolver;
    }

    private static final class OtherFiles extends IndexShuffleBlockResolver {
        OtherFiles(SparkConf conf) {
            super(conf, null, new HashMap<>());
        }
    }
}
