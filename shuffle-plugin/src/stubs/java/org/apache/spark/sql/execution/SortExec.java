package org.apache.spark.sql.execution;

import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import scala.collection.IndexedSeq;
import scala.collection.Seq;

/**
 * Spark's class as the compiler sees it, and in no jar: Java cannot extend the real one, two of whose inherited methods
 * contradict each other in Java's eyes. It has the constructors of both versions of Scala. The body of no method here
 * is ever run.
 */
public class SortExec extends SparkPlan {
  private static final long serialVersionUID = 1;

  /** In Scala 2.12. */
  public SortExec(Seq<SortOrder> sortOrder, boolean global, SparkPlan child, int testSpillFrequency) {}

  /** In Scala 2.13. */
  public SortExec(scala.collection.immutable.Seq<SortOrder> sortOrder, boolean global, SparkPlan child,
      int testSpillFrequency) {}

  public native boolean global();

  public native SparkPlan child();

  public native int testSpillFrequency();

  public native UnsafeExternalRowSorter createSorter();

  public native SortExec withNewChildInternal(SparkPlan child);

  public native boolean supportCodegen();

  @Override
  public native void cleanupResources();

  @Override
  public native RDD<InternalRow> doExecute();

  @Override
  public native Seq<SparkPlan> children();

  @Override
  public native Seq<Attribute> output();

  @Override
  public native SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children);

  @Override
  public native boolean equals(Object other);

  @Override
  public native int hashCode();

  @Override
  public native boolean canEqual(Object other);

  @Override
  public native int productArity();

  @Override
  public native Object productElement(int n);
}
