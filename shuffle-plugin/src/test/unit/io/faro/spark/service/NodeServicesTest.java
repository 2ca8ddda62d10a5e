package io.faro.spark.service;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tests the driver's knowledge of node services, and the messages that bring it. */
class NodeServicesTest {
  private final NodeServices driver = new NodeServices();
  private final List<byte[]> answers = new ArrayList<>();

  private void ask(Message.Kind kind, String executor, String bytes) throws IOException {
    ask(kind, executor, bytes.getBytes(StandardCharsets.UTF_8));
  }

  private void ask(Message.Kind kind, String executor, byte[] bytes) throws IOException {
    driver.take(Message.decode(new Message(kind, executor, bytes).encode()), answers::add);
  }

  private void kept(String executor, String before, String now) throws IOException {
    byte[] cards = Message.cards(before.getBytes(StandardCharsets.UTF_8), now.getBytes(StandardCharsets.UTF_8));
    ask(Message.Kind.KEPT, executor, cards);
  }

  private String cardOf(String executor) throws IOException {
    ask(Message.Kind.CARD, executor, "");
    byte[] answer = answers.get(answers.size() - 1);
    return answer.length == 0 ? "" : new String(KeptBy.decode(answer).card, StandardCharsets.UTF_8);
  }

  private int placeOf(String executor) throws IOException {
    ask(Message.Kind.CARD, executor, "");
    return KeptBy.decode(answers.get(answers.size() - 1)).place;
  }

  private void watch(String executor, int version) throws IOException {
    ask(Message.Kind.HOSTS, executor, new byte[] {0, 0, 0, (byte) version});
  }

  @Test
  void allExecutorsGetTheSameToken() throws IOException {
    ask(Message.Kind.TOKEN, "1", "");
    ask(Message.Kind.TOKEN, "2", "");
    assertArrayEquals(answers.get(0), answers.get(1));
    assertEquals(32, answers.get(0).length);
    new NodeServices().take(new Message(Message.Kind.TOKEN, "1", new byte[0]), answers::add);
    assertFalse(Arrays.equals(answers.get(0), answers.get(2)));
  }

  private List<String> neighbours(String executor, String... others) throws IOException {
    ask(Message.Kind.NEIGHBOURS, executor, Message.names(Arrays.asList(others)));
    return Message.names(answers.get(answers.size() - 1));
  }

  @Test
  void neighboursHaveTheSameServiceAlsoWhenTheyHaveEndedAndItWasRestarted() throws IOException {
    kept("1", "", "here");
    kept("2", "", "here");
    kept("3", "", "there");
    driver.removed("2");
    assertEquals(Arrays.asList("1", "2"), neighbours("1", "1", "2", "3", "4"));
    assertEquals(Arrays.asList("3"), neighbours("3", "1", "2", "3", "4"));
    kept("1", "here", "after a restart");
    assertEquals(Arrays.asList("2"), neighbours("1", "2", "3"));
    assertEquals(Arrays.asList(), neighbours("4", "1", "4"));
    assertEquals(Arrays.asList(), neighbours("1"));
  }

  /** What happens depends on which executor connects to the restarted service first. */
  @Test
  void outputsOfEndedExecutorsAreFoundWhenANewExecutorKnewTheRestartedServiceFirst() throws IOException {
    kept("ended", "", "before");
    kept("old", "", "before");
    kept("new", "", "after");
    assertEquals("before", cardOf("ended"));
    kept("old", "before", "after");
    for (String executor : new String[] {"ended", "old", "new"}) {
      assertEquals("after", cardOf(executor), executor);
      assertEquals(0, placeOf(executor), executor);
    }
  }

  @Test
  void aCardIsKnownWhenItsExecutorHasEnded() throws IOException {
    assertEquals("", cardOf("1"));
    kept("1", "", "first");
    driver.removed("1");
    assertEquals("first", cardOf("1"));
  }

