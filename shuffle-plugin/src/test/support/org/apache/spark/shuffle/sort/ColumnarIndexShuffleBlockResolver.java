package org.apache.spark.shuffle.sort;

import java.util.HashMap;
import org.apache.spark.SparkConf;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;

/** A class of the name of Gluten's, whose bundle is on no registry that the tests reach. */
public final class ColumnarIndexShuffleBlockResolver extends IndexShuffleBlockResolver {
  public ColumnarIndexShuffleBlockResolver(SparkConf conf) {
    super(conf, null, new HashMap<>());
  }
}
