package io.faro.spark.sort;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.immutable.Seq;

/**
 * Faro's sort as a node of a plan, for Scala 2.13; FaroSortExec212 is its twin, and differs by the type Seq. To what
 * looks for one it is Spark's own sort, with the same order, metrics and properties, but another way to the rows.
 */
public final class FaroSortExec213 extends SortExec {
  private static final long serialVersionUID = 1;

  private final RowSortBody body;

  public FaroSortExec213(SortExec sort, RowSortBody body) {
    this(sort.productElement(0), sort.global(), sort.child(), sort.testSpillFrequency(), body);
  }

  @SuppressWarnings("unchecked")
  private FaroSortExec213(
      Object order, boolean global, SparkPlan child, int testSpillFrequency, RowSortBody body) {
    super((Seq<SortOrder>) order, global, child, testSpillFrequency);
    this.body = body;
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return body.execute(this);
  }

  /** Rows come from an iterator, and no code is generated for them. */
  @Override
  public boolean supportCodegen() {
    return false;
  }

  @Override
  public void cleanupResources() {
    body.cleanup();
    super.cleanupResources();
  }

  @Override
  public String nodeName() {
    return "FaroSort";
  }

  @Override
  public SortExec withNewChildInternal(SparkPlan child) {
    return new FaroSortExec213(productElement(0), global(), child, testSpillFrequency(), body);
  }

  /** Spark keeps a node whose replacement is equal to it, so this one is not equal to Spark's of the same order. */
  @Override
  public boolean equals(Object other) {
    return canEqual(other) && super.equals(other);
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof FaroSortExec213;
  }

  /** Spark's own way looks for a constructor with the arguments of its node. */
  @Override
  public SparkPlan makeCopy(Object[] arguments) {
    FaroSortExec213 copy = new FaroSortExec213(
        arguments[0], (Boolean) arguments[1], (SparkPlan) arguments[2], (Integer) arguments[3], body);
    copy.copyTagsFrom(this);
    return copy;
  }
}
