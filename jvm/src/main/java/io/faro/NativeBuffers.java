package io.faro;

import java.nio.ByteBuffer;

/** Leases buffers of an endpoint's arena. */
final class NativeBuffers implements BufferSource {
  private final long endpoint;
  /** Guarded by this. The completions thread has its own table, without a lock. */
  private final Slabs slabs;

  NativeBuffers(long endpoint) {
    this.endpoint = endpoint;
    this.slabs = new Slabs(endpoint);
  }

  @Override
  public LeasedMemory acquire(int bytes, long timeoutMillis) throws FaroException {
    int[] position = new int[3];
    long handle = Native.acquireBuffer(endpoint, bytes, timeoutMillis, position);
    boolean done = false;
    try {
      ByteBuffer memory = slab(position[0]).duplicate();
      memory.limit(position[1] + position[2]).position(position[1]);
      LeasedMemory leased = new LeasedMemory(handle, memory.slice());
      done = true;
      return leased;
    } finally {
      if (!done) {
        Native.releaseBuffer(handle);
      }
    }
  }

  private synchronized ByteBuffer slab(int index) throws FaroException {
    return slabs.slab(index);
  }

  @Override
  public void release(long handle) {
    Native.releaseBuffer(handle);
  }
}
