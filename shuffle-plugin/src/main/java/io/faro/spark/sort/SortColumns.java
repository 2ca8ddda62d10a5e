package io.faro.spark.sort;

import io.faro.Nullable;
import io.faro.sort.KeyKind;
import io.faro.sort.SortKey;
import io.faro.spark.metrics.SortDeclineReason;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Descending$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NullsLast$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DayTimeIntervalType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.YearMonthIntervalType;
import scala.collection.Iterator;

/** The order of a sort as columns of its rows, up to the first that native code cannot compare as Spark does. */
final class SortColumns implements Serializable {
  private static final long serialVersionUID = 1;

  final SortKey key;
  /** The number of columns of a row. */
  final int fields;
  /** Why the key ends before the order does; null if it is whole. */
  @Nullable final SortDeclineReason end;

  private SortColumns(SortKey key, int fields, @Nullable SortDeclineReason end) {
    this.key = key;
    this.fields = fields;
    this.end = end;
  }

  /** A whole order. */
  static SortColumns of(SortKey key, int fields) {
    return new SortColumns(key, fields, null);
  }

  static SortColumns of(SortExec sort) {
    List<Attribute> output = outputOf(sort.child());
    SortKey key = SortKey.empty();
    Iterator<?> orders = SortNodes.order(sort).iterator();
    while (orders.hasNext()) {
      SortOrder order = (SortOrder) orders.next();
      int ordinal = ordinal(order.child(), output);
      if (ordinal < 0) {
        return new SortColumns(key, output.size(), SortDeclineReason.EXPRESSION);
      }
      KeyKind kind = kind(order.child().dataType());
      if (kind == null) {
        return new SortColumns(key, output.size(), SortDeclineReason.TYPE);
      }
      key = key.then(ordinal, kind, order.direction() == Descending$.MODULE$,
          order.nullOrdering() == NullsLast$.MODULE$);
    }
    return new SortColumns(key, output.size(), null);
  }

  private static List<Attribute> outputOf(SparkPlan plan) {
    List<Attribute> output = new ArrayList<>();
    Iterator<?> attributes = SortNodes.output(plan).iterator();
    while (attributes.hasNext()) {
      output.add((Attribute) attributes.next());
    }
    return output;
  }

  /** Returns -1 for what is not a column. */
  private static int ordinal(Expression expression, List<Attribute> output) {
    if (expression instanceof Attribute) {
      for (int i = 0; i < output.size(); i++) {
        if (output.get(i).exprId().equals(((Attribute) expression).exprId())) {
          return i;
        }
      }
    }
    return -1;
  }

  /** Null for types whose order is not known here; strings with a collation are among them. */
  @Nullable static KeyKind kind(DataType type) {
    if (type instanceof DecimalType) {
      return ((DecimalType) type).precision() <= Decimal.MAX_LONG_DIGITS() ? KeyKind.LONG : KeyKind.WIDE_DECIMAL;
    }
    if (type.equals(DataTypes.IntegerType) || type.equals(DataTypes.DateType)
        || type instanceof YearMonthIntervalType) {
      return KeyKind.INT;
    }
    if (type.equals(DataTypes.LongType) || type.equals(DataTypes.TimestampType)
        || type.equals(DataTypes.TimestampNTZType) || type instanceof DayTimeIntervalType) {
      return KeyKind.LONG;
    }
    if (type.equals(DataTypes.StringType) || type.equals(DataTypes.BinaryType)) {
      return KeyKind.BYTES;
    }
    return type.equals(DataTypes.BooleanType) ? KeyKind.BOOLEAN
        : type.equals(DataTypes.ByteType) ? KeyKind.BYTE
        : type.equals(DataTypes.ShortType) ? KeyKind.SHORT
        : type.equals(DataTypes.FloatType) ? KeyKind.FLOAT
        : type.equals(DataTypes.DoubleType) ? KeyKind.DOUBLE
        : null;
  }
}
