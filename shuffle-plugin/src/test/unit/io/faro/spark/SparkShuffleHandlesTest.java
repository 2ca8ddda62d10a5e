package io.faro.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import org.apache.spark.shuffle.BaseShuffleHandle;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.sort.BypassMergeSortShuffleHandle;
import org.apache.spark.shuffle.sort.SerializedShuffleHandle;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class SparkShuffleHandlesTest {
  static BaseShuffleHandle<?, ?, ?>[] handles() {
    return new BaseShuffleHandle<?, ?, ?>[] {
        new SerializedShuffleHandle<>(7, null), new BypassMergeSortShuffleHandle<>(8, null),
        new BaseShuffleHandle<>(9, null)};
  }

  /** Spark's manager chooses the writer by these classes. */
  @ParameterizedTest
  @MethodSource("handles")
  void keepsTheKindAndTheDecisionOnTheWayToAnExecutor(BaseShuffleHandle<?, ?, ?> spark) throws Exception {
    assertFalse(SparkShuffleHandles.has(spark));
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    new ObjectOutputStream(bytes).writeObject(SparkShuffleHandles.of(spark));
    Object there = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
    ShuffleHandle handle = assertInstanceOf(spark.getClass(), there);
    assertTrue(SparkShuffleHandles.has(handle));
    assertEquals(spark.shuffleId(), handle.shuffleId());
    assertFalse(handle instanceof SerializedShuffleHandle && !(spark instanceof SerializedShuffleHandle));
    assertFalse(handle instanceof BypassMergeSortShuffleHandle && !(spark instanceof BypassMergeSortShuffleHandle));
  }

  @Test
  void refusesAKindThatItDoesNotKnow() {
    ShuffleHandle other = new BaseShuffleHandle<Object, Object, Object>(3, null) { };
    assertThrows(IllegalStateException.class, () -> SparkShuffleHandles.of(other));
  }
}
