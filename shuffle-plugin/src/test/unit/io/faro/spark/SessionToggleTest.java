package io.faro.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.spark.sql.internal.SQLConf;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Without a SparkContext, so by the session's value; tests/spark has the local properties and executors. */
class SessionToggleTest {
  private static final String KEY = "spark.faro.enabled";

  private static void session(String value) {
    SQLConf.get().setConfString(KEY, value);
  }

  @AfterEach
  void unset() {
    SQLConf.get().unsetConf(KEY);
  }

  @Test
  void withoutAValueTheApplicationsHolds() {
    assertFalse(new SessionToggle(true, false).leaves(1));
    assertFalse(new SessionToggle(false, false).leaves(1), "a handle of Spark's does, where no executor has Faro");
  }

  @Test
  void aSessionTurnsItOffAndOn() {
    SessionToggle here = new SessionToggle(true, false);
    session(" False ");
    assertTrue(here.leaves(1));
    session("TRUE");
    assertFalse(here.leaves(2));
  }

  @Test
  void noSessionTurnsOnWhatTheApplicationTurnedOff() {
    session("true");
    assertFalse(new SessionToggle(false, false).leaves(1));
  }

  @Test
  void aBadValueIsNamedWithTheAllowedOnes() {
    session("perhaps");
    IllegalArgumentException refused = assertThrows(
        IllegalArgumentException.class, () -> new SessionToggle(true, false).leaves(1));
    assertEquals("spark.faro.enabled is 'perhaps', allowed: true, false", refused.getMessage());
  }
}
