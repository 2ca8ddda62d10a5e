package io.faro.spark.sort;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.spark.sql.catalyst.expressions.BaseOrdering;
import org.apache.spark.sql.catalyst.expressions.RowOrdering;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.Seq;
import scala.util.Properties;

/** Calls methods whose signature differs between versions of Scala, because {@code Seq} is another type. */
final class SortNodes {
  private SortNodes() {}

  /** Returns Faro's node in place of Spark's. */
  static SparkPlan of(SortExec sort, RowSortBody body) {
    return Properties.versionNumberString().startsWith("2.12")
        ? new FaroSortExec212(sort, body) : new FaroSortExec213(sort, body);
  }

  /** Returns the columns of a node's rows. */
  static Seq<?> output(SparkPlan plan) {
    try {
      return (Seq<?>) SparkPlan.class.getMethod("output").invoke(plan);
    } catch (ReflectiveOperationException e) {
      throw failed(e);
    }
  }

  /** Returns the order of a sort. */
  static Seq<?> order(SortExec sort) {
    return (Seq<?>) sort.productElement(0);
  }

  /** Returns Spark's own comparison of rows by a sort's order. */
  static BaseOrdering ordering(SortExec sort) {
    try {
      for (Method method : RowOrdering.class.getMethods()) {
        if (method.getName().equals("create") && method.getParameterCount() == 2) {
          return (BaseOrdering) method.invoke(null, order(sort), output(sort.child()));
        }
      }
      throw new IllegalStateException("this Spark has no RowOrdering.create");
    } catch (ReflectiveOperationException e) {
      throw failed(e);
    }
  }

  private static IllegalStateException failed(ReflectiveOperationException e) {
    Throwable cause = e instanceof InvocationTargetException ? e.getCause() : e;
    return new IllegalStateException("this Spark is not one that Faro knows: " + cause, cause);
  }
}
