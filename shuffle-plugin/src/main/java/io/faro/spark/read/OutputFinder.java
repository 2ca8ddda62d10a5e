package io.faro.spark.read;

import io.faro.OutputFiles;
import scala.Option;

/** Finds Spark's files of a map output. */
public interface OutputFinder {
  /** The files in an executor's local directories; without any, in this executor's. {@code null}: there are none. */
  OutputFiles find(int shuffle, long map, Option<String[]> directories);
}
