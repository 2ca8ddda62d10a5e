package io.faro.spark.read.records;

import io.faro.spark.read.groups.PartFailure;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import org.apache.spark.TaskContext;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.util.collection.ExternalSorter;
import scala.Option;
import scala.math.Ordering;

/** Makes Spark's sorter, whose constructor takes row-based checksums too from Spark 4.1 on. */
public final class KeySorting {
  private static final Constructor<?> CONSTRUCTOR = find();

  private KeySorting() {}

  private static Constructor<?> find() {
    for (Constructor<?> found : ExternalSorter.class.getConstructors()) {
      Class<?>[] types = found.getParameterTypes();
      boolean known = types.length == 5 || types.length == 6 && types[5].isArray();
      if (known && types[0] == TaskContext.class && types[1] == Option.class && types[2] == Option.class
          && types[3] == Option.class && types[4] == Serializer.class) {
        return found;
      }
    }
    return null;
  }

  /** Returns whether this Spark has one of the known constructors. */
  public static boolean available() {
    return CONSTRUCTOR != null;
  }

  /** A sorter without partitioner; {@code aggregator}: an {@code Option} of one. */
  @SuppressWarnings("unchecked")
  static <K, V, C> ExternalSorter<K, V, C> sorter(TaskContext context, Option<?> aggregator,
      Option<? extends Ordering<?>> ordering, Serializer serializer) {
    Object[] arguments = new Object[CONSTRUCTOR.getParameterCount()];
    arguments[0] = context;
    arguments[1] = aggregator;
    arguments[2] = Option.empty();
    arguments[3] = ordering;
    arguments[4] = serializer;
    if (arguments.length > 5) {
      // No checksums, as Spark's reader.
      arguments[5] = Array.newInstance(CONSTRUCTOR.getParameterTypes()[5].getComponentType(), 0);
    }
    try {
      return (ExternalSorter<K, V, C>) CONSTRUCTOR.newInstance(arguments);
    } catch (InvocationTargetException e) {
      throw PartFailure.raise(e.getCause());
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("Spark's sorter cannot be made", e);
    }
  }
}
