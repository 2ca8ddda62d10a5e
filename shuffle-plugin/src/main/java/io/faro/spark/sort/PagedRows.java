package io.faro.spark.sort;

import io.faro.Nullable;
import io.faro.sort.EntryShape;
import io.faro.sort.RowSort;
import io.faro.spark.metrics.SortDeclineReason;
import java.io.File;
import java.io.IOException;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.ShuffleWriteMetrics;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.SparkOutOfMemoryError;
import org.apache.spark.sql.catalyst.expressions.BaseOrdering;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.LongArray;
import org.apache.spark.unsafe.memory.MemoryBlock;
import org.apache.spark.util.collection.unsafe.sort.UnsafeSorterSpillReader;
import org.apache.spark.util.collection.unsafe.sort.UnsafeSorterSpillWriter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Rows of one task in pages of Spark's memory, as many as it has room for. They come in, and go out either sorted or as
 * they came; what is still to go out moves to disk when another operator of the task needs the memory. While rows come
 * in nothing moves, as with Spark's sorter.
 *
 * <p>Spark holds a lock of the task's memory manager when it asks for memory, and another thread of the task may then
 * read rows. So no memory is freed while this object's own lock is held.
 */
final class PagedRows extends MemoryConsumer {
  private static final Logger LOG = LoggerFactory.getLogger(PagedRows.class);
  /**
   * For each row, memory for its entry is taken before it comes in. Spark's pointers take 32 bytes where it sorts by
   * radix, otherwise 24.
   */
  private static final long RESERVED_BYTES = RowSort.MAX_ROW_BYTES;
  private static final int ROWS_RESERVED_AT_A_TIME = 1 << 10;
  /** Two longs for each of them are an array. Sums of these positions are ints too. */
  private static final long MAX_ROWS = 1 << 29;
  private static final int SPILL_BUFFER_BYTES = 32 << 10;
  private static final int FEW_PAGES = 2;

  private final TaskContext context;
  private final int fields;
  private final List<MemoryBlock> pages = new ArrayList<>();
  /** Bytes of each page that rows take. */
  private long[] used = new long[8];
  /** Where the next row comes in. */
  private Object base;
  private long at;
  private long end;
  private long rows;
  /** Without their heads. */
  private long rowBytes;
  /** For how many rows memory for entries is taken. */
  private long reservedRows;
  private long peak;
  private long sortNanos;

  /** What rows go out in order of; null while they come in. Guarded by this, as all below is. */
  @Nullable private RowCursor cursor;
  private long remaining;
  @Nullable private LongArray entries;
  /** The page of the row that is out. It stays until the next row. */
  @Nullable private MemoryBlock current;
  private volatile boolean isClosed;
  /** Has the rows that were still to go out, on disk. */
  @Nullable private UnsafeSorterSpillWriter spilled;
  /** Opened when a row is asked for: runs that wait to be merged need no buffers. */
  @Nullable private UnsafeSorterSpillReader reader;

  PagedRows(TaskContext context, int fields) {
    super(context.taskMemoryManager(), context.taskMemoryManager().pageSizeBytes(),
        context.taskMemoryManager().getTungstenMemoryMode());
    this.context = context;
    this.fields = fields;
  }

  int fields() {
    return fields;
  }

  long sortNanos() {
    return sortNanos;
  }

  long rowBytes() {
    return rowBytes;
  }

  long peakBytes() {
    return peak;
  }

  /** Takes a copy of the row. Returns {@code false} if there is no memory for it, or there are too many. */
  boolean add(UnsafeRow row) {
    int bytes = row.getSizeInBytes();
    if (rows == MAX_ROWS || rows == reservedRows && !reserve()) {
      return false;
    }
    if (end - at < RowSort.ROW_HEAD_BYTES + bytes && !nextPage(RowSort.ROW_HEAD_BYTES + (long) bytes)) {
      return false;
    }
    Platform.putLong(base, at, bytes);
    Platform.copyMemory(row.getBaseObject(), row.getBaseOffset(), base, at + RowSort.ROW_HEAD_BYTES, bytes);
    at += RowSort.ROW_HEAD_BYTES + bytes;
    rows++;
    rowBytes += bytes;
    return true;
  }

  private boolean nextPage(long bytes) {
    endPage();
    try {
      MemoryBlock page = allocatePage(bytes);
      base = page.getBaseObject();
      at = page.getBaseOffset();
      end = at + page.size();
      pages.add(page);
    } catch (SparkOutOfMemoryError e) {
      LOG.debug("No page for rows to sort", e);
      end = at;
      return false;
    }
    peak = Math.max(peak, getUsed());
    return true;
  }

  private void endPage() {
    if (!pages.isEmpty()) {
      int last = pages.size() - 1;
      if (last == used.length) {
        used = Arrays.copyOf(used, 2 * last);
      }
      used[last] = at - pages.get(last).getBaseOffset();
    }
  }

