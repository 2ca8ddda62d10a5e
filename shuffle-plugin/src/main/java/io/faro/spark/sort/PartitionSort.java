package io.faro.spark.sort;

import io.faro.Faro;
import io.faro.spark.conf.SpillLimits;
import io.faro.spark.metrics.SortCounters;
import io.faro.spark.metrics.SortDeclineReason;
import java.io.IOException;
import java.io.Serializable;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.UnsafeExternalRowSorter;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.TaskCompletionListener;
import scala.collection.Iterator;
import scala.runtime.AbstractFunction1;

/**
 * Sorts the rows of one partition. Where there is hardly memory, or native code does not sort them, Spark's own sorter
 * gets all of them, and goes on as if it had had them from the start.
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
    long spilledBefore = context.taskMetrics().memoryBytesSpilled();
    try {
      if (!Faro.isAvailable()) {
        SortCounters.declined(SortDeclineReason.NO_LIBRARY);
        return inSpark(context, null, null, rows, spilledBefore);
      }
      SortRuns runs = new SortRuns(context, columns, () -> SortNodes.ordering(node),
          new SpillLimits(SparkEnv.get().conf()));
      body.holds(runs);
      context.addTaskCompletionListener((TaskCompletionListener) done -> runs.close());
      while (rows.hasNext()) {
        UnsafeRow row = (UnsafeRow) rows.next();
        SortDeclineReason why = runs.add(row);
        if (why != null) {
          SortCounters.declined(why);
          return inSpark(context, runs, row, rows, spilledBefore);
        }
      }
      SortDeclineReason why = runs.sort();
      if (why != null) {
        SortCounters.declined(why);
        return inSpark(context, runs, null, rows, spilledBefore);
      }
      SortCounters.SORTS.increment();
      count(context.taskMetrics(), runs.sortNanos(), runs.peakBytes(), spilledBefore);
      return runs.sorted();
    } catch (IOException e) {
      // As from Spark's own sorter.
      Platform.throwException(e);
      throw new AssertionError("thrown above", e);
    }
  }

  /** Spark's own sorter sorts what {@code runs} has, {@code row} and the {@code rest}; the first two may be null. */
  private Iterator<InternalRow> inSpark(
      TaskContext context, SortRuns runs, UnsafeRow row, Iterator<InternalRow> rest, long spilledBefore)
      throws IOException {
    if (runs != null) {
      // From here on they make room for the sorter, whose first memory is its constructor's.
      runs.unsorted();
    }
    UnsafeExternalRowSorter sorter = node.createSorter();
    long peak = 0;
    long nanos = 0;
    if (runs != null) {
      peak = runs.peakBytes();
      nanos = runs.sortNanos();
      UnsafeRow next = new UnsafeRow(columns.fields);
      while (runs.advance(next)) {
        sorter.insertRow(next);
      }
      runs.close();
    }
    if (row != null) {
      sorter.insertRow(row);
    }
    while (rest.hasNext()) {
      sorter.insertRow((UnsafeRow) rest.next());
    }
    Iterator<InternalRow> sorted = sorter.sort();
    count(context.taskMetrics(), nanos + sorter.getSortTimeNanos(), Math.max(peak, sorter.getPeakMemoryUsage()),
        spilledBefore);
    return sorted;
  }

  private void count(TaskMetrics metrics, long nanos, long peak, long spilledBefore) {
    sortTime.add(TimeUnit.NANOSECONDS.toMillis(nanos));
    peakMemory.add(peak);
    spillSize.add(metrics.memoryBytesSpilled() - spilledBefore);
    metrics.incPeakExecutionMemory(peak);
  }
}
