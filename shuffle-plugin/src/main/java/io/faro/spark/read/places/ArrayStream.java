package io.faro.spark.read.places;

import java.io.IOException;
import java.io.InputStream;

/** A stream that is read into arrays: a single byte is an array of one. */
public abstract class ArrayStream extends InputStream {
  @Override
  public final int read() throws IOException {
    byte[] one = new byte[1];
    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
  }

  @Override
  public abstract int read(byte[] to, int offset, int length) throws IOException;
}
