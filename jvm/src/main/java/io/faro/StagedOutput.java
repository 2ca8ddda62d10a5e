package io.faro;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The data file of a map output while it is written: the endpoint keeps a copy of its first bytes in the arena, as many
 * as there is room for, and need not read them back when the output is committed. For one thread at a time.
 */
public final class StagedOutput implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(StagedOutput.class);

  /** 0: dropped, or handed over. */
  private long handle;
  /** The endpoint has room for more. */
  private boolean wanted = true;

  StagedOutput(long handle) {
    this.handle = handle;
  }

  /** Takes the file's next bytes. */
  public void append(byte[] bytes, int offset, int length) {
    if (offset < 0 || length < 0 || offset > bytes.length - length) {
      throw new IndexOutOfBoundsException(length + " bytes from " + offset + " of " + bytes.length);
    }
    if (wanted && handle != 0) {
      try {
        wanted = Native.stageBytes(handle, bytes, offset, length);
      } catch (FaroException e) {
        LOG.debug("A map output is not copied to the arena", e);
        wanted = false;
      }
    }
  }

  /** The file has bytes here that are not given: what follows is of no use. */
  public void end() {
    if (wanted && handle != 0) {
      wanted = false;
      Native.stageEnd(handle);
    }
  }

  /** For the call that takes it over. */
  long release() {
    long released = handle;
    handle = 0;
    return released;
  }

  /** Drops the copy, if {@link Endpoint#committed} has not taken it. Idempotent. */
  @Override
  public void close() {
    long dropped = release();
    if (dropped != 0) {
      Native.dropStaged(dropped);
    }
  }
}
