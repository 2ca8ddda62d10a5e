package io.faro.spark.sort;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.TestLibrary;
import io.faro.spark.conf.SpillLimits;
import io.faro.spark.metrics.SortDeclineReason;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.TaskKilledException;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.memory.MemoryConsumer;
import org.apache.spark.memory.MemoryMode;
import org.apache.spark.memory.TaskMemoryManager;
import org.apache.spark.memory.UnifiedMemoryManager;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BaseOrdering;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory of rows that are sorted: who takes it away, and that all of it comes back. */
class PagedRowsTest {
  private static final int ROWS = 20_000;
  private static SparkContext spark;

  private final TaskMetrics metrics = TaskMetrics.empty();
  private TaskMemoryManager memory;
  private Task context;

  @BeforeAll
  static void start() throws Exception {
    TestLibrary.load();
    spark = new SparkContext(new SparkConf(false).setMaster("local[1]").setAppName("faro")
        .set("spark.ui.enabled", "false").set("spark.driver.host", "localhost")
        .set("spark.driver.bindAddress", "127.0.0.1"));
  }

  @AfterAll
  static void stop() {
    spark.stop();
  }

  private PagedRows rows(boolean offHeap, long bytes) {
    SparkConf conf = new SparkConf(false).set("spark.buffer.pageSize", "64k")
        .set("spark.memory.offHeap.enabled", Boolean.toString(offHeap))
        .set("spark.memory.offHeap.size", Long.toString(bytes));
    memory = new TaskMemoryManager(new UnifiedMemoryManager(conf, bytes, 0, 1), 0);
    context = new Task();
    return new PagedRows(context, 1);
  }

  /** It can be killed between two rows. */
  private final class Task extends TaskContextImpl {
    private int checks = Integer.MAX_VALUE;

    Task() {
      super(0, 0, 0, 0, 0, 1, memory, new Properties(), null, metrics, 1, scala.Predef$.MODULE$.Map().empty());
    }

    @Override
    public void killTaskIfInterrupted() {
      if (--checks == 0) {
        throw new TaskKilledException("test");
      }
      super.killTaskIfInterrupted();
    }
  }

  /** Fills with the numbers from 0 on, in another order; returns how many found room. */
  private static int fill(PagedRows rows) {
    UnsafeRow row = UnsafeRow.createFromByteArray(16, 1);
    for (int i = 0; i < ROWS; i++) {
      row.setLong(0, i * 7_919L % ROWS);
      if (!rows.add(row)) {
        return i;
      }
    }
    return ROWS;
  }

  private static SortColumns byLong() {
    return SortColumns.of(io.faro.sort.SortKey.empty().then(0, io.faro.sort.KeyKind.LONG, false, true), 1);
  }

  private static Set<Path> files() throws Exception {
    Set<Path> all = new TreeSet<>();
    for (java.io.File directory : SparkEnv.get().blockManager().diskBlockManager().localDirs()) {
      try (Stream<Path> found = Files.walk(Paths.get(directory.toURI()))) {
        all.addAll(found.filter(Files::isRegularFile).collect(Collectors.toSet()));
      }
    }
    return all;
  }

  /** Another operator of the task. */
  private final class Neighbour extends MemoryConsumer {
    Neighbour(MemoryMode mode) {
      super(memory, mode);
    }

