package io.faro.spark;

import io.faro.spark.conf.FaroKeys;
import org.apache.spark.shuffle.BaseShuffleHandle;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.sort.BypassMergeSortShuffleHandle;
import org.apache.spark.shuffle.sort.SerializedShuffleHandle;

/**
 * Handles of shuffles that are Spark's alone. Each has the class of Spark's handle as its superclass, by which Spark's
 * manager chooses the writer, and brings the decision to the executors.
 */
final class SparkShuffleHandles {
  private static final String OWN = SparkShuffleHandles.class.getName() + "$";

  private SparkShuffleHandles() {}

  /** {@code handle} as one that Faro leaves alone; throws for a class of handle that Spark's manager does not have. */
  @SuppressWarnings("unchecked")
  static ShuffleHandle of(ShuffleHandle handle) {
    Class<?> type = handle.getClass();
    if (type == SerializedShuffleHandle.class) {
      return new OfSerialized<>((SerializedShuffleHandle<Object, Object>) handle);
    } else if (type == BypassMergeSortShuffleHandle.class) {
      return new OfBypass<>((BypassMergeSortShuffleHandle<Object, Object>) handle);
    } else if (type == BaseShuffleHandle.class) {
      return new OfBase<>((BaseShuffleHandle<Object, Object, Object>) handle);
    }
    throw new IllegalStateException(FaroKeys.ENABLED.name + "=false is not possible for the shuffle "
        + handle.shuffleId() + ": this Spark has a handle of " + type.getName());
  }

  /**
   * Returns whether the shuffle is Spark's alone. By the name: a session with artifacts of its own has a class loader
   * of its own, and may have loaded this class once more.
   */
  static boolean has(ShuffleHandle handle) {
    return handle.getClass().getName().startsWith(OWN);
  }

  private static final class OfSerialized<K, V> extends SerializedShuffleHandle<K, V> {
    private static final long serialVersionUID = 1;

    OfSerialized(SerializedShuffleHandle<K, V> spark) {
      super(spark.shuffleId(), spark.dependency());
    }
  }

  private static final class OfBypass<K, V> extends BypassMergeSortShuffleHandle<K, V> {
    private static final long serialVersionUID = 1;

    OfBypass(BypassMergeSortShuffleHandle<K, V> spark) {
      super(spark.shuffleId(), spark.dependency());
    }
  }

  private static final class OfBase<K, V, C> extends BaseShuffleHandle<K, V, C> {
    private static final long serialVersionUID = 1;

    OfBase(BaseShuffleHandle<K, V, C> spark) {
      super(spark.shuffleId(), spark.dependency());
    }
  }
}
