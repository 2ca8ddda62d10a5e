package io.faro.spark.read;

import java.io.IOException;
import java.io.InputStream;

/**
 * Spark's iterator hands it over as the stream of a group. It carries the buffer, which the reader decodes in place;
 * it is no stream of bytes.
 */
final class GroupStream extends InputStream {
  final GroupBuffer buffer;

  GroupStream(GroupBuffer buffer) {
    this.buffer = buffer;
  }

  @Override
  public int read() throws IOException {
    throw new IOException("a group of blocks is decoded in place");
  }
}