    @Override
    public long spill(long size, MemoryConsumer trigger) {
      return 0;
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void sortedRowsMoveToDiskWhenAnotherOperatorWantsTheirMemory(boolean offHeap) throws Exception {
    long all = 8L << 20;
    PagedRows rows = rows(offHeap, all);
    assertEquals(ROWS, fill(rows));
    assertNull(rows.sort(byLong(), () -> null));
    Set<Path> before = files();
    UnsafeRow row = new UnsafeRow(1);
    for (int i = 0; i < ROWS / 2; i++) {
      assertTrue(rows.advance(row));
      assertEquals(i, row.getLong(0));
    }
    Neighbour neighbour = new Neighbour(memory.getTungstenMemoryMode());
    long taken = neighbour.acquireMemory(all);
    assertEquals(all - memory.pageSizeBytes(), taken);
    assertEquals(ROWS / 2 - 1, row.getLong(0), "the row that is out stays");
    assertTrue(metrics.diskBytesSpilled() > 0);
    assertEquals(before.size() + 1, files().size());
    for (int i = ROWS / 2; i < ROWS; i++) {
      assertTrue(rows.advance(row));
      assertEquals(i, row.getLong(0));
    }
    assertFalse(rows.advance(row));
    rows.close();
    neighbour.freeMemory(taken);
    assertEquals(before, files());
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void rowsGoOutAsTheyCameWhenMemoryEnds(boolean offHeap) throws Exception {
    PagedRows rows = rows(offHeap, 512 << 10);
    int count = fill(rows);
    assertTrue(count < ROWS && count > 5_000, count + " rows");
    rows.unsorted();
    UnsafeRow row = new UnsafeRow(1);
    Neighbour neighbour = new Neighbour(memory.getTungstenMemoryMode());
    for (int i = 0; i < count; i++) {
      assertTrue(rows.advance(row));
      assertEquals(i * 7_919L % ROWS, row.getLong(0));
      if (i == count / 2) {
        long free = neighbour.acquireMemory(128 << 10);
        assertEquals(128 << 10, free, "pages that were left are free");
        assertEquals(0, metrics.diskBytesSpilled());
        neighbour.acquireMemory(512 << 10);
        assertTrue(metrics.diskBytesSpilled() > 0);
        assertEquals(i * 7_919L % ROWS, row.getLong(0), "the row that is out stays");
      }
    }
    assertFalse(rows.advance(row));
    rows.close();
    neighbour.freeMemory(neighbour.getUsed());
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void anEndInTheMiddleGivesAllBack(boolean offHeap) throws Exception {
    PagedRows rows = rows(offHeap, 8 << 20);
    fill(rows);
    assertNull(rows.sort(byLong(), () -> null));
    UnsafeRow row = new UnsafeRow(1);
    assertTrue(rows.advance(row));
    rows.close();
    rows.close();
    assertFalse(rows.advance(row));
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
    PagedRows half = rows(offHeap, 8 << 20);
    fill(half);
    half.close();
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }

  /** Spark's sorter needs a page for the first row that it gets. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whereRowsTakeAllMemoryAPageIsFreeWhenTheyGoOut(boolean offHeap) throws Exception {
    PagedRows few = rows(offHeap, 100 << 10);
    int count = fill(few);
    assertEquals(1, few.pageCount());
    few.unsorted();
    assertRowsAndRoomForAPage(few, count);

    // A row with a page of its own, which is larger than others.
    PagedRows wide = rows(offHeap, 600 << 10);
    UnsafeRow row = new UnsafeRow(1);
    row.pointTo(new byte[400 << 10], 400 << 10);
    assertTrue(wide.add(row));
    assertFalse(wide.add(row));
    wide.unsorted();
    UnsafeRow out = new UnsafeRow(1);
    assertTrue(wide.advance(out));
    assertEquals(400 << 10, out.getSizeInBytes());
    Neighbour neighbour = new Neighbour(memory.getTungstenMemoryMode());
    assertEquals(500 << 10, neighbour.acquireMemory(500 << 10));
    assertFalse(wide.advance(out));
    wide.close();
    neighbour.freeMemory(neighbour.getUsed());
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }

  private void assertRowsAndRoomForAPage(PagedRows rows, int count) {
    UnsafeRow row = new UnsafeRow(1);
    assertTrue(rows.advance(row));
    Neighbour neighbour = new Neighbour(memory.getTungstenMemoryMode());
    assertEquals(memory.pageSizeBytes(), neighbour.acquireMemory(memory.pageSizeBytes()));
    for (int i = 1; i < count; i++) {
      assertTrue(rows.advance(row));
      assertEquals(i * 7_919L % ROWS, row.getLong(0));
    }
    assertFalse(rows.advance(row));
    rows.close();
    neighbour.freeMemory(neighbour.getUsed());
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aTaskThatIsKilledGivesAllBack(boolean offHeap) throws Exception {
    Set<Path> before = files();
    PagedRows sorting = rows(offHeap, 8 << 20);
    fill(sorting);
    context.markInterrupted("test");
    assertThrows(TaskKilledException.class, () -> sorting.sort(byLong(), () -> null));
    sorting.close();
    assertEquals(0, memory.cleanUpAllAllocatedMemory());

    PagedRows spilling = rows(offHeap, 8 << 20);
    fill(spilling);
    assertNull(spilling.sort(byLong(), () -> null));
    UnsafeRow row = new UnsafeRow(1);
    assertTrue(spilling.advance(row));
    context.markInterrupted("test");
    Neighbour neighbour = new Neighbour(memory.getTungstenMemoryMode());
    assertThrows(TaskKilledException.class, () -> spilling.spill(1 << 20, neighbour));
    assertEquals(before, files(), "half a spill is deleted");
    spilling.close();
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }

  /** As on a disk that is full: its bytes are needed by others, also while the writer is not collected. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void halfASpillLeavesNothingOnTheDisk(boolean offHeap) throws Exception {
    PagedRows rows = rows(offHeap, 8 << 20);
    fill(rows);
    assertNull(rows.sort(byLong(), () -> null));
    context.checks = ROWS / EntryCursor.AHEAD;
    Neighbour neighbour = new Neighbour(memory.getTungstenMemoryMode());
    long written = diskBytes();
    assertThrows(TaskKilledException.class, () -> rows.spill(1 << 20, neighbour));
    assertEquals(written, diskBytes());
    rows.close();
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }

  /** Those of files in Spark's directories that are open, deleted ones among them. */
  private static long diskBytes() throws Exception {
    long bytes = 0;
    String directories = SparkEnv.get().blockManager().diskBlockManager().localDirs()[0].getPath();
    try (Stream<Path> open = Files.list(Paths.get("/proc/self/fd"))) {
      for (Path descriptor : open.collect(Collectors.toList())) {
        try {
          if (Files.readSymbolicLink(descriptor).startsWith(directories)) {
            bytes += Files.size(descriptor);
          }
        } catch (NoSuchFileException e) {
          // Closed since.
        }
      }
    }
    return bytes;
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void rowsThatNativeCodeRefusesAreSparks(boolean offHeap) throws Exception {
    PagedRows rows = rows(offHeap, 8 << 20);
    // A string that ends behind its row.
    UnsafeRow row = UnsafeRow.createFromByteArray(16, 1);
    row.setLong(0, 16L << 32 | 1);
    assertTrue(rows.add(row));
    SortColumns columns = SortColumns.of(
        io.faro.sort.SortKey.empty().then(0, io.faro.sort.KeyKind.BYTES, false, true), 1);
    assertEquals(SortDeclineReason.FAULT, rows.sort(columns, () -> null));
    rows.unsorted();
    assertTrue(rows.advance(new UnsafeRow(1)));
    rows.close();
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void withoutMemoryForEntriesNothingIsLost(boolean offHeap) throws Exception {
    PagedRows rows = rows(offHeap, 8 << 20);
    fill(rows);
    Neighbour neighbour = new Neighbour(memory.getTungstenMemoryMode());
    long taken = neighbour.acquireMemory(8 << 20);
    // As another task does: what was kept for the entries is given back before it is taken.
    long kept = rows.giveUpReserved();
    taken += neighbour.acquireMemory(kept);
    assertEquals(SortDeclineReason.MEMORY, rows.sort(byLong(), () -> null));
    rows.unsorted();
    UnsafeRow row = new UnsafeRow(1);
    for (int i = 0; i < ROWS; i++) {
      assertTrue(rows.advance(row));
    }
    rows.close();
    neighbour.freeMemory(taken);
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }

  /** Memory for entries, here of two longs, is taken with the rows, and suffices to sort them. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void rowsThatTakeAllMemoryAreSorted(boolean offHeap) throws Exception {
    rows(offHeap, 2 << 20).close();
    PagedRows rows = new PagedRows(context, 2);
    UnsafeRow row = UnsafeRow.createFromByteArray(24, 2);
    int count = 0;
    while (true) {
      // Each key comes 50 times.
      row.setLong(0, (count % 800 + 1) * 0x9e3779b97f4a7c15L);
      row.setLong(1, -count);
      if (!rows.add(row)) {
        break;
      }
      count++;
    }
    // 8 bytes for its length and 16 for its entry beside each row of 24.
    int fit = (2 << 20) / (24 + 24);
    assertTrue(count > fit * 9 / 10, count + " of " + fit + " rows");
    io.faro.sort.SortKey key = io.faro.sort.SortKey.empty()
        .then(0, io.faro.sort.KeyKind.LONG, false, true).then(1, io.faro.sort.KeyKind.LONG, false, true);
    assertNull(rows.sort(SortColumns.of(key, 2), () -> null));
    long first = Long.MIN_VALUE;
    long second = 0;
    for (int i = 0; i < count; i++) {
      assertTrue(rows.advance(row));
      assertTrue(first < row.getLong(0) || first == row.getLong(0) && second < row.getLong(1), i + ". row");
      first = row.getLong(0);
      second = row.getLong(1);
    }
    assertFalse(rows.advance(row));
    rows.close();
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }

  /** Two columns: a key of which there are many equal ones, and the row's number. */
  private SortRuns runs(boolean offHeap, int count) throws Exception {
    return runs(offHeap, count, i -> i * 7_919L % 1_000);
  }

  private SortRuns runs(boolean offHeap, int count, java.util.function.IntToLongFunction key) throws Exception {
    rows(offHeap, 2 << 20).close();
    return runs(count, key, SpillLimits.NONE);
  }

  private SortRuns runs(int count, java.util.function.IntToLongFunction key, SpillLimits limits) throws Exception {
    SortRuns runs = new SortRuns(context, SortColumns.of(
        io.faro.sort.SortKey.empty().then(0, io.faro.sort.KeyKind.LONG, false, true), 2), ByFirst::new, limits);
    UnsafeRow row = UnsafeRow.createFromByteArray(24, 2);
    for (int i = 0; i < count; i++) {
      row.setLong(0, key.applyAsLong(i));
      row.setLong(1, i);
      assertNull(runs.add(row));
    }
    return runs;
  }

  private static final class ByFirst extends BaseOrdering {
    private static final long serialVersionUID = 1;

    @Override
    public int compare(InternalRow a, InternalRow b) {
      return Long.compare(a.getLong(0), b.getLong(0));
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void runsThatMovedToDiskAreMergedAndEqualRowsKeepTheirOrder(boolean offHeap) throws Exception {
    Set<Path> before = files();
    SortRuns runs = runs(offHeap, 200_000);
    int onDisk = files().size() - before.size();
    assertTrue(onDisk > 3, onDisk + " runs");
    assertNull(runs.sort());
    SortedRows sorted = runs.sorted();
    Neighbour neighbour = new Neighbour(memory.getTungstenMemoryMode());
    long key = 0;
    long number = -1;
    for (int i = 0; i < 200_000; i++) {
      InternalRow row = sorted.next();
      assertTrue(row.getLong(0) == key ? row.getLong(1) > number : row.getLong(0) == key + 1, i + ". row");
      key = row.getLong(0);
      number = row.getLong(1);
      if (i == 70_000) {
        neighbour.acquireMemory(2 << 20);
        assertEquals(onDisk + 1, files().size() - before.size(), "the last run moved too");
        assertEquals(number, row.getLong(1), "the row that is out stays");
      }
    }
    assertFalse(sorted.hasNext());
    neighbour.freeMemory(neighbour.getUsed());
    assertEquals(before, files());
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }

  /** Spark's settings. After so many runs the rows are Spark's. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void limitsOfRowsAndOfBytesBeginRunsAlthoughThereIsMemory(boolean offHeap) throws Exception {
    Set<Path> before = files();
    rows(offHeap, 2 << 20).close();
    for (SpillLimits limits : Arrays.asList(
        new SpillLimits(100, Long.MAX_VALUE), new SpillLimits(Long.MAX_VALUE, 2_400))) {
      SortRuns runs = runs(1_050, i -> -i, limits);
      assertEquals(10, files().size() - before.size());
      assertNull(runs.sort());
      SortedRows sorted = runs.sorted();
      for (int i = 0; i < 1_050; i++) {
        assertEquals(i - 1_049, sorted.next().getLong(0));
      }
      assertFalse(sorted.hasNext());
      assertEquals(before, files());
    }
    SortRuns many = runs(256, i -> i, new SpillLimits(1, Long.MAX_VALUE));
    assertEquals(SortDeclineReason.MEMORY, many.add(UnsafeRow.createFromByteArray(24, 2)));
    many.close();
    assertEquals(before, files());
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }

  /** The last run has the least keys, so it ends first. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theMemoryOfARunThatEndedIsFreeWhileOthersAreMerged(boolean offHeap) throws Exception {
    SortRuns runs = runs(offHeap, 100_000, i -> -i);
    assertNull(runs.sort());
    assertTrue(runs.peakBytes() > 1 << 20);
    SortedRows sorted = runs.sorted();
    Neighbour neighbour = new Neighbour(memory.getTungstenMemoryMode());
    long all = 2 << 20;
    long free = 0;
    for (int i = 0; i < 100_000; i++) {
      assertEquals(i - 99_999, sorted.next().getLong(0));
      if (memory.getMemoryConsumptionForThisTask() == 0 && free == 0) {
        free = neighbour.acquireMemory(all);
        assertEquals(all, free);
        assertTrue(i < 99_000, "while others are merged");
      }
    }
    assertEquals(all, free);
    neighbour.freeMemory(free);
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void anEndOfAMergeGivesAllBack(boolean offHeap) throws Exception {
    Set<Path> before = files();
    SortRuns runs = runs(offHeap, 100_000);
    assertNull(runs.sort());
    SortedRows sorted = runs.sorted();
    sorted.next();
    runs.close();
    assertFalse(sorted.hasNext());
    assertEquals(before, files());
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void runsGoToAnotherSorterWhenOneCannotBeSorted(boolean offHeap) throws Exception {
    Set<Path> before = files();
    SortRuns runs = runs(offHeap, 100_000);
    runs.unsorted();
    java.util.BitSet seen = new java.util.BitSet();
    UnsafeRow row = new UnsafeRow(2);
    while (runs.advance(row)) {
      seen.set((int) row.getLong(1));
    }
    assertEquals(100_000, seen.cardinality());
    runs.close();
    assertEquals(before, files());
    assertEquals(0, memory.cleanUpAllAllocatedMemory());
  }
}
