package io.faro.sort;

import java.io.Serializable;
import java.util.Arrays;

/** The columns by which rows are sorted, as far as native code compares them. Immutable. */
public final class SortKey implements Serializable {
  private static final long serialVersionUID = 1;
  private static final int INTS = 4;

  private final int[] columns;

  private SortKey(int[] columns) {
    this.columns = columns;
  }

  /** Returns a key of no column. */
  public static SortKey empty() {
    return new SortKey(new int[0]);
  }

  /** Returns this key with one column more. */
  public SortKey then(int ordinal, KeyKind kind, boolean descending, boolean nullsLast) {
    int[] more = Arrays.copyOf(columns, columns.length + INTS);
    more[columns.length] = ordinal;
    more[columns.length + 1] = kind.ordinal();
    more[columns.length + 2] = descending ? 1 : 0;
    more[columns.length + 3] = nullsLast ? 1 : 0;
    return new SortKey(more);
  }

  public int size() {
    return columns.length / INTS;
  }

  int[] columns() {
    return columns;
  }
}
