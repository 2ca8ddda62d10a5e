package io.faro.collective;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Endpoint;
import io.faro.EndpointConfig;
import io.faro.EndpointException;
import io.faro.FabricChoice;
import io.faro.FaroException;
import io.faro.TestLibrary;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Teams of threads in one JVM, on two endpoints: tests Java's arrays, buffers and exceptions. */
class GroupedAllReduceTest {
  private static final int RANKS = 5;

  private final List<Endpoint> endpoints = new ArrayList<>();
  private final ExecutorService threads = Executors.newFixedThreadPool(RANKS);

  @BeforeAll
  static void library() throws FaroException {
    TestLibrary.load();
  }

  @AfterEach
  void close() {
    threads.shutdownNow();
    endpoints.forEach(Endpoint::close);
  }

  private interface Body<T> {
    T run(GroupedAllReduce team) throws Exception;
  }

  /** Runs the members' bodies and returns their results or errors, by rank. */
  private <T> List<Future<T>> team(FabricChoice fabric, Settings settings, Body<T> body) throws Exception {
    for (String name : new String[] {"executor-0", "executor-1"}) {
      endpoints.add(Endpoint.start(
          EndpointConfig.builder().name(name).fabric(fabric).memoryLimitBytes(64L << 20).build(), (s, m) -> null));
    }
    List<Member> members = new ArrayList<>();
    List<String> ids = new ArrayList<>();
    for (int rank = 0; rank < RANKS; rank++) {
      Member member = Member.on(endpoints.get(rank % 2), "rack-" + rank % 2);
      members.add(member);
      ids.add(member.bootstrapId());
    }
    List<Future<T>> results = new ArrayList<>();
    for (int rank = 0; rank < RANKS; rank++) {
      GroupedAllReduce team = members.get(rank).join(rank, ids, settings);
      results.add(threads.submit(() -> {
        try (GroupedAllReduce mine = team) {
          return body.run(mine);
        }
      }));
    }
    return results;
  }

  private static <T> T of(Future<T> result) throws Exception {
    return result.get();
  }

  private static CollectiveException failure(Future<?> result) {
    ExecutionException thrown = assertThrows(ExecutionException.class, () -> of(result));
    assertTrue(thrown.getCause() instanceof CollectiveException, String.valueOf(thrown.getCause()));
    return (CollectiveException) thrown.getCause();
  }

