package io.faro;

import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Buffers over the arena's slabs, by index; for one thread.
 *
 * <p>A slab stays mapped while the garbage collector can reach a buffer over it or a view of one. So a view that is
 * used after its release never reads unmapped memory; it can read bytes of another block, which Faro's own streams
 * detect (see {@link BlockStream}). The cache has weak references, batches have strong ones. A slab that the pool gives
 * back is therefore unmapped at the next garbage collection and not at once.
 */
final class Slabs implements Arena {
  private static final Logger LOG = LoggerFactory.getLogger(Slabs.class);

  private static final ReferenceQueue<ByteBuffer> UNREACHABLE = new ReferenceQueue<>();
  /** Keeps the references reachable while their buffers are reachable. */
  private static final Set<SlabReference> REFERENCES = ConcurrentHashMap.newKeySet();

  private final long endpoint;
  private CachedBuffer[] cached = new CachedBuffer[16];

  Slabs(long endpoint) {
    this.endpoint = endpoint;
  }

  private static final class CachedBuffer extends WeakReference<ByteBuffer> {
    CachedBuffer(ByteBuffer buffer) {
      super(buffer);
    }
  }

  private static final class SlabReference extends PhantomReference<ByteBuffer> {
    private final long handle;

    SlabReference(ByteBuffer buffer, long handle) {
      super(buffer, UNREACHABLE);
      this.handle = handle;
    }
  }

  @Override
  public ByteBuffer slab(int index) throws FaroException {
    if (index >= cached.length) {
      cached = Arrays.copyOf(cached, Math.max(index + 1, cached.length * 2));
    }
    CachedBuffer entry = cached[index];
    ByteBuffer buffer = entry == null ? null : entry.get();
    if (buffer == null) {
      buffer = reference(index);
      cached[index] = new CachedBuffer(buffer);
    }
    return buffer;
  }

  @Override
  public void release(long batch, int first, int count) {
    Native.releaseSlices(batch, first, count);
  }

  private ByteBuffer reference(int index) throws FaroException {
    long handle = Native.referenceSlab(endpoint, index);
    boolean kept = false;
    try {
      ByteBuffer buffer = Native.slabBytes(handle);
      REFERENCES.add(new SlabReference(buffer, handle));
      kept = true;
      return buffer;
    } finally {
      if (!kept) {
        Native.releaseSlab(handle);
      }
    }
  }

  /** Releases all slabs that are unreachable. The thread of {@link LogBridge} calls it once a second. */
  static void releaseUnreachable() {
    for (Reference<? extends ByteBuffer> gone = UNREACHABLE.poll(); gone != null; gone = UNREACHABLE.poll()) {
      SlabReference slab = (SlabReference) gone;
      REFERENCES.remove(slab);
      try {
        Native.releaseSlab(slab.handle);
      } catch (IllegalStateException e) {
        LOG.error("Cannot release slab reference {}", slab.handle, e);
      }
    }
  }

  static int referenced() {
    return REFERENCES.size();
  }
}
