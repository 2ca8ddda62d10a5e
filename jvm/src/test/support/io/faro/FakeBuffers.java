package io.faro;

import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.Set;

/** A source of buffers without native code: it has a fixed number of 4 KiB buffers, and records which are leased. */
final class FakeBuffers implements BufferSource {
  private final int max;
  private final Set<Long> out = new HashSet<>();
  private long next = 1;
  /** Number of calls of {@link #acquire} that found no buffer. */
  private int refusals;

  FakeBuffers(int max) {
    this.max = max;
  }

  @Override
  public synchronized LeasedMemory acquire(int bytes, long timeoutMillis) throws FaroException {
    if (out.size() == max) {
      refusals++;
      notifyAll();
      if (timeoutMillis > 0) {
        try {
          wait(timeoutMillis);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      }
      if (out.size() == max) {
        throw new EndpointException.Exhausted("all " + max + " are out");
      }
    }
    long handle = next++;
    out.add(handle);
    return new LeasedMemory(handle, ByteBuffer.allocateDirect(4096));
  }

  @Override
  public synchronized void release(long handle) {
    if (!out.remove(handle)) {
      throw new IllegalStateException(handle + " is not out");
    }
    notifyAll();
  }

  synchronized int out() {
    return out.size();
  }

  /** Returns when a call was refused after the first {@code before} refusals. */
  synchronized void awaitRefusal(int before) throws InterruptedException {
    while (refusals <= before) {
      wait();
    }
  }
}