  private static float[] floats(int rank, int length) {
    float[] values = new float[length];
    for (int i = 0; i < length; i++) {
      values[i] = rank + i % 100;
    }
    return values;
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void arraysAndBuffers(FabricChoice fabric) throws Exception {
    int length = 100_001;
    float[] mean = floats(2, length);
    List<Future<Void>> results = team(fabric, new Settings(), team -> {
      float[] values = floats(team.rank(), length);
      team.mean(values);
      assertArrayEquals(mean, values);
      double[] doubles = {team.rank(), 1, -team.rank()};
      team.sum(doubles);
      assertArrayEquals(new double[] {10, 5, -10}, doubles);
      FloatBuffer direct =
          ByteBuffer.allocateDirect(4 * length + 8).order(ByteOrder.nativeOrder()).asFloatBuffer();
      direct.put(7f).put(floats(team.rank(), length)).put(8f);
      direct.position(1).limit(length + 1);
      team.mean(direct);
      assertEquals(1, direct.position());
      float[] back = new float[length];
      direct.get(back);
      assertArrayEquals(mean, back);
      direct.clear();
      assertEquals(7f, direct.get(0));
      assertEquals(8f, direct.get(length + 1));
      return null;
    });
    for (Future<Void> result : results) {
      of(result);
    }
    assertEquals(3 * RANKS, endpoints.stream().mapToLong(e -> e.counters().get("collectiveRounds")).sum());
  }

  @ParameterizedTest
  @EnumSource
  void everyMode(Mode mode) throws Exception {
    List<Future<double[]>> results =
        team(FabricChoice.SHM, new Settings().mode(mode).group(2).seed(7), team -> {
          double[] values = {team.rank(), 1};
          for (int i = 0; i < 40; i++) {
            team.mean(values);
          }
          return values;
        });
    for (Future<double[]> result : results) {
      double[] values = of(result);
      assertEquals(2, values[0], 1e-3);
      assertEquals(1, values[1], 1e-12);
    }
  }

  /** Racks, members that are kept apart by their times, whichever they are, and the exact mean in the end. */
  @Test
  void meanOfAllMakesReplicasAgree() throws Exception {
    Settings settings = new Settings().mode(Mode.DSSYNC).group(2).slowMembersApart(true);
    List<Future<float[]>> results = team(FabricChoice.SHM, settings, team -> {
      float[] values = {team.rank(), 1};
      for (int i = 0; i < 20; i++) {
        team.mean(values);
      }
      team.meanOfAll(values);
      return values;
    });
    for (Future<float[]> result : results) {
      float[] values = of(result);
      assertArrayEquals(of(results.get(0)), values);
      assertArrayEquals(new float[] {2, 1}, values, 1e-4f);
    }
    // Two looks at the times.
    assertEquals(23 * RANKS, endpoints.stream().mapToLong(e -> e.counters().get("collectiveRounds")).sum());
  }

  @Test
  void anotherLengthIsNamed() throws Exception {
    List<Future<Void>> results = team(FabricChoice.TCP, new Settings(), team -> {
      team.mean(new float[team.rank() == 4 ? 11 : 10]);
      return null;
    });
    for (Future<Void> result : results) {
      CollectiveException failure = failure(result);
      assertEquals(CollectiveException.Reason.MISMATCH, failure.reason());
      assertTrue(failure.getMessage().contains("rank 4 (executor-0)"), failure.getMessage());
      assertTrue(failure.getMessage().contains("11 floats"), failure.getMessage());
    }
  }

  @Test
  void notANumberIsNamed() throws Exception {
    List<Future<Void>> results = team(FabricChoice.TCP, new Settings(), team -> {
      double[] values = new double[10];
      values[3] = team.rank() == 1 ? Double.NaN : 0;
      team.sum(values);
      return null;
    });
    for (Future<Void> result : results) {
      CollectiveException failure = failure(result);
      assertEquals(CollectiveException.Reason.NOT_A_NUMBER, failure.reason());
      assertEquals(1, failure.rank());
      assertTrue(failure.getMessage().contains("1 NaN, the first at element 3"), failure.getMessage());
    }
  }

  /**
   * Interrupts a member as Spark interrupts a task that it kills: the others must learn of it long before their time
   * limit.
   */
  @Test
  void anInterruptEndsTheRoundOfAll() throws Exception {
    List<Future<Boolean>> results = team(FabricChoice.SHM, new Settings().mode(Mode.FULL), team -> {
      if (team.rank() == 2) {
        Thread.currentThread().interrupt();
      }
      try {
        team.sum(new float[10]);
        return false;
      } catch (CollectiveException e) {
        assertEquals(CollectiveException.Reason.GAVE_UP, e.reason());
        assertEquals(2, e.rank());
        return Thread.interrupted();
      }
    });
    for (int rank = 0; rank < RANKS; rank++) {
      assertEquals(rank == 2, of(results.get(rank)), "the flag stays set");
    }
  }

  @Test
  void whatACallerThrowsWhenAskedIsWhatItGets() throws Exception {
    List<Future<Void>> results = team(FabricChoice.TCP, new Settings(), team -> {
      if (team.rank() == 0) {
        team.cancelWhen(() -> {
          throw new UnsupportedOperationException("asked");
        });
        assertThrows(UnsupportedOperationException.class, () -> team.sum(new float[10]));
        throw new CollectiveException("as expected", 7, 0, 0);
      }
      team.sum(new float[10]);
      return null;
    });
    for (Future<Void> result : results) {
      assertEquals(CollectiveException.Reason.GAVE_UP, failure(result).reason());
    }
  }

  @Test
  void misuseIsNamed() throws Exception {
    List<Future<Void>> results = team(FabricChoice.TCP, new Settings(), team -> {
      assertThrows(IllegalArgumentException.class, () -> team.mean(FloatBuffer.allocate(4)));
      FloatBuffer swapped = ByteBuffer.allocateDirect(8).order(
          ByteOrder.nativeOrder() == ByteOrder.BIG_ENDIAN ? ByteOrder.LITTLE_ENDIAN : ByteOrder.BIG_ENDIAN)
          .asFloatBuffer();
      assertThrows(IllegalArgumentException.class, () -> team.mean(swapped));
      team.close();
      assertThrows(EndpointException.Closed.class, () -> team.mean(new float[1]));
      return null;
    });
    for (Future<Void> result : results) {
      of(result);
    }
    try (Member member = Member.on(endpoints.get(0))) {
      assertThrows(IllegalArgumentException.class,
          () -> member.join(1, Arrays.asList(member.bootstrapId()), new Settings()));
      assertThrows(IllegalStateException.class,
          () -> member.join(0, Arrays.asList(member.bootstrapId()), new Settings()));
    }
    try (Member member = Member.on(endpoints.get(0)); Member other = Member.on(endpoints.get(0))) {
      assertThrows(IllegalArgumentException.class,
          () -> member.join(0, Arrays.asList(other.bootstrapId()), new Settings()));
      assertThrows(IllegalArgumentException.class,
          () -> other.join(0, Arrays.asList("not a bootstrap id"), new Settings()));
    }
    assertThrows(IllegalArgumentException.class, () -> new Settings().group(1));
    assertThrows(IllegalArgumentException.class, () -> new Settings().timeoutMillis(0));
  }
}
