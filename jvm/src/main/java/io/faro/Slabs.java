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
 * Buffers over the arena's slabs, by index.
 *
 * <p>A slab stays pinned (mapped) for as long as the collector can reach a buffer over it or a view of one, so that no
 * misuse of a view, however late, reads unmapped memory: the worst it can see is other bytes, and Faro's own streams
 * do not even see those (see {@link BlockStream}). The cache itself holds weakly; batches hold strongly. Price: a slab
 * that the pool gives up is unmapped at the next collection rather than at once.
 */
final class Slabs implements Arena {
  private static final Logger LOG = LoggerFactory.getLogger(Slabs.class);

  private static final ReferenceQueue<ByteBuffer> UNREACHABLE = new ReferenceQueue<>();
  /** Keeps the pins themselves reachable until their buffer is not. */
  private static final Set<Pin> PINS = ConcurrentHashMap.newKeySet();

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

  private static final class Pin extends PhantomReference<ByteBuffer> {
    private final long handle;

    Pin(ByteBuffer buffer, long handle) {
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
      buffer = pin(index);
      cached[index] = new CachedBuffer(buffer);
    }
    return buffer;
  }

  @Override
  public void releaseBatch(long handle) {
    Native.releaseBatch(handle);
  }

  private ByteBuffer pin(int index) throws FaroException {
    long handle = Native.pinSlab(endpoint, index);
    boolean kept = false;
    try {
      ByteBuffer buffer = Native.slabBytes(handle);
      PINS.add(new Pin(buffer, handle));
      kept = true;
      return buffer;
    } finally {
      if (!kept) {
        Native.unpinSlab(handle);
      }
    }
  }

  /** Ends the pins of all slabs that nothing can reach any more. Called now and then by {@link LogBridge}'s thread. */
  static void unpinUnreachable() {
    for (Reference<? extends ByteBuffer> gone = UNREACHABLE.poll(); gone != null; gone = UNREACHABLE.poll()) {
      Pin pin = (Pin) gone;
      PINS.remove(pin);
      try {
        Native.unpinSlab(pin.handle);
      } catch (IllegalStateException e) {
        LOG.error("Slab pin {}", pin.handle, e);
      }
    }
  }

  /** How many slabs are pinned in this process. */
  static int pinned() {
    return PINS.size();
  }
}
