package io.faro.spark.transport;

import io.faro.BlockBytes;
import io.faro.Nullable;
import io.netty.buffer.ByteBuf;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NettyManagedBuffer;
import org.apache.spark.network.util.NettyUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A block that leaves the arena at once, because memory is scarce there.
 *
 * <p>Spark's iterator keeps blocks until a task reads them, and a task may read another input first: a sort-merge join
 * has two. If such blocks stayed in the arena, they could fill it while the blocks that the tasks wait for find no
 * room. The copy is in the pool of direct memory that Spark's own clients share, where Spark's own fetch would have put
 * the block: another pool would keep chunks of its own. It is bounded by the same settings
 * ({@code spark.reducer.maxSizeInFlight}).
 */
final class CopiedBlock extends NettyManagedBuffer {
  private static final Logger LOG = LoggerFactory.getLogger(CopiedBlock.class);

  /** Bytes of all copies of this process that are not released. */
  private static final AtomicLong HELD = new AtomicLong();

  private final ByteBuf copy;
  private final long bytes;
  private final AtomicBoolean counted = new AtomicBoolean(true);

  private CopiedBlock(ByteBuf copy) {
    super(copy);
    this.copy = copy;
    this.bytes = copy.readableBytes();
    HELD.addAndGet(bytes);
  }

  static long heldBytes() {
    return HELD.get();
  }

  @Override
  public ManagedBuffer release() {
    super.release();
    if (copy.refCnt() == 0 && counted.compareAndSet(true, false)) {
      HELD.addAndGet(-bytes);
    }
    return this;
  }

  /** A copy of the block, whose reference is then released. Null, and nothing done, without memory for a copy. */
  @Nullable static ManagedBuffer of(BlockBytes bytes) {
    if (bytes.length() > Integer.MAX_VALUE) {
      return null;
    }
    int length = (int) bytes.length();
    ByteBuf copy;
    try {
      copy = NettyUtils.getSharedPooledByteBufAllocator(true, false).directBuffer(length);
    } catch (OutOfMemoryError e) {
      LOG.debug("A block of {} bytes stays in the arena, although memory is scarce there", length, e);
      return null;
    }
    try {
      bytes.copyTo(copy.nioBuffer(0, length));
      copy.writerIndex(length);
    } catch (RuntimeException | Error e) {
      copy.release();
      throw e;
    }
    bytes.release();
    return new CopiedBlock(copy);
  }
}
