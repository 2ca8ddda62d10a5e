package io.faro.spark.sort;

import io.faro.Nullable;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BaseOrdering;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import scala.collection.AbstractIterator;

/**
 * Rows of sorted runs in order, each valid until the next one is asked for. The last one stays valid, as Spark's sorter
 * has it. Runs are merged by a tree of losers (Knuth, The Art of Computer Programming 3, 5.4.1); of equal rows that of
 * the earlier run comes first.
 */
final class SortedRows extends AbstractIterator<InternalRow> {
  private final SortRuns all;
  private final PagedRows[] runs;
  /** The next row of each run; null after its last. */
  private final UnsafeRow[] heads;
  /** Of each inner node, the run that lost there; node 1 is the root. Leaf n is the node {@code runs.length + n}. */
  private final int[] losers;
  /** Null where there is one run. */
  @Nullable private final BaseOrdering ordering;
  /** The run of the row that is out; -1 before the first. */
  private int winner = -1;
  private long left;

  SortedRows(SortRuns all, List<PagedRows> runs, int fields, @Nullable BaseOrdering ordering) {
    this.all = all;
    this.runs = runs.toArray(new PagedRows[0]);
    this.ordering = ordering;
    heads = new UnsafeRow[this.runs.length];
    losers = new int[this.runs.length];
    for (int i = 0; i < heads.length; i++) {
      heads[i] = new UnsafeRow(fields);
      left += this.runs[i].count();
    }
  }

  @Override
  public boolean hasNext() {
    return left > 0 && !all.isClosed();
  }

  @Override
  public InternalRow next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    if (winner < 0) {
      for (int i = 0; i < runs.length; i++) {
        load(i);
      }
      winner = play(1);
    } else {
      load(winner);
      replay();
    }
    UnsafeRow row = heads[winner];
    if (row == null) {
      throw new NoSuchElementException("the rows were freed");
    }
    if (--left > 0) {
      return row;
    }
    UnsafeRow last = row.copy();
    all.close();
    return last;
  }

  private void load(int run) {
    if (!runs[run].advance(heads[run])) {
      heads[run] = null;
      runs[run].close();
    }
  }

  /** Returns the run whose row comes first below a node. */
  private int play(int node) {
    if (node >= runs.length) {
      return node - runs.length;
    }
    int first = play(2 * node);
    int second = play(2 * node + 1);
    boolean isFirst = isBefore(first, second);
    losers[node] = isFirst ? second : first;
    return isFirst ? first : second;
  }

  /** The winner has another row: only runs that lost on its way can come before it. */
  private void replay() {
    for (int node = (winner + runs.length) / 2; node > 0; node /= 2) {
      int loser = losers[node];
      if (isBefore(loser, winner)) {
        losers[node] = winner;
        winner = loser;
      }
    }
  }

  private boolean isBefore(int a, int b) {
    if (heads[a] == null || heads[b] == null) {
      return heads[a] != null;
    }
    int order = ordering.compare(heads[a], heads[b]);
    return order < 0 || order == 0 && a < b;
  }
}