  @Test
  void aRestartIsToldForExecutorsThatEndedBeforeIt() throws IOException {
    kept("1", "", "first");
    kept("2", "", "first");
    kept("3", "", "another host's");
    driver.removed("1");
    kept("2", "first", "after a restart");
    kept("4", "", "after a restart");
    assertEquals("after a restart", cardOf("1"));
    assertEquals("after a restart", cardOf("2"));
    assertEquals("another host's", cardOf("3"));
  }

  @Test
  void aServiceKeepsItsPlaceWhenItWasRestarted() throws IOException {
    kept("1", "", "first");
    kept("2", "", "second");
    kept("3", "", "first");
    assertEquals(0, placeOf("3"));
    kept("1", "first", "after a restart");
    kept("3", "first", "after a restart");
    assertEquals(0, placeOf("1"));
    assertEquals(0, placeOf("3"));
    assertEquals(1, placeOf("2"));
  }

  @Test
  void whoWatchesIsToldOfEachChangeOnce() throws IOException {
    ServiceHosts hosts = new ServiceHosts(1);
    watch("1", 0);
    assertTrue(answers.isEmpty());
    kept("1", "", "first");
    assertEquals(2, answers.size());
    assertEquals(1, hosts.take(answers.get(1)).size());
    watch("1", hosts.version());
    kept("2", "", "second");
    kept("3", "", "second");
    assertEquals(5, answers.size());
    assertEquals(1, hosts.take(answers.get(3)).size());
    // An executor that starts later gets all at once.
    watch("4", 0);
    ServiceHosts later = new ServiceHosts(1);
    assertEquals(2, later.take(answers.get(5)).size());
    kept("1", "first", "after a restart");
    watch("4", later.version());
    later.take(answers.get(7));
    assertEquals("after a restart", new String(later.card(0), StandardCharsets.UTF_8));
    assertEquals("second", new String(later.card(1), StandardCharsets.UTF_8));
    assertEquals(null, later.card(2));
  }

  @Test
  void whoWatchesIsToldTheEnd() throws IOException {
    watch("1", 0);
    watch("2", 0);
    driver.removed("2");
    driver.end();
    assertEquals(1, answers.size());
    assertEquals(0, answers.get(0).length);
    watch("3", 0);
    assertEquals(0, answers.get(1).length);
  }

  @Test
  void aListThatIsNoneIsRefused() throws IOException {
    kept("1", "", "first");
    watch("1", 0);
    byte[] good = answers.get(1);
    for (int end = 0; end < good.length; end++) {
      byte[] cut = Arrays.copyOf(good, end);
      assertThrows(IOException.class, () -> new ServiceHosts(1).take(cut), "of " + end + " bytes");
    }
    assertThrows(IOException.class, () -> ask(Message.Kind.HOSTS, "1", new byte[3]));
  }

  @Test
  void cardsThatAreCutAreRefused() {
    for (byte[] bytes : new byte[][] {{}, {0, 0, 0}, {0, 0, 0, 2, 1}, {-1, 0, 0, 0}}) {
      assertThrows(IOException.class, () -> ask(Message.Kind.KEPT, "1", bytes), Arrays.toString(bytes));
    }
  }

  @Test
  void hostsWhoseExecutorsHaveAllEndedAreEmpty() throws IOException {
    kept("1", "", "first");
    kept("2", "", "second");
    kept("3", "", "second");
    assertEquals(0, driver.cardsOfEmptyHosts().length);
    driver.removed("2");
    assertEquals(0, driver.cardsOfEmptyHosts().length);
    driver.removed("3");
    driver.removed("never heard of");
    byte[][] empty = driver.cardsOfEmptyHosts();
    assertEquals(1, empty.length);
    assertEquals("second", new String(empty[0], StandardCharsets.UTF_8));
    kept("4", "", "second");
    assertEquals(0, driver.cardsOfEmptyHosts().length);
  }

