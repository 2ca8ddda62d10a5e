package io.faro.spark.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.Failures;
import io.faro.FetchError;
import java.io.File;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.apache.spark.TaskContext$;
import org.apache.spark.TaskContextImpl;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import scala.Option;

/** Blocks come in pieces of four bytes and end in files, whole or not at all. */
class FileFetchTest {
  private final ClientHarness h = new ClientHarness(false);
  private final FakeFiles files = new FakeFiles();

  @TempDir
  private File directory;

  @BeforeEach
  void setUp() {
    files.directory = directory;
  }

  private void fetch(ClientHarness of, int blocks) {
    of.fetchTo(files, ClientHarness.blocks(blocks));
    of.lookUps.runAll();
  }

  /** The request for that piece of {@code shuffle_0_<map>_2}. */
  private static FakeTransport.StartedFetch asked(ClientHarness of, int map, int piece) {
    return of.transport.started.stream().filter(each -> each.ids.map(0) == map && each.ids.piece(0) == piece)
        .findFirst().orElseThrow(() -> new AssertionError("piece " + piece + " of block " + map + " was not asked"));
  }

  private void arrive(int map, int piece, String content) {
    FakeTransport.StartedFetch request = asked(h, map, piece);
    h.transport.arrive(request, content);
    request.listener.onComplete();
  }

  private String pieces() {
    return h.transport.started.stream().map(each -> each.ids.map(0) + ":" + each.ids.piece(0))
        .collect(Collectors.joining(" "));
  }

  private void assertNoFilesAndNoMemory() {
    h.fileThreads.runAll();
    assertEquals(0, directory.list().length, () -> Arrays.toString(directory.list()));
    assertEquals(0, h.transport.references());
  }

  @Test
  void aBlockOfAnyLengthComesWithLittleMemory() throws Exception {
    fetch(h, 1);
    assertEquals("0:1 0:2 0:3 0:4", pieces());
    for (int piece = 1; piece <= 9; piece++) {
      arrive(0, piece, "abc" + piece);
      assertTrue(h.transport.references() <= FileFetch.AHEAD);
      h.fileThreads.runAll();
      assertEquals(0, h.transport.references());
    }
    arrive(0, 10, "z");
    assertTrue(h.listener.kept.isEmpty(), "nothing is written on the transport's thread");
    h.fileThreads.runAll();
    assertEquals("abc1abc2abc3abc4abc5abc6abc7abc8abc9z", h.listener.content("shuffle_0_0_2"));
    assertEquals(1, files.created.size());
    // Asked for before the end was known.
    arrive(0, 11, "");
    assertEquals(0, h.transport.references());
    assertEquals(0, h.spark.requests);
  }

  @Test
  void piecesAreWrittenInTheirOrder() throws Exception {
    fetch(h, 1);
    arrive(0, 3, "ij");
    arrive(0, 2, "efgh");
    arrive(0, 4, "");
    h.fileThreads.runAll();
    assertTrue(files.created.isEmpty());
    arrive(0, 1, "abcd");
    h.fileThreads.runAll();
    assertEquals("abcdefghij", h.listener.content("shuffle_0_0_2"));
    assertEquals(0, h.transport.references());
  }

  @Test
  void aBlockThatFillsItsLastPieceEndsWithAnEmptyOne() throws Exception {
    fetch(h, 1);
    arrive(0, 1, "abcd");
    arrive(0, 2, "");
    h.fileThreads.runAll();
    assertEquals("abcd", h.listener.content("shuffle_0_0_2"));
  }

  @Test
  void theBlocksOfARequestComeOneAfterTheOther() throws Exception {
    fetch(h, 2);
    arrive(0, 1, "a");
    assertEquals("0:1 0:2 0:3 0:4", pieces());
    h.fileThreads.runAll();
    assertEquals("a", h.listener.content("shuffle_0_0_2"));
    arrive(1, 1, "b");
    h.fileThreads.runAll();
    assertEquals("b", h.listener.content("shuffle_0_1_2"));
  }

