package io.faro.spark.sort;

import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import scala.collection.AbstractIterator;

/** Sorted rows, each valid until the next one is asked for. The last one stays valid, as Spark's sorter has it. */
final class SortedRows extends AbstractIterator<InternalRow> {
  private final PagedRows rows;
  private final UnsafeRow row;
  private long left;

  SortedRows(PagedRows rows, long count) {
    this.rows = rows;
    row = new UnsafeRow(rows.fields());
    left = count;
  }

  @Override
  public boolean hasNext() {
    return left > 0 && !rows.isClosed();
  }

  @Override
  public InternalRow next() {
    if (left == 0 || !rows.advance(row)) {
      throw new NoSuchElementException();
    }
    if (--left > 0) {
      return row;
    }
    UnsafeRow last = row.copy();
    rows.close();
    return last;
  }
}
