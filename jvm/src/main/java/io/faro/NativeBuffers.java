package io.faro;

import java.nio.ByteBuffer;

/** Buffers of an endpoint's arena. */
final class NativeBuffers implements BufferSource {
  private final long endpoint;
  /** Guarded by this: its own table of slabs, because the completions thread's is for that thread alone. */
  private final Slabs slabs;

  NativeBuffers(long endpoint) {
    this.endpoint = endpoint;
    this.slabs = new Slabs(endpoint);
  }

  @Override
  public Leased acquire(int bytes, long timeoutMillis) throws FaroException {
    int[] place = new int[3];
    long handle = Native.acquireBuffer(endpoint, bytes, timeoutMillis, place);
    boolean done = false;
    try {
      ByteBuffer memory = slab(place[0]).duplicate();
      memory.limit(place[1] + place[2]).position(place[1]);
      Leased leased = new Leased(handle, memory.slice());
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
