package io.faro.spark;

import io.faro.OutputFiles;
import io.faro.OutputResolver;
import io.faro.spark.read.places.LocalFiles.OutputFinder;
import java.io.File;
import java.util.function.Supplier;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import scala.Option;

/**
 * Finds Spark's files of a map output when a peer first requests it. Writers cannot announce all outputs: those that a
 * decommissioned executor moved here have no writer here.
 *
 * <p>The resolver may be {@code null}: the shuffle manager is another, whose outputs are not such files.
 */
final class MapOutputs implements OutputResolver, OutputFinder {
  private final Supplier<IndexShuffleBlockResolver> spark;

  MapOutputs(Supplier<IndexShuffleBlockResolver> spark) {
    this.spark = spark;
  }

  @Override
  public OutputFiles resolve(int shuffleId, long mapId) {
    return find(shuffleId, mapId, Option.empty());
  }

  @Override
  public OutputFiles find(int shuffleId, long mapId, Option<String[]> directories) {
    IndexShuffleBlockResolver resolver = spark.get();
    if (resolver == null) {
      return null;
    }
    File index = resolver.getIndexFile(shuffleId, mapId, directories);
    // Every output has an index file; an empty one has no data file.
    boolean isServed = index.isFile() && !hasSegments(index);
    return isServed ? new OutputFiles(resolver.getDataFile(shuffleId, mapId, directories), index) : null;
  }

  /**
   * Returns whether the index is of Gluten's format for partitions of several segments, which Spark's fetch reads by
   * Gluten's resolver. Such an index ends with one byte more than its numbers of 8 bytes; Spark's has none.
   */
  static boolean hasSegments(File index) {
    return index.length() % Long.BYTES == 1;
  }
}
