package io.faro.spark.sort;

import io.faro.Nullable;
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
 * the order of equal rows. Only the last long of an entry is needed then. So the first one of two is where rows are
 * merged to, and is lost; for entries of one long it is the other array.
 */
final class TieSort {
  /** Entries up to which inserting one after the other takes less time. */
  private static final int FEW = 8;

  private final PagedRows rows;
  private final LongArray entries;
  private final EntryShape shape;
  /** The entries' last longs. */
  private final Lane last;
  private final Lane scratch;
  private final Supplier<BaseOrdering> supplier;
  private BaseOrdering ordering;
  private final UnsafeRow left;
  private final UnsafeRow right;

  /** {@code other} is null where entries are sorted in their place. */
  TieSort(PagedRows rows, EntryShape shape, Supplier<BaseOrdering> ordering, LongArray entries,
      @Nullable LongArray other) {
    this.rows = rows;
    this.entries = entries;
    this.supplier = ordering;
    this.shape = shape;
    last = new Lane(entries, shape.words, shape.words - 1);
    scratch = new Lane(other == null ? entries : other, shape.words, 0);
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
        && shape.agree(last.get(a), last.get(b));
  }

  /** These entries have the same key, so that only their last longs differ. */
  private void sort(int from, int to) {
    if (ordering == null) {
      ordering = supplier.get();
    }
    for (int start = from; start < to; start += FEW) {
      insert(start, Math.min(to, start + FEW));
    }
    Lane source = last;
    Lane target = scratch;
    for (int run = FEW; run < to - from; run *= 2) {
      rows.checkInterrupt();
      for (int start = from; start < to; start += 2 * run) {
        merge(source, target, start, Math.min(to, start + run), Math.min(to, start + 2 * run));
      }
      Lane other = source;
      source = target;
      target = other;
    }
    if (source != last) {
      for (int i = from; i < to; i++) {
        last.set(i, source.get(i));
      }
    }
  }

  private void insert(int from, int to) {
    for (int i = from + 1; i < to; i++) {
      long moved = last.get(i);
      int place = i;
      while (place > from && isAfter(last.get(place - 1), moved)) {
        last.set(place, last.get(place - 1));
        place--;
      }
      last.set(place, moved);
    }
  }

  private void merge(Lane source, Lane target, int from, int middle, int to) {
    int a = from;
    int b = middle;
    for (int place = from; place < to; place++) {
      boolean takesFirst = b == to || a < middle && !isAfter(source.get(a), source.get(b));
      target.set(place, source.get(takesFirst ? a++ : b++));
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

  /** One of each entry's longs. */
  private static final class Lane {
    private final LongArray array;
    private final int words;
    private final int word;

    Lane(LongArray array, int words, int word) {
      this.array = array;
      this.words = words;
      this.word = word;
    }

    long get(int entry) {
      return array.get(entry * words + word);
    }

    void set(int entry, long value) {
      array.set(entry * words + word, value);
    }
  }
}
