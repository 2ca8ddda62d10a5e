package io.faro.spark.read;

import io.faro.Endpoint;
import io.faro.rows.FileParts;
import java.nio.ByteBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NioManagedBuffer;

/**
 * Small parts in files of this host, read by native code many at a time: the files are open for peers anyway, and Spark
 * opens two for each part. One for each task.
 */
final class FileChunk {
  private static final int BYTES = 64 << 10;

  private final Endpoint endpoint;
  private final FileParts read = new FileParts(BYTES);
  /** The parts whose bytes are here: {@code count} of {@code parts} from {@code first} on. {@code null}: none are. */
  private Parts parts;
  private int first;
  private int count;
  /** The part that was asked for last, and where its bytes start. */
  private int at;
  private int start;

  FileChunk(Endpoint endpoint) {
    this.endpoint = endpoint;
  }

  /**
   * The bytes of part {@code i}, valid until the next call; {@code null}: Spark's code has to read it. Parts are asked
   * for in their order, up to {@code end}.
   */
  ManagedBuffer part(Parts of, int i, int end, LocalFiles files) throws Exception {
    if (of == parts && i > at && i < first + count) {
      while (at < i) {
        start += read.length(at - first);
        at++;
      }
    } else if (of.size(i) > BYTES || !fill(of, i, end, files)) {
      return null;
    }
    return new NioManagedBuffer(ByteBuffer.wrap(read.bytes(), start, read.length(at - first)));
  }

  /** False: the first part cannot be read here. */
  private boolean fill(Parts of, int i, int end, LocalFiles files) throws Exception {
    parts = null;
    count = read.read(endpoint, of.shuffle, of.maps(), of.starts(), of.ends(), i, end);
    if (count == 0) {
      if (!files.resolve(of, i)) {
        return false;
      }
      count = read.read(endpoint, of.shuffle, of.maps(), of.starts(), of.ends(), i, end);
    }
    parts = count == 0 ? null : of;
    first = i;
    at = i;
    start = 0;
    return count > 0;
  }
}