  /** Its place is left without a service. */
  @Test
  void aServiceWithTwoPlacesIsNoEmptyHost() throws IOException {
    kept("old", "", "before");
    kept("new", "", "after");
    kept("old", "before", "after");
    assertEquals(0, driver.cardsOfEmptyHosts().length);
  }

  private void unkept(String executor, long number, Integer... shuffles) throws IOException {
    byte[] list = new UnkeptShuffles(number, Arrays.asList(shuffles), "there is no service").encode();
    ask(Message.Kind.UNKEPT, executor, list);
  }

  @Test
  void anOutputThatIsNotKeptIsToldForAllUntilItIs() throws IOException {
    driver.registered(5, false);
    driver.registered(6, false);
    assertTrue(driver.reliable());
    kept("1", "", "card");
    unkept("2", 1, 5);
    unkept("2", 2, 5, 6);
    assertFalse(driver.reliable());
    unkept("2", 3, 6);
    assertFalse(driver.reliable());
    unkept("2", 4);
    assertTrue(driver.reliable());
  }

  @Test
  void anOlderListThatComesLateCountsNothing() throws IOException {
    driver.registered(5, false);
    unkept("1", 2);
    unkept("1", 1, 5);
    assertTrue(driver.reliable());
  }

  @Test
  void outputsThatAreNotKeptGoWithTheirShuffle() throws IOException {
    driver.registered(5, false);
    driver.registered(6, false);
    unkept("1", 1, 5);
    // As Spark asks after the executor has gone.
    driver.removed("1");
    assertFalse(driver.reliable());
    driver.shuffleRemoved(5);
    assertTrue(driver.reliable());
    // Also from a task that goes on after its query has ended.
    unkept("2", 1, 5);
    assertTrue(driver.reliable());
  }

  @Test
  void moreShufflesThanAListMayHaveStandForAll() throws IOException {
    driver.registered(1, false);
    Integer[] many = new Integer[UnkeptShuffles.MAX_SHUFFLES + 1];
    Arrays.setAll(many, i -> i + 10);
    unkept("1", 1, many);
    assertFalse(driver.reliable());
  }

  @Test
  void aListOfShufflesThatIsCutIsRefused() throws IOException {
    byte[] list = new UnkeptShuffles(1, Arrays.asList(3, 4), "").encode();
    for (int end = 0; end < list.length; end++) {
      byte[] cut = Arrays.copyOf(list, end);
      assertThrows(IOException.class, () -> ask(Message.Kind.UNKEPT, "1", cut), "of " + end + " bytes");
    }
  }

  @Test
  void aShuffleOfSparksOwnIsNotKeptWhileItIsThere() {
    driver.registered(5, true);
    assertFalse(driver.reliable());
    driver.shuffleRemoved(5);
    assertTrue(driver.reliable());
  }

  @Test
  void theEndIsToldOnceToEachThatWaits() throws IOException {
    ask(Message.Kind.END, "1", "");
    ask(Message.Kind.END, "1", "");
    ask(Message.Kind.END, "2", "");
    driver.removed("2");
    assertTrue(answers.isEmpty());
    driver.end();
    driver.end();
    assertEquals(1, answers.size());
    ask(Message.Kind.END, "3", "");
    assertEquals(2, answers.size());
  }

  @Test
  void aMessageThatIsNoneIsRefused() throws IOException {
    byte[] good = new Message(Message.Kind.KEPT, "1", new byte[] {1, 2, 3}).encode();
    for (int end = 0; end < good.length; end++) {
      byte[] cut = Arrays.copyOf(good, end);
      assertThrows(IOException.class, () -> Message.decode(cut), "of " + end + " bytes");
    }
    byte[] longer = Arrays.copyOf(good, good.length + 1);
    assertThrows(IOException.class, () -> Message.decode(longer));
    byte[] other = good.clone();
    other[0] = 9;
    assertThrows(IOException.class, () -> Message.decode(other));
    other[0] = good[0];
    other[1] = 77;
    assertThrows(IOException.class, () -> Message.decode(other));
  }
}
