package io.faro.spark;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.DownloadFile;
import org.apache.spark.network.shuffle.DownloadFileManager;
import org.apache.spark.network.shuffle.DownloadFileWritableChannel;
import org.apache.spark.network.util.MapConfigProvider;
import org.apache.spark.network.util.TransportConf;
import scala.Tuple2;

/**
 * Writes a block from the arena into a file of Spark's, for requests above
 * {@code spark.network.maxRemoteBlockSizeFetchToMem}. The block must fit into the arena first, so this is only for
 * fallback=never, which does not allow Spark's own fetch (it streams into the file).
 */
final class ToFile {
  private static final int CHUNK_BYTES = 1 << 16;

  private final TransportConf conf;

  ToFile(SparkConf conf) {
    Map<String, String> all = new HashMap<>();
    for (Tuple2<String, String> entry : conf.getAll()) {
      all.put(entry._1(), entry._2());
    }
    this.conf = new TransportConf("shuffle", new MapConfigProvider(all));
  }

  /** The file, with one reference; the caller still owns {@code data}. */
  ManagedBuffer write(ManagedBuffer data, DownloadFileManager files) throws IOException {
    DownloadFile file = files.createTempFile(conf);
    try {
      DownloadFileWritableChannel channel = file.openForWriting();
      try (InputStream in = data.createInputStream()) {
        copy(in, channel);
      } catch (IOException | RuntimeException e) {
        channel.close();
        throw e;
      }
      ManagedBuffer written = channel.closeAndRead();
      if (!files.registerTempFileToClean(file)) {
        // The task is over: it does not read or delete the file.
        file.delete();
      }
      return written;
    } catch (IOException | RuntimeException e) {
      file.delete();
      throw e;
    }
  }

  private static void copy(InputStream in, DownloadFileWritableChannel channel) throws IOException {
    byte[] chunk = new byte[CHUNK_BYTES];
    for (int n = in.read(chunk); n >= 0; n = in.read(chunk)) {
      ByteBuffer from = ByteBuffer.wrap(chunk, 0, n);
      while (from.hasRemaining()) {
        channel.write(from);
      }
    }
  }
}
