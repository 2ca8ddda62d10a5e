package io.faro.spark.service;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.OutputFiles;
import io.faro.service.ServiceException;
import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** What the driver gets to know of outputs that a service does not take, and what happens to them later. */
class HandOverTest {
  private static final OutputFiles FILES = new OutputFiles(new File("data"), new File("index"));

  private final List<String> handedOver = new ArrayList<>();
  private final List<String> forgotten = new ArrayList<>();
  private final Set<Long> missing = new HashSet<>();
  /** What a hand-over throws; {@code null}: the service takes it. */
  private Exception problem;
  private boolean isKilled;
  private int kept;
  private int notKept;
  private int warnings;
  private Runnable onHandOver = () -> { };

  private final NodeServices driver = new NodeServices();
  private final UnkeptOutputs unkept = new UnkeptOutputs(
      list -> driver.take(new Message(Message.Kind.UNKEPT, "1", list.encode()), answer -> { }), () -> isKilled);
  private final HandOver outputs = new HandOver(new HandOver.Service() {
    @Override
    public void handOver(int shuffleId, long mapId, OutputFiles files, boolean waits) throws Exception {
      onHandOver.run();
      if (problem != null) {
        throw problem;
      }
      handedOver.add(shuffleId + "/" + mapId);
    }

    @Override
    public void forget(int shuffleId) {
      forgotten.add(Integer.toString(shuffleId));
    }

    @Override
    public void warn(Exception e) {
      warnings++;
    }
  }, unkept, (shuffle, map) -> missing.contains(map) ? null : FILES, () -> kept++, () -> notKept++);

  HandOverTest() {
    driver.registered(5, false);
    driver.registered(6, false);
  }

  @Test
  void aKilledTaskThatIsInterruptedCountsNothing() {
    isKilled = true;
    problem = new InterruptedException();
    outputs.handOver(5, 1, FILES);
    assertTrue(Thread.interrupted());
    assertTrue(driver.reliable());
    assertEquals(0, notKept + warnings);
    problem = null;
    outputs.handOverAgain();
    assertEquals(0, handedOver.size());
  }

  @Test
  void aTaskThatIsInterruptedAndNotKilledCounts() {
    problem = new InterruptedException();
    outputs.handOver(5, 1, FILES);
    assertTrue(Thread.interrupted());
    assertFalse(driver.reliable());
    assertEquals(1, notKept);
  }

  @Test
  void whatIsKeptLaterIsForgotten() {
    problem = new ServiceException.Lost("No such file or directory");
    outputs.handOver(5, 1, FILES);
    outputs.handOver(5, 2, FILES);
    outputs.handOver(6, 3, FILES);
    assertFalse(driver.reliable());
    outputs.handOverAgain();
    assertFalse(driver.reliable());
    problem = null;
    outputs.handOverAgain();
    assertEquals(Arrays.asList("5/1", "5/2", "6/3"), handedOver);
    assertTrue(driver.reliable());
    assertEquals(3, kept);
    outputs.handOverAgain();
    assertEquals(3, kept);
  }

  @Test
  void anOutputWithoutFilesIsNotHandedOver() {
    problem = new ServiceException("its disk is full");
    outputs.handOver(5, 1, FILES);
    problem = null;
    missing.add(1L);
    outputs.handOverAgain();
    assertEquals(0, handedOver.size());
    assertTrue(driver.reliable());
  }

  @Test
  void aShuffleThatIsRemovedIsForgotten() {
    problem = new ServiceException("its disk is full");
    outputs.handOver(5, 1, FILES);
    outputs.forget(5);
    assertTrue(driver.reliable());
    problem = null;
    outputs.handOverAgain();
    assertEquals(0, handedOver.size());
  }

  /** The service would keep it until the application ends. */
  @Test
  void aShuffleThatIsRemovedWhileItIsHandedOverIsForgottenAfterIt() {
    problem = new ServiceException("its disk is full");
    outputs.handOver(5, 1, FILES);
    problem = null;
    onHandOver = () -> unkept.removed(5);
    outputs.handOverAgain();
    assertEquals(Arrays.asList("5/1"), handedOver);
    assertEquals(Arrays.asList("5"), forgotten);
  }

  @Test
  void aServiceThatRefusesIsNotAskedForAllAtOnce() {
    problem = new ServiceException("its quota is used up");
    for (int map = 0; map < 20; map++) {
      outputs.handOver(5, map, FILES);
    }
    int[] asked = {0};
    onHandOver = () -> asked[0]++;
    outputs.handOverAgain();
    assertEquals(4, asked[0]);
    problem = null;
    outputs.handOverAgain();
    assertEquals("5/4", handedOver.get(0));
    assertEquals(20, handedOver.size());
    assertTrue(driver.reliable());
  }

  @Test
  void outputsAboveTheBoundStayWithTheirShuffle() {
    for (int map = 0; map <= UnkeptOutputs.MAX_OUTPUTS; map++) {
      unkept.add(5, map, "there is no service");
    }
    assertEquals(UnkeptOutputs.MAX_OUTPUTS, unkept.all().size());
    unkept.add(6, 0, "there is no service");
    outputs.handOverAgain();
    assertFalse(driver.reliable());
    outputs.forget(5);
    outputs.forget(6);
    assertTrue(driver.reliable());
  }
}
