package io.faro.spark.sort;

import io.faro.Faro;
import io.faro.spark.metrics.SortCounters;
import io.faro.spark.metrics.SortDeclineReason;
import java.io.IOException;
import java.io.Serializable;
import java.util.concurrent.TimeUnit;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.UnsafeExternalRowSorter;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.util.TaskCompletionListener;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * Sorts the rows of one partition. Where memory ends before the rows do, Spark's own sorter gets all of them, in the
 * order in which they came, and goes on with them as if it had had them from the start.
 */
final class PartitionSort extends AbstractFunction1<Iterator<InternalRow>, Iterator<InternalRow>>
    implements Serializable {
  private static final long serialVersionUID = 1;

  private final SortExec node;
  private final RowSortBody body;
  private final SortColumns columns;
  private final SQLMetric sortTime;
  private final SQLMetric peakMemory;
  private final SQLMetric spillSize;

  PartitionSort(SortExec node, RowSortBody body, SortColumns columns) {
    this.node = node;
    this.body = body;
    this.columns = columns;
    sortTime = node.longMetric("sortTime");
    peakMemory = node.longMetric("peakMemory");
    spillSize = node.longMetric("spillSize");
  }

  @Override
  public Iterator<InternalRow> apply(Iterator<InternalRow> rows) {
    TaskContext context = TaskContext.get();
    try {
      if (!Faro.isAvailable()) {
        SortCounters.declined(SortDeclineReason.NO_LIBRARY);
        return inSpark(context, null, null, rows);
      }
      PagedRows paged = new PagedRows(context, columns.fields);
      body.holds(paged);
      context.addTaskCompletionListener((TaskCompletionListener) done -> paged.close());
      while (rows.hasNext()) {
        UnsafeRow row = (UnsafeRow) rows.next();
        if (!paged.add(row)) {
          SortCounters.declined(SortDeclineReason.MEMORY);
          return inSpark(context, paged, row, rows);
        }
      }
      SortDeclineReason why = paged.sort(columns, () -> SortNodes.ordering(node));
      if (why != null) {
        SortCounters.declined(why);
        return inSpark(context, paged, null, rows);
      }
      SortCounters.SORTS.increment();
      count(context.taskMetrics(), paged.sortNanos(), paged.peakBytes(), 0);
      return new SortedRows(paged, paged.count());
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  /** Spark's own sorter sorts what {@code paged} has, {@code row} and the {@code rest}; the first two may be null. */
  private Iterator<InternalRow> inSpark(
      TaskContext context, PagedRows paged, UnsafeRow row, Iterator<InternalRow> rest) throws IOException {
    TaskMetrics metrics = context.taskMetrics();
    long spilledBefore = metrics.memoryBytesSpilled();
    if (paged != null) {
      // From here on they make room for the sorter, whose first memory is its constructor's.
      paged.unsorted();
    }
    UnsafeExternalRowSorter sorter = node.createSorter();
    long peak = 0;
    if (paged != null) {
      peak = paged.peakBytes();
      UnsafeRow next = new UnsafeRow(columns.fields);
      while (paged.advance(next)) {
        sorter.insertRow(next);
      }
      paged.close();
    }
    if (row != null) {
      sorter.insertRow(row);
    }
    while (rest.hasNext()) {
      sorter.insertRow((UnsafeRow) rest.next());
    }
    Iterator<InternalRow> sorted = sorter.sort();
    count(metrics, sorter.getSortTimeNanos(), Math.max(peak, sorter.getPeakMemoryUsage()),
        metrics.memoryBytesSpilled() - spilledBefore);
    return sorted;
  }

  private void count(TaskMetrics metrics, long nanos, long peak, long spilled) {
    sortTime.add(TimeUnit.NANOSECONDS.toMillis(nanos));
    peakMemory.add(peak);
    spillSize.add(spilled);
    metrics.incPeakExecutionMemory(peak);
  }
}
