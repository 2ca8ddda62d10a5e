package io.faro.spark.sort;

import io.faro.Nullable;
import io.faro.spark.conf.SpillLimits;
import io.faro.spark.metrics.SortCounters;
import io.faro.spark.metrics.SortDeclineReason;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.expressions.BaseOrdering;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Rows of one partition as runs. Rows come in to the last one; when memory ends, or Spark's limits are reached, it is
 * sorted and moves to disk, and another one begins. At the end the last one is sorted in memory, and all are merged.
 */
final class SortRuns {
  private static final Logger LOG = LoggerFactory.getLogger(SortRuns.class);
  /** A run that is shorter is not worth a file: there is hardly any memory, and Spark's sorter goes on. */
  private static final long MIN_RUN_BYTES = 1 << 20;
  /** Each is a file that is open while runs are merged, with buffers that Spark does not count. */
  private static final int MAX_RUNS = 256;

  private final TaskContext context;
  private final SortColumns columns;
  private final Supplier<BaseOrdering> ordering;
  private final SpillLimits limits;
  /** In the order in which their rows came. Guarded by this, as is the next one. */
  private final List<PagedRows> runs = new ArrayList<>();
  private boolean isClosed;
  /** Rows come in here. */
  private PagedRows last;
  private long sortNanos;
  private long peak;

  SortRuns(TaskContext context, SortColumns columns, Supplier<BaseOrdering> ordering, SpillLimits limits) {
    this.context = context;
    this.columns = columns;
    this.ordering = ordering;
    this.limits = limits;
    begin();
  }

  private synchronized void begin() {
    last = new PagedRows(context, columns.fields);
    runs.add(last);
    if (isClosed) {
      last.close();
    }
  }

  /** Takes a copy of the row. Returns the reason if it is not taken. */
  @Nullable SortDeclineReason add(UnsafeRow row) throws IOException {
    boolean isFull = last.count() > 0 && limits.reached(last.count(), last.rowBytes());
    if (!isFull && last.add(row)) {
      return null;
    }
    if (!isFull && last.peakBytes() < MIN_RUN_BYTES || runs.size() == MAX_RUNS) {
      return SortDeclineReason.MEMORY;
    }
    SortDeclineReason why = sort();
    if (why != null) {
      return why;
    }
    long bytes = last.moveToDisk();
    SortCounters.RUNS.increment();
    LOG.info("Faro: run {} of sorted rows moved to disk, {} bytes of memory are free for the next rows",
        runs.size(), bytes);
    begin();
    return last.add(row) ? null : SortDeclineReason.MEMORY;
  }

  /** Sorts the last run. Returns the reason if it is not sorted; no row is lost then. */
  @Nullable SortDeclineReason sort() {
    SortDeclineReason why = last.sort(columns, ordering);
    sortNanos += last.sortNanos();
    peak = peakBytes();
    return why;
  }

  long sortNanos() {
    return sortNanos;
  }

  long peakBytes() {
    return Math.max(peak, last.peakBytes());
  }

  /** Returns the rows in their order, after {@link #sort}. */
  SortedRows sorted() {
    return new SortedRows(this, runs, columns.fields, runs.size() > 1 ? ordering.get() : null);
  }

  /**
   * The rows go out to a sorter that keeps the order of equal ones: those of runs on disk are in order, and the last
   * ones are as they came.
   */
  void unsorted() throws IOException {
    last.unsorted();
  }

  /** Points {@code row} to the next one after {@link #unsorted}. Returns {@code false} after the last. */
  boolean advance(UnsafeRow row) {
    for (PagedRows run : runs) {
      if (run.advance(row)) {
        return true;
      }
      run.close();
    }
    return false;
  }

  synchronized boolean isClosed() {
    return isClosed;
  }

  /** Frees all memory, and deletes what is on disk. */
  synchronized void close() {
    isClosed = true;
    runs.forEach(PagedRows::close);
  }
}
