package io.faro.spark.fetch;

import io.faro.BlockIds;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executor;
import org.apache.spark.SparkConf;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.DownloadFile;
import org.apache.spark.network.shuffle.DownloadFileManager;
import org.apache.spark.network.shuffle.DownloadFileWritableChannel;
import org.apache.spark.network.util.MapConfigProvider;
import org.apache.spark.network.util.TransportConf;
import scala.Tuple2;

/** Files of Spark's for blocks above {@code spark.network.maxRemoteBlockSizeFetchToMem}, and the threads that write. */
public final class DownloadFiles {
  private static final int CHUNK_BYTES = 1 << 16;

  final Executor threads;
  /** Bytes of a piece that is not a block's last. */
  final long pieceBytes;
  private final TransportConf conf;

  public DownloadFiles(SparkConf conf, Executor threads) {
    this(conf, threads, BlockIds.PIECE_BYTES);
  }

  /** For tests: with small pieces. */
  DownloadFiles(SparkConf conf, Executor threads, long pieceBytes) {
    Map<String, String> all = new HashMap<>();
    for (Tuple2<String, String> entry : conf.getAll()) {
      all.put(entry._1(), entry._2());
    }
    this.conf = new TransportConf("shuffle", new MapConfigProvider(all));
    this.threads = threads;
    this.pieceBytes = pieceBytes;
  }

  /** A new file for one block. */
  Block create(DownloadFileManager files) throws IOException {
    DownloadFile file = files.createTempFile(conf);
    try {
      return new Block(files, file, file.openForWriting());
    } catch (IOException | RuntimeException e) {
      file.delete();
      throw e;
    }
  }

  /** The file of one block. For one thread at a time. */
  static final class Block {
    private final DownloadFileManager files;
    private final DownloadFile file;
    private final DownloadFileWritableChannel channel;

    private Block(DownloadFileManager files, DownloadFile file, DownloadFileWritableChannel channel) {
      this.files = files;
      this.file = file;
      this.channel = channel;
    }

    /** Appends the bytes; the caller keeps its reference. */
    void append(ManagedBuffer data) throws IOException {
      byte[] chunk = new byte[CHUNK_BYTES];
      try (InputStream in = data.createInputStream()) {
        for (int n = in.read(chunk); n >= 0; n = in.read(chunk)) {
          ByteBuffer from = ByteBuffer.wrap(chunk, 0, n);
          while (from.hasRemaining()) {
            channel.write(from);
          }
        }
      }
    }

    /** The whole block, with one reference. */
    ManagedBuffer finish() throws IOException {
      ManagedBuffer written = channel.closeAndRead();
      if (!files.registerTempFileToClean(file)) {
        // The task is over: it does not read or delete the file.
        file.delete();
      }
      return written;
    }

    /** Deletes the file of a block that is not wanted, or does not come. */
    void discard() {
      try {
        channel.close();
      } catch (IOException e) {
        // The bytes that were written are not used.
      }
      file.delete();
    }
  }
}
