package io.faro.spark.read;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NioManagedBuffer;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;

/** A part that came over the network, because files of this host do not give it. */
final class FetchedPart extends NioManagedBuffer {
  private final int bytes;

  private FetchedPart(byte[] bytes) {
    super(ByteBuffer.wrap(bytes));
    this.bytes = bytes.length;
  }

  static FetchedPart copy(ManagedBuffer from) throws IOException {
    byte[] bytes = new byte[Math.toIntExact(from.size())];
    try (InputStream in = PartsStream.open(from)) {
      for (int read = 0; read < bytes.length;) {
        int now = in.read(bytes, read, bytes.length - read);
        if (now < 0) {
          throw new EOFException("it ends after " + read + " of " + bytes.length + " bytes");
        }
        read += now;
      }
    }
    return new FetchedPart(bytes);
  }

  void count(ShuffleReadMetricsReporter metrics) {
    metrics.incRemoteBlocksFetched(1);
    metrics.incRemoteBytesRead(bytes);
  }
}
