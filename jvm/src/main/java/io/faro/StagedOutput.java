package io.faro;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Stages the data file of a map output while it is written: the endpoint keeps a copy of its first bytes in the arena,
 * as far as there is room, and need not read them back after the commit. For one thread at a time.
 */
public final class StagedOutput implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(StagedOutput.class);

  /** The native handle; 0 after the copy was dropped or handed over. */
  private long handle;
  /** True while the endpoint has room for more. */
  private boolean wanted = true;

  StagedOutput(long handle) {
    this.handle = handle;
  }

  /** Appends the file's next bytes to the copy. */
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

  /** Ends the copy, because the file's next bytes are left out and later ones would not follow. */
  public void end() {
    if (wanted && handle != 0) {
      wanted = false;
      Native.stageEnd(handle);
    }
  }

  /** Returns the handle to the call that takes it over. */
  long release() {
    long released = handle;
    handle = 0;
    return released;
  }

  /** Drops the copy, unless {@link Endpoint#committed} has taken it. Idempotent. */
  @Override
  public void close() {
    long dropped = release();
    if (dropped != 0) {
      Native.dropStaged(dropped);
    }
  }
}
