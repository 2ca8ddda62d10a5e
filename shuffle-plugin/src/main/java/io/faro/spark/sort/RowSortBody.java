package io.faro.spark.sort;

import io.faro.Nullable;
import java.io.Serializable;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.SortExec;
import scala.reflect.ClassTag$;

/**
 * What a node does: the part that is the same in each version of Scala. Sorts each partition in its task, which has a
 * copy of it, as it has of the node.
 */
public final class RowSortBody implements Serializable {
  private static final long serialVersionUID = 1;

  private final SortColumns columns;
  /** What the task holds. */
  @Nullable private transient volatile SortRuns open;

  RowSortBody(SortColumns columns) {
    this.columns = columns;
  }

  /** Returns the sorted rows of the node's child. */
  RDD<InternalRow> execute(SortExec node) {
    PartitionSort sort = new PartitionSort(node, this, columns);
    return node.child().execute().mapPartitions(sort, true, ClassTag$.MODULE$.apply(InternalRow.class));
  }

  void holds(SortRuns rows) {
    open = rows;
  }

  /** Frees what the task of this thread holds: its rows are not asked for any more. */
  void cleanup() {
    SortRuns rows = open;
    if (rows != null) {
      rows.close();
    }
  }
}
