package io.faro.spark.peers;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests how often the driver is asked. */
class ExecutorDirectoryTest {
  private final Map<String, PeerKey> alive = new HashMap<>();
  private final Steps time = new Steps();
  private final ExecutorDirectory directory = new ExecutorDirectory(this::ask, time);
  private int asked;
  private boolean fails;

  private Map<String, PeerKey> ask() throws IOException {
    asked++;
    if (fails) {
      throw new IOException("made by a test");
    }
    return alive;
  }

  private PeerKey executor(int id) {
    PeerKey place = new PeerKey(String.valueOf(id), "host-" + id, 7_000 + id);
    alive.put(place.executor, place);
    return place;
  }

  @Test
  void oneQuestionAnswersForAllExecutors() throws Exception {
    for (int id = 0; id < 1_000; id++) {
      executor(id);
    }
    for (int id = 0; id < 1_000; id++) {
      assertEquals("host-" + id, directory.find(String.valueOf(id), time.getAsLong()).host);
    }
    assertEquals(1, asked);
  }

  @Test
  void lookUpsThatWaitTogetherShareOneQuestionForExecutorsThatEnded() throws Exception {
    executor(1);
    long since = time.getAsLong();
    for (int id = 500; id < 1_000; id++) {
      assertNull(directory.find(String.valueOf(id), since));
    }
    assertEquals(1, asked);
    time.pass(1, TimeUnit.SECONDS);
    assertNull(directory.find("500", since), "said after it was wanted");
    assertEquals(1, asked);
  }

  @Test
  void anExecutorThatCameLaterIsFound() throws Exception {
    assertNull(directory.find("1", time.getAsLong()));
    PeerKey late = executor(1);
    time.pass(1, TimeUnit.MILLISECONDS);
    assertEquals(late, directory.find("1", time.getAsLong()));
    assertEquals(2, asked);
  }

  @Test
  void anExecutorThatDoesNotAnswerIsAskedForAgain() throws Exception {
    executor(1);
    directory.find("1", time.getAsLong());
    alive.clear();
    assertEquals("host-1", directory.find("1", time.getAsLong()).host);
    directory.doubt("1");
    time.pass(1, TimeUnit.MILLISECONDS);
    assertNull(directory.find("1", time.getAsLong()));
    assertEquals(2, asked);
  }

  @Test
  void aDriverThatDoesNotAnswerIsNoEndOfAnExecutor() throws Exception {
    fails = true;
    assertThrows(IOException.class, () -> directory.find("1", time.getAsLong()));
    fails = false;
    PeerKey one = executor(1);
    assertEquals(one, directory.find("1", time.getAsLong()));
  }
}