  @Test
  void aPieceThatFailsLeavesItsBlockAndThoseAfterItToSpark() {
    fetch(h, 3);
    arrive(0, 1, "a");
    h.fileThreads.runAll();
    arrive(1, 1, "abcd");
    h.fileThreads.runAll();
    FakeTransport.StartedFetch second = asked(h, 1, 2);
    second.listener.onError(0, 1, Failures.of(FetchError.UNREACHABLE, 0, 1));
    second.listener.onComplete();
    h.fallBackThreads.runAll();
    assertEquals(ClientHarness.names(1, 2), h.spark.fetched);
    assertEquals(files, h.spark.files);
    // Everything else under way is dropped.
    arrive(1, 3, "efgh");
    h.fileThreads.runAll();
    assertEquals(ClientHarness.names(0), Arrays.asList(h.listener.kept.keySet().toArray()));
    assertEquals(1, directory.list().length, "only the file of the block that came");
    assertEquals(0, h.transport.references());
    assertEquals(2, h.spark.fetched.size(), "each block is left once");
  }

  @Test
  void aFailureWhileAThreadWritesEndsTheBlockOnce() {
    fetch(h, 1);
    arrive(0, 1, "abcd");
    // The writing thread has not run yet.
    FakeTransport.StartedFetch second = asked(h, 0, 2);
    second.listener.onError(0, 1, Failures.of(FetchError.UNREACHABLE, 0, 1));
    second.listener.onComplete();
    h.fallBackThreads.runAll();
    assertEquals(ClientHarness.names(0), h.spark.fetched);
    assertNoFilesAndNoMemory();
  }

  @Test
  void aFileThatCannotBeWrittenLeavesItsBlockToSpark() {
    files.directory = new File(directory, "is-not-there");
    fetch(h, 1);
    arrive(0, 1, "abcd");
    h.fileThreads.runAll();
    h.fallBackThreads.runAll();
    assertEquals(ClientHarness.names(0), h.spark.fetched);
    assertEquals(0, h.transport.references());
  }

  @Test
  void withFallbackNeverAFailureNamesTheBlock() {
    ClientHarness never = new ClientHarness(true);
    fetch(never, 1);
    FakeTransport.StartedFetch first = asked(never, 0, 1);
    first.listener.onError(0, 1, Failures.of(FetchError.UNREACHABLE, 0, 1));
    first.listener.onComplete();
    assertInstanceOf(FaroFetchException.class, never.listener.failed.get("shuffle_0_0_2"));
    assertEquals(0, never.spark.requests);
  }

  @Test
  void aPieceThatComesAfterTheStopLeavesNothing() {
    fetch(h, 1);
    h.fileThreads.stopped = true;
    arrive(0, 1, "abcd");
    h.fallBackThreads.runAll();
    assertEquals(ClientHarness.names(0), h.spark.fetched);
    h.fileThreads.stopped = false;
    assertNoFilesAndNoMemory();
  }

  @Test
  void filesOfATaskThatIsOverAreDeleted() {
    files.taskIsOver = true;
    h.listener.taskIsOver = true;
    fetch(h, 1);
    arrive(0, 1, "a");
    assertNoFilesAndNoMemory();
    assertEquals(1, files.created.size());
  }

  @Test
  void theEndOfTheTaskEndsItsFiles() {
    TaskContextImpl task = TaskContext$.MODULE$.empty();
    TaskContext$.MODULE$.setTaskContext(task);
    try {
      fetch(h, 2);
    } finally {
      TaskContext$.MODULE$.unset();
    }
    arrive(0, 1, "abcd");
    h.fileThreads.runAll();
    arrive(0, 3, "ijkl");
    assertEquals(1, directory.list().length);
    final int asked = h.transport.started.size();
    task.markTaskCompleted(Option.empty());
    assertNoFilesAndNoMemory();
    assertTrue(h.transport.cancelled > 0);
    assertEquals(asked, h.transport.started.size());
    assertFalse(h.listener.kept.containsKey("shuffle_0_0_2"));
    assertEquals(0, h.spark.requests);
  }
}
