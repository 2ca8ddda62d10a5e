package io.faro.spark.fetch;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.network.shuffle.DownloadFile;
import org.apache.spark.network.shuffle.DownloadFileManager;
import org.apache.spark.network.shuffle.SimpleDownloadFile;
import org.apache.spark.network.util.TransportConf;

/** Spark's temporary files for large blocks, in a directory of the test's. */
final class FakeFiles implements DownloadFileManager {
  final List<File> created = new ArrayList<>();
  File directory;
  boolean taskIsOver;

  @Override
  public DownloadFile createTempFile(TransportConf conf) {
    try {
      File file = File.createTempFile("block", ".data", directory);
      created.add(file);
      return new SimpleDownloadFile(file, conf);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  @Override
  public boolean registerTempFileToClean(DownloadFile file) {
    return !taskIsOver;
  }
}
