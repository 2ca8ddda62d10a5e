package io.faro.spark.codec;

import java.io.IOException;
import java.io.InputStream;

/** The original bytes of lz4-java's block stream, or of several that were joined, which may have row blocks. */
public final class BlockInputStream extends PieceInputStream {
  private final InputStream in;
  private BlockDecoder decoder = new BlockDecoder();
  private long offset;

  public BlockInputStream(InputStream in) {
    super(in);
    this.in = in;
  }

  @Override
  int next() throws IOException {
    int bytes = decoder.next(in, offset);
    if (bytes >= 0) {
      offset += decoder.lastBytes();
    }
    return bytes;
  }

  @Override
  byte[] made() {
    return decoder.block();
  }

  @Override
  void free() {
    decoder = null;
  }
}