  private boolean reserve() {
    long bytes = ROWS_RESERVED_AT_A_TIME * RESERVED_BYTES;
    long got = acquireMemory(bytes);
    if (got < bytes) {
      freeMemory(got);
      return false;
    }
    reservedRows += ROWS_RESERVED_AT_A_TIME;
    return true;
  }

  /** Gives back what was taken for entries, and returns how much it was. */
  long giveUpReserved() {
    long bytes = reservedRows * RESERVED_BYTES;
    reservedRows = 0;
    freeMemory(bytes);
    return bytes;
  }

  /**
   * Sorts the rows, which go out in their order then. Returns the reason if they are not sorted, and still as they
   * came. {@code ordering} compares rows that are equal as far as their keys go.
   */
  @Nullable SortDeclineReason sort(SortColumns columns, Supplier<BaseOrdering> ordering) {
    endPage();
    peak = Math.max(peak, getUsed());
    long start = System.nanoTime();
    try (RowSort sort = RowSort.open(columns.key, fields, columns.end == null)) {
      for (int i = 0; i < pages.size(); i++) {
        checkInterrupt();
        MemoryBlock page = pages.get(i);
        sort.survey(array(page), place(page), used[i]);
      }
      EntryShape shape = sort.plan();
      giveUpReserved();
      LongArray first = allocate(rows * shape.words);
      LongArray second = first == null || shape.isSortedInPlace() ? null : allocate(rows * shape.words);
      if (first == null || second == null && !shape.isSortedInPlace()) {
        free(first);
        return SortDeclineReason.MEMORY;
      }
      peak = Math.max(peak, getUsed());
      LongArray sorted = null;
      try {
        sorted = sort(sort, shape, first, second, ordering);
      } finally {
        free(sorted == first ? second : first);
        if (sorted == null) {
          free(second);
        }
      }
      synchronized (this) {
        entries = sorted;
        cursor = new EntryCursor(this, sorted, shape);
        remaining = rows;
      }
    } catch (IllegalArgumentException | IllegalStateException e) {
      LOG.warn("Faro: rows could not be sorted, Spark's own sort goes on with them", e);
      return SortDeclineReason.FAULT;
    }
    sortNanos = System.nanoTime() - start;
    return null;
  }

  /** Returns the array that has the entries in order. There is no second one where they are sorted in their place. */
  private LongArray sort(
      RowSort sort, EntryShape shape, LongArray first, @Nullable LongArray second, Supplier<BaseOrdering> ordering) {
    MemoryBlock one = first.memoryBlock();
    long room = rows * shape.words * Long.BYTES;
    for (int i = 0; i < pages.size(); i++) {
      checkInterrupt();
      MemoryBlock page = pages.get(i);
      sort.encode(array(page), place(page), used[i], array(one), place(one), room);
    }
    LongArray sorted = first;
    if (second != null) {
      MemoryBlock two = second.memoryBlock();
      boolean inSecond = !pages.isEmpty()
          && sort.sort(array(one), place(one), array(two), place(two), room, this::checkInterrupt);
      sorted = inSecond ? second : first;
    } else {
      sort.sortInPlace(array(one), place(one), room, this::checkInterrupt);
    }
    if (!shape.isExact) {
      new TieSort(this, shape, ordering, sorted, sorted == first ? second : first).sort((int) rows);
    }
    return sorted;
  }

  @Nullable private LongArray allocate(long longs) {
    try {
      return allocateArray(Math.max(1, longs));
    } catch (SparkOutOfMemoryError e) {
      LOG.debug("No memory to sort {} rows", rows, e);
      return null;
    }
  }

  private void free(@Nullable LongArray array) {
    if (array != null) {
      freeArray(array);
    }
  }

  /**
   * The rows go out as they came. The page of the row that is out cannot be freed for the one who takes it: where there
   * is hardly another page, all rows go to disk first.
   */
  void unsorted() throws IOException {
    endPage();
    giveUpReserved();
    synchronized (this) {
      cursor = new PageCursor(this);
      remaining = rows;
    }
    long usual = context.taskMemoryManager().pageSizeBytes();
    if (pages.size() <= FEW_PAGES || pages.stream().anyMatch(page -> page.size() > usual)) {
      moveToDisk();
    }
  }

  int pageCount() {
    return pages.size();
  }

  MemoryBlock page(int number) {
    return pages.get(number);
  }

  long usedOf(int page) {
    return used[page];
  }

  long count() {
    return rows;
  }

  boolean isClosed() {
    return isClosed;
  }

