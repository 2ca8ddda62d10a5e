package io.faro;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/**
 * Blocks whose bytes lie, one after the other, in slices of the arena.
 *
 * <p>A record is decoded once into three small arrays, because its buffer is reused. After that a block costs one array
 * read, and one object if it is taken. Memory is returned slice by slice. A slice counts its users: the delivery, and
 * each {@link ArenaBlock} with references whose bytes lie in the slice. So a block that is kept keeps only its own
 * slices.
 */
final class ArenaBatch implements BlockBatch {
  private static final AtomicIntegerFieldUpdater<ArenaBatch> HOLDS =
      AtomicIntegerFieldUpdater.newUpdater(ArenaBatch.class, "holds");

  private final Arena arena;
  private final long request;
  private final int firstBlock;
  private final Fabric fabric;
  private final boolean scarce;
  /** Native handle; 0 if the blocks have no bytes. */
  private final long handle;
  /** Offset of each block in the stream of slices, and the end of the last block. */
  private final long[] blockStarts;
  /** Codes of {@link BlockStatus}; null if all blocks are OK. */
  private final byte[] statuses;
  /** Root buffer of each slice's slab. */
  private final ByteBuffer[] slabs;
  /** Offset of each slice in its slab. */
  private final int[] slabOffsets;
  /** Offset of each slice in the stream, and the end of the last slice. */
  private final long[] sliceStarts;

  /** Number of users of the batch: the delivery, and each ArenaBlock that has references. */
  @SuppressWarnings("unused")
  private volatile int holds = 1;
  /** Number of users of each slice; null if there is at most one slice, which {@link #holds} counts. */
  private final AtomicIntegerArray sliceHolds;

  private ArenaBatch(ByteBuffer records, int at, Arena arena) throws FaroException {
    this.arena = arena;
    request = RecordDescriptor.request(records, at);
    firstBlock = RecordDescriptor.firstBlock(records, at);
    fabric = RecordDescriptor.fabric(records, at);
    scarce = RecordDescriptor.scarce(records, at);
    handle = RecordDescriptor.batch(records, at);
    int slices = RecordDescriptor.sliceCount(records, at);
    slabs = new ByteBuffer[slices];
    slabOffsets = new int[slices];
    sliceStarts = new long[slices + 1];
    for (int i = 0; i < slices; i++) {
      int slice = RecordDescriptor.slice(at, i);
      slabs[i] = arena.slab(records.getInt(slice + RecordDescriptor.SLICE_SLAB));
      slabOffsets[i] = records.getInt(slice + RecordDescriptor.SLICE_OFFSET);
      int length = records.getInt(slice + RecordDescriptor.SLICE_LENGTH);
      if (slabOffsets[i] < 0 || length < 0 || slabOffsets[i] > slabs[i].capacity() - length) {
        throw new IllegalStateException(
            "slice of " + length + " bytes at " + slabOffsets[i] + " in a slab of " + slabs[i].capacity());
      }
      sliceStarts[i + 1] = sliceStarts[i] + length;
    }
    sliceHolds = slices > 1 ? new AtomicIntegerArray(slices) : null;
    for (int i = 0; i < slices && sliceHolds != null; i++) {
      sliceHolds.lazySet(i, 1);
    }
    int count = RecordDescriptor.blockCount(records, at);
    blockStarts = new long[count + 1];
    byte[] notOk = null;
    int entry = RecordDescriptor.block(records, at, 0);
    for (int i = 0; i < count; i++, entry += RecordDescriptor.BLOCK_BYTES) {
      int status = records.getInt(entry + RecordDescriptor.BLOCK_STATUS);
      if (status != 0) {
        notOk = notOk == null ? new byte[count] : notOk;
        notOk[i] = (byte) BlockStatus.ofCode(status).code();
      }
      blockStarts[i + 1] = blockStarts[i] + records.getLong(entry + RecordDescriptor.BLOCK_LENGTH);
    }
    statuses = notOk;
    if (blockStarts[count] != sliceStarts[slices]) {
      throw new IllegalStateException(
          "blocks of " + blockStarts[count] + " bytes in slices of " + sliceStarts[slices]);
    }
  }

  /** Decodes a delivery. When this throws, the caller still owns the native batch. */
  static ArenaBatch decode(ByteBuffer records, int at, Arena arena) throws FaroException {
    return new ArenaBatch(records, at, arena);
  }

  @Override
  public long request() {
    return request;
  }

  @Override
  public int firstBlock() {
    return firstBlock;
  }

  @Override
  public int count() {
    return blockStarts.length - 1;
  }

  @Override
  public Fabric fabric() {
    return fabric;
  }

