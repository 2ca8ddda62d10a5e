package io.faro.spark.write;

import io.faro.Nullable;
import java.lang.invoke.LambdaMetafactory;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import org.apache.spark.ShuffleDependency;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The checksums of one map task's rows by partition, of any order of the rows. From Spark 4.1 on a dependency may have
 * them, and a map status carries them: by them Spark knows a task that gave other rows when it ran again.
 */
final class RowSums {
  private static final Logger LOG = LoggerFactory.getLogger(RowSums.class);
  /** Sums of a dependency without checksums. */
  static final RowSums NONE = new RowSums(null);
  /** Null if this Spark has no such checksums. */
  @Nullable private static final Method SUMS = sumsMethod();
  /** Null if there are none, or they are not as they are known here. */
  @Nullable private static final Access ACCESS = SUMS == null ? null : access();

  /** Null if there is none. */
  @Nullable private final Object[] sums;

  private RowSums(Object[] sums) {
    this.sums = sums;
  }

  /** {@code RowBasedChecksum.update}. */
  interface Update {
    void update(Object sum, Object key, Object row);
  }

  private static final class Access {
    final Update update;
    final Method total;

    Access(Update update, Method total) {
      this.update = update;
      this.total = total;
    }
  }

  private static Method sumsMethod() {
    try {
      return ShuffleDependency.class.getMethod("rowBasedChecksums");
    } catch (NoSuchMethodException e) {
      return null;
    }
  }

  private static Access access() {
    try {
      Class<?> type = SUMS.getReturnType().getComponentType();
      MethodHandles.Lookup lookup = MethodHandles.lookup();
      MethodHandle update =
          lookup.findVirtual(type, "update", MethodType.methodType(void.class, Object.class, Object.class));
      MethodType called = MethodType.methodType(void.class, Object.class, Object.class, Object.class);
      Update compiled = (Update) LambdaMetafactory.metafactory(
          lookup, "update", MethodType.methodType(Update.class), called, update, update.type()).getTarget().invoke();
      return new Access(compiled, type.getMethod("getAggregatedChecksumValue", Array.newInstance(type, 0).getClass()));
    } catch (Throwable e) {
      LOG.debug("This Spark's checksums of rows are not as Faro knows them", e);
      return null;
    }
  }

  /** Returns whether this Spark has no such checksums, or those that are known here. */
  static boolean available() {
    return SUMS == null || ACCESS != null;
  }

  /** Returns the row checksums of the dependency, of which each task has a copy. */
  static RowSums of(ShuffleDependency<?, ?, ?> dependency) {
    if (ACCESS == null) {
      return NONE;
    }
    Object[] sums = (Object[]) MapStatuses.call(SUMS, dependency);
    return sums == null || sums.length == 0 ? NONE : new RowSums(sums);
  }

  void add(int partition, Object key, Object row) {
    if (sums != null) {
      ACCESS.update.update(sums[partition], key, row);
    }
  }

  /** Returns the sum of all partitions, as Spark's writers compute it. */
  long value() {
    return sums == null ? 0 : (Long) MapStatuses.call(ACCESS.total, null, (Object) sums);
  }
}