  /** Points {@code row} to the next one, which is valid until the next call. Returns {@code false} after the last. */
  boolean advance(UnsafeRow row) {
    MemoryBlock before;
    synchronized (this) {
      if (isClosed || remaining == 0) {
        return false;
      }
      remaining--;
      before = spilled != null ? current : null;
      try {
        if (spilled != null) {
          current = null;
          if (reader == null) {
            reader = spilled.getReader(SparkEnv.get().serializerManager());
          }
          reader.loadNext();
          row.pointTo(reader.getBaseObject(), reader.getBaseOffset(), reader.getRecordLength());
        } else {
          cursor.next();
          if (current != cursor.page && cursor.frees && current != null) {
            pages.set(pages.indexOf(current), null);
            before = current;
          }
          current = cursor.page;
          row.pointTo(cursor.base, cursor.offset + RowSort.ROW_HEAD_BYTES, cursor.bytes);
        }
      } catch (IOException e) {
        // As from Spark's own sorter.
        Platform.throwException(e);
      }
    }
    if (before != null) {
      freePage(before);
    }
    return true;
  }

  void checkInterrupt() {
    context.killTaskIfInterrupted();
  }

  @Override
  public long spill(long size, MemoryConsumer trigger) throws IOException {
    long bytes = trigger == this ? 0 : moveToDisk();
    if (bytes > 0) {
      LOG.info("Faro: rows that were sorted moved to disk, {} bytes of memory are free for another operator", bytes);
    }
    return bytes;
  }

  /** Moves what is still to go out. Returns how much memory is free then. While rows come in, it is none. */
  long moveToDisk() throws IOException {
    List<MemoryBlock> freed = new ArrayList<>();
    LongArray array;
    ShuffleWriteMetrics written = new ShuffleWriteMetrics();
    synchronized (this) {
      if (cursor == null || isClosed || spilled != null || remaining == 0) {
        return 0;
      }
      write(written);
      for (MemoryBlock page : pages) {
        if (page != null && page != current) {
          freed.add(page);
        }
      }
      array = entries;
      forget();
    }
    long before = getUsed();
    freed.forEach(this::freePage);
    free(array);
    long bytes = before - getUsed();
    context.taskMetrics().incMemoryBytesSpilled(bytes);
    context.taskMetrics().incDiskBytesSpilled(written.bytesWritten());
    return bytes;
  }

  /** Drops all arrays, which Spark counts no more; this object itself stays until its task ends. */
  private void forget() {
    pages.clear();
    entries = null;
    cursor = null;
    base = null;
    at = end;
  }

  /** Writes the rows that are still to go out. Called with the lock. */
  private void write(ShuffleWriteMetrics metrics) throws IOException {
    UnsafeSorterSpillWriter writer = new UnsafeSorterSpillWriter(
        SparkEnv.get().blockManager(), SPILL_BUFFER_BYTES, metrics, Math.toIntExact(remaining));
    boolean isWhole = false;
    try {
      RowCursor rest = cursor.copy();
      for (long i = 0; i < remaining; i++) {
        rest.next();
        writer.write(rest.base, rest.offset + RowSort.ROW_HEAD_BYTES, rest.bytes, 0);
      }
      writer.close();
      isWhole = true;
    } finally {
      if (!isWhole) {
        // The writer cannot be closed without writing more, and an open file keeps its bytes on the disk.
        truncate(writer.getFile());
        delete(writer.getFile());
      }
    }
    spilled = writer;
  }

  private static void truncate(File file) {
    try (SeekableByteChannel bytes = Files.newByteChannel(file.toPath(), StandardOpenOption.WRITE)) {
      bytes.truncate(0);
    } catch (NoSuchFileException e) {
      LOG.debug("{} has no byte yet", file);
    } catch (IOException e) {
      LOG.warn("{} cannot be emptied", file, e);
    }
  }

  private static void delete(File file) {
    if (!file.delete() && file.exists()) {
      LOG.warn("{} cannot be deleted", file);
    }
  }

  /** Frees all memory, and deletes what is on disk. */
  void close() {
    List<MemoryBlock> freed = new ArrayList<>();
    LongArray array;
    UnsafeSorterSpillReader open;
    UnsafeSorterSpillWriter onDisk;
    synchronized (this) {
      if (isClosed) {
        return;
      }
      isClosed = true;
      for (MemoryBlock page : pages) {
        if (page != null) {
          freed.add(page);
        }
      }
      if (spilled != null && current != null) {
        freed.add(current);
      }
      array = entries;
      open = reader;
      onDisk = spilled;
      forget();
      current = null;
      reader = null;
    }
    giveUpReserved();
    freed.forEach(this::freePage);
    free(array);
    try {
      if (open != null) {
        open.close();
      }
    } catch (IOException e) {
      LOG.warn("{} cannot be closed", onDisk.getFile(), e);
    }
    if (onDisk != null) {
      delete(onDisk.getFile());
    }
  }

  /** Null outside the heap. */
  @Nullable static long[] array(MemoryBlock block) {
    return (long[]) block.getBaseObject();
  }

  /** The first byte in the array, or the address. */
  static long place(MemoryBlock block) {
    return block.getBaseObject() == null
        ? block.getBaseOffset() : block.getBaseOffset() - Platform.LONG_ARRAY_OFFSET;
  }
}
