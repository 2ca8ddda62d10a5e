package io.faro.spark.sort;

import io.faro.sort.EntryShape;
import io.faro.sort.RowSort;
import java.util.function.Supplier;
import org.apache.spark.sql.catalyst.expressions.BaseOrdering;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.LongArray;
import org.apache.spark.unsafe.memory.MemoryBlock;

/**
 * Sorts entries whose keys agree as far as they go, by Spark's own comparison of their rows: a merge sort, which keeps
 * the order of equal rows, in the second array of entries.
 */
final class TieSort {
  /** Entries up to which inserting one after the other takes less time. */
  private static final int FEW = 8;

  private final PagedRows rows;
  private final LongArray entries;
  private final LongArray scratch;
  private final EntryShape shape;
  private final Supplier<BaseOrdering> supplier;
  private BaseOrdering ordering;
  private final UnsafeRow left;
  private final UnsafeRow right;

  TieSort(PagedRows rows, EntryShape shape, Supplier<BaseOrdering> ordering, LongArray entries, LongArray scratch) {
    this.rows = rows;
    this.entries = entries;
    this.scratch = scratch;
    this.supplier = ordering;
    this.shape = shape;
    left = new UnsafeRow(rows.fields());
    right = new UnsafeRow(rows.fields());
  }

  void sort(int count) {
    int start = 0;
    for (int next = 1; next <= count; next++) {
      if (next == count || !agree(start, next)) {
        if (next - start > 1) {
          rows.checkInterrupt();
          sort(start, next);
        }
        start = next;
      }
    }
  }

  /** Returns whether two entries have the same key. */
  private boolean agree(int a, int b) {
    return (shape.words == 1 || entries.get(a * shape.words) == entries.get(b * shape.words))
        && shape.agree(get(entries, a), get(entries, b));
  }

  /** Only the last words of these entries differ, and they alone move. */
  private void sort(int from, int to) {
    if (ordering == null) {
      ordering = supplier.get();
    }
    for (int start = from; start < to; start += FEW) {
      insert(start, Math.min(to, start + FEW));
    }
    LongArray source = entries;
    LongArray target = scratch;
    for (int run = FEW; run < to - from; run *= 2) {
      rows.checkInterrupt();
      for (int start = from; start < to; start += 2 * run) {
        merge(source, target, start, Math.min(to, start + run), Math.min(to, start + 2 * run));
      }
      LongArray other = source;
      source = target;
      target = other;
    }
    if (source != entries) {
      for (int i = from; i < to; i++) {
        set(entries, i, get(source, i));
      }
    }
  }

  private void insert(int from, int to) {
    for (int i = from + 1; i < to; i++) {
      long moved = get(entries, i);
      int place = i;
      while (place > from && isAfter(get(entries, place - 1), moved)) {
        set(entries, place, get(entries, place - 1));
        place--;
      }
      set(entries, place, moved);
    }
  }

  private void merge(LongArray source, LongArray target, int from, int middle, int to) {
    int a = from;
    int b = middle;
    for (int place = from; place < to; place++) {
      boolean takesFirst = b == to || a < middle && !isAfter(get(source, a), get(source, b));
      set(target, place, takesFirst ? get(source, a++) : get(source, b++));
    }
  }

  private boolean isAfter(long a, long b) {
    point(left, a);
    point(right, b);
    return ordering.compare(left, right) > 0;
  }

  private void point(UnsafeRow row, long last) {
    MemoryBlock page = rows.page(shape.page(last));
    long offset = page.getBaseOffset() + shape.offset(last);
    int bytes = (int) Platform.getLong(page.getBaseObject(), offset);
    row.pointTo(page.getBaseObject(), offset + RowSort.ROW_HEAD_BYTES, bytes);
  }

  private long get(LongArray array, int entry) {
    return array.get((entry + 1) * shape.words - 1);
  }

  private void set(LongArray array, int entry, long value) {
    array.set((entry + 1) * shape.words - 1, value);
  }
}
