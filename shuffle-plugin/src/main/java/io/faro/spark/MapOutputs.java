package io.faro.spark;

import io.faro.OutputFiles;
import io.faro.OutputResolver;
import java.io.File;
import java.util.function.Supplier;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import scala.Option;

/**
 * Says where Spark keeps the files of a map output. Asked when a peer first wants it, not told when it is written:
 * outputs that a decommissioned executor moved here never pass our writers.
 */
final class MapOutputs implements OutputResolver {
  private final Supplier<IndexShuffleBlockResolver> spark;

  MapOutputs(Supplier<IndexShuffleBlockResolver> spark) {
    this.spark = spark;
  }

  @Override
  public OutputFiles resolve(int shuffleId, long mapId) {
    IndexShuffleBlockResolver resolver = spark.get();
    File index = resolver.getIndexFile(shuffleId, mapId, Option.<String[]>empty());
    // The index is there for every output; the data only if it has any bytes.
    return index.isFile() ? new OutputFiles(resolver.getDataFile(shuffleId, mapId), index) : null;
  }
}
