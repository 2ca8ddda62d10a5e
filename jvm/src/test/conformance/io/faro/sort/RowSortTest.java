package io.faro.sort;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.TestLibrary;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** A sort across the JNI boundary; its order has the tests of native/sort. */
class RowSortTest {
  private static final SortKey LONG = SortKey.empty().then(0, KeyKind.LONG, false, false);
  private static final int ROW_WORDS = 3;

  @BeforeAll
  static void load() throws Exception {
    TestLibrary.load();
  }

  /** Rows of one long: each has a head, null bits, and the value. */
  private static long[] page(long... values) {
    long[] page = new long[values.length * ROW_WORDS];
    for (int i = 0; i < values.length; i++) {
      page[i * ROW_WORDS] = 16;
      page[i * ROW_WORDS + 2] = values[i];
    }
    return page;
  }

  private static long bytes(long[] array) {
    return array.length * (long) Long.BYTES;
  }

  /** The values in order. */
  private static long[] sort(SortKey key, long[]... pages) {
    try (RowSort sort = RowSort.open(key, 1, true)) {
      int rows = 0;
      for (long[] page : pages) {
        rows += (int) sort.survey(page, 0, bytes(page));
      }
      EntryShape shape = sort.plan();
      assertTrue(shape.isExact);
      long[] first = new long[rows * shape.words];
      for (long[] page : pages) {
        sort.encode(page, 0, bytes(page), first, 0, bytes(first));
      }
      long[] entries = first;
      if (shape.isSortedInPlace()) {
        sort.sortInPlace(first, 0, bytes(first), () -> {});
      } else {
        long[] second = new long[rows];
        entries = sort.sort(first, 0, second, 0, bytes(first), () -> {}) ? second : first;
      }
      long[] values = new long[rows];
      for (int i = 0; i < rows; i++) {
        long last = entries[(i + 1) * shape.words - 1];
        values[i] = pages[shape.page(last)][(int) shape.offset(last) / Long.BYTES + 2];
      }
      return values;
    }
  }

  @Test
  void rowsOfSeveralPagesAreInOrder() {
    long[] max = {Long.MIN_VALUE, -1, 0, 3, 5, Long.MAX_VALUE};
    assertArrayEquals(max, sort(LONG, page(5, Long.MAX_VALUE, -1), page(3, 0, Long.MIN_VALUE)));
    assertArrayEquals(new long[] {9, 7, 7, 1},
        sort(SortKey.empty().then(0, KeyKind.LONG, true, true), page(7), page(1, 9, 7)));
  }

  @Test
  void manyRowsAreSortedInSteps() {
    long[] values = new long[100_000];
    for (int i = 0; i < values.length; i++) {
      values[i] = (i * 7_919L + 13) % values.length;
    }
    long[] sorted = sort(LONG, page(values));
    for (int i = 0; i < sorted.length; i++) {
      assertEquals(i, sorted[i]);
    }
  }

  @Test
  void memoryThatIsNotThereIsRefused() {
    try (RowSort sort = RowSort.open(LONG, 1, true)) {
      long[] page = page(2, 1);
      assertThrows(IllegalArgumentException.class, () -> sort.survey(page, 0, bytes(page) + 8));
      assertThrows(IllegalArgumentException.class, () -> sort.survey(page, -8, 8));
      assertThrows(IllegalArgumentException.class, () -> sort.survey(null, 0, 8));
      sort.survey(page, 0, bytes(page));
      sort.plan();
      long[] entries = new long[2];
      assertThrows(IllegalArgumentException.class, () -> sort.encode(page, 0, bytes(page), entries, 4, 8));
      assertThrows(IllegalArgumentException.class, () -> sort.encode(page, 0, bytes(page), entries, 0, 8));
    }
    assertThrows(IllegalArgumentException.class, () -> RowSort.open(LONG, 0, true));
  }

  @Test
  void callsHaveAnOrderAndAnEnd() {
    RowSort sort = RowSort.open(LONG, 1, true);
    long[] page = page(1);
    assertThrows(IllegalStateException.class, () -> sort.encode(page, 0, bytes(page), new long[2], 0, 16));
    sort.close();
    sort.close();
    assertThrows(IllegalStateException.class, () -> sort.survey(page, 0, bytes(page)));
  }
}
