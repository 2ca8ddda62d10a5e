package io.faro.spark.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class BufferLimitTest {
  private final BufferLimit limit = new BufferLimit(1000);

  @Test
  void afterARefusalItIsLessForAsManyBytesAsWereWanted() {
    assertEquals(1000, limit.bytes(0));
    limit.refused(400, 100, 50);
    assertEquals(100, limit.bytes(50));
    assertEquals(100, limit.bytes(449));
    assertEquals(1000, limit.bytes(450));
    assertEquals(1000, limit.bytes(Long.MAX_VALUE));
  }

  @Test
  void eachRefusalDoublesThePause() {
    limit.refused(400, 100, 0);
    limit.refused(400, 100, 400);
    assertEquals(100, limit.bytes(1199));
    assertEquals(1000, limit.bytes(1200));
    limit.refused(400, 200, 1200);
    assertEquals(200, limit.bytes(2799));
    assertEquals(1000, limit.bytes(2800));
  }

  /** A task of 1 TiB asks some forty times, however long Spark refuses. */
  @Test
  void attemptsAreFewAndMemoryIsFoundBeforeTwiceTheBytes() {
    int attempts = 0;
    for (long rows = 0; rows < 1L << 40; rows += Math.max(1, rows / 100)) {
      if (limit.bytes(rows) == 1000) {
        attempts++;
        limit.refused(1, 100, rows);
      }
    }
    assertTrue(attempts > 30 && attempts < 50, attempts + " attempts");
    long last = 1L << 40;
    assertEquals(1000, limit.bytes(2 * last + 1));
  }

  @Test
  void aRefusalNeverRaisesIt() {
    limit.refused(1, 100, 0);
    limit.refused(1, 500, 0);
    assertEquals(100, limit.bytes(0));
  }
}
