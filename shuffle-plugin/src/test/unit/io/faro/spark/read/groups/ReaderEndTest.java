package io.faro.spark.read.groups;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.util.HashMap;
import org.junit.jupiter.api.Test;

class ReaderEndTest {
  private int closed;

  private GroupFetch client() {
    return new GroupFetch(null, null, new HashMap<>(), false) {
      @Override
      public void close() {
        closed += 10;
      }
    };
  }

  @Test
  void closesOnce() {
    ReaderEnd end = new ReaderEnd();
    end.begin(() -> closed++);
    end.fetches(client());
    end.run();
    assertEquals(11, closed);
    end.onTaskCompletion(null);
    assertEquals(11, closed);
  }

  @Test
  void requestsEndWhereRecordsCannotBeClosed() {
    ReaderEnd end = new ReaderEnd();
    end.begin(() -> {
      throw new IOException("no");
    });
    end.fetches(client());
    end.run();
    assertEquals(10, closed);
    ReaderEnd other = new ReaderEnd();
    other.begin(() -> {
      throw new IllegalStateException("no");
    });
    other.fetches(client());
    assertThrows(IllegalStateException.class, other::run);
    assertEquals(20, closed);
  }

  /** Another thread than the task's may still read. */
  @Test
  void requestsThatBeginAfterTheEndEndAtOnce() {
    ReaderEnd end = new ReaderEnd();
    end.begin(() -> closed++);
    end.fetches(client());
    end.run();
    end.fetches(client());
    assertEquals(21, closed);
  }
}