  @Override
  public boolean scarce() {
    return scarce;
  }

  @Override
  public BlockStatus status(int index) {
    if (statuses == null) {
      length(index);
      return BlockStatus.OK;
    }
    return BlockStatus.ofCode(statuses[index]);
  }

  @Override
  public long length(int index) {
    return blockStarts[index + 1] - blockStarts[index];
  }

  @Override
  public BlockBytes take(int index) {
    BlockStatus status = status(index);
    if (status != BlockStatus.OK) {
      throw new IllegalStateException(nameOf(index) + " has no bytes: " + status);
    }
    int now;
    do {
      now = holds;
      if (now <= 0) {
        throw gone(index);
      }
    } while (!HOLDS.compareAndSet(this, now, now + 1));
    if (sliceHolds != null && !holdSlices(index)) {
      HOLDS.decrementAndGet(this);
      throw gone(index);
    }
    return new ArenaBlock(this, index);
  }

  /** Adds a hold to each slice of the block. Returns false and adds none if one of the slices was released. */
  private boolean holdSlices(int index) {
    int end = lastSlice(index);
    for (int slice = firstSlice(index); slice <= end; slice++) {
      int now;
      do {
        now = sliceHolds.get(slice);
        if (now <= 0) {
          releaseSlices(firstSlice(index), slice - 1);
          return false;
        }
      } while (!sliceHolds.compareAndSet(slice, now, now + 1));
    }
    return true;
  }

  /** Ends the delivery and returns the memory that no block uses. Call it once. */
  void releaseHold() {
    release(0, slabs.length - 1);
  }

  /** Called when the last reference to a block is released: returns the memory that no other block uses. */
  void releaseBlock(int index) {
    release(sliceHolds == null ? 0 : firstSlice(index), sliceHolds == null ? -1 : lastSlice(index));
  }

  private void release(int first, int last) {
    if (sliceHolds != null) {
      releaseSlices(first, last);
      HOLDS.decrementAndGet(this);
    } else if (HOLDS.decrementAndGet(this) == 0 && handle != 0) {
      arena.release(handle, 0, slabs.length);
    }
  }

  /** Removes a hold from each of these slices. Slices without a hold are returned, adjacent ones with one call. */
  private void releaseSlices(int first, int last) {
    int from = first;
    for (int slice = first; slice <= last; slice++) {
      if (sliceHolds.decrementAndGet(slice) != 0) {
        releaseRun(from, slice);
        from = slice + 1;
      }
    }
    releaseRun(from, last + 1);
  }

  private void releaseRun(int from, int end) {
    if (from < end) {
      arena.release(handle, from, end - from);
    }
  }

  private int firstSlice(int index) {
    return length(index) == 0 ? 0 : sliceAt(blockStarts[index]);
  }

  /** Returns the last slice of a block; -1 if the block has no bytes, and so no slice. */
  private int lastSlice(int index) {
    return length(index) == 0 ? -1 : sliceAt(blockStarts[index + 1] - 1);
  }

  private IllegalStateException gone(int index) {
    return new IllegalStateException(nameOf(index) + " is gone, its batch was released");
  }

  String nameOf(int index) {
    return "block " + (firstBlock + index) + " of request " + request;
  }

  /** Returns the offset of a block in the stream of slices. */
  long start(int index) {
    return blockStarts[index];
  }

  /** Returns the slice that holds the byte at {@code position} of the stream. */
  int sliceAt(long position) {
    if (slabs.length == 1) {
      return 0;
    }
    int found = Arrays.binarySearch(sliceStarts, position);
    if (found < 0) {
      return -found - 2;
    }
    // An empty slice has the same offset as the next one. The last of them holds the byte.
    while (found + 1 < slabs.length && sliceStarts[found + 1] == position) {
      found++;
    }
    return found;
  }

  /** Returns a view of the stream's bytes from {@code position} to {@code end}, or to the end of {@code slice}. */
  ByteBuffer view(int slice, long position, long end) {
    ByteBuffer view = slabs[slice].duplicate();
    long shift = slabOffsets[slice] - sliceStarts[slice];
    view.limit((int) (Math.min(end, sliceStarts[slice + 1]) + shift));
    view.position((int) (position + shift));
    return view;
  }

  /** Appends the bytes that {@link #view} would show, and returns their number. */
  int addSlice(SliceSink slices, int slice, long position, long end) {
    int bytes = (int) (Math.min(end, sliceStarts[slice + 1]) - position);
    slices.add(slabs[slice], (int) (position - sliceStarts[slice]) + slabOffsets[slice], bytes);
    return bytes;
  }
}
