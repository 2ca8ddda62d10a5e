package io.faro.spark.read.places;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.spark.read.places.LentFiles.LentPart;
import io.faro.spark.read.places.LentFiles.RefusedLoans;
import io.faro.spark.read.rows.FileRows;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.executor.TempShuffleReadMetrics;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.Test;

class LentFilesTest {
  private static final BlockManagerId ADDRESS = Blocks.address("1");

  /** Map outputs that are lent. */
  private final Set<Long> there = new HashSet<>();
  private final RefusedLoans notLent = new RefusedLoans();
  private int questions;
  /** How many map outputs the last question named. */
  private int asked;
  /** What the next looks at the open files find: false, that others had them closed; after these they are open. */
  private final Deque<Boolean> looks = new ArrayDeque<>();

  private final LoanClient lender = new LoanClient() {
    @Override
    public Set<String> near(Collection<String> executors) {
      return Collections.emptySet();
    }

    @Override
    public boolean[] borrow(int shuffle, long[] maps) {
      questions++;
      asked = maps.length;
      boolean[] lent = new boolean[maps.length];
      for (int i = 0; i < maps.length; i++) {
        lent[i] = there.contains(maps[i]);
      }
      return lent;
    }

    @Override
    public void read(long parts, long bytes) {}
  };

  private final LentFiles files = new LentFiles(ADDRESS, lender, this::find, notLent);

  private boolean open() {
    return looks.isEmpty() || looks.remove();
  }

  /** A part has the bytes 0, 1, 2, ... */
  private LentPart.Bytes find(int shuffle, long map, int start, int end) {
    return !open() ? null : new LentPart.Bytes(100, (position, to, offset, length) -> {
      boolean open = open();
      for (int i = 0; open && i < length; i++) {
        to[offset + i] = (byte) (position + i);
      }
      return open;
    });
  }

  private static Parts parts(int count) {
    Parts parts = new Parts(Blocks.SHUFFLE);
    for (int i = 0; i < count; i++) {
      parts.add(i, i, 3, 4, 100, false);
    }
    return parts;
  }

  @Test
  void whatIsRefusedIsNotAskedForPartByPart() {
    Parts parts = parts(3_000);
    for (int i = 0; i < parts.count(); i++) {
      assertFalse(files.resolve(parts, i));
    }
    assertTrue(questions <= 24, questions + " questions for 3,000 outputs");
  }

  @Test
  void whatIsLentIsAskedForAgain() {
    Parts parts = parts(2);
    there.add(1L);
    assertFalse(files.resolve(parts, 0));
    assertTrue(files.resolve(parts, 1));
    assertTrue(files.resolve(parts, 1));
    assertEquals(3, questions);
  }

  @Test
  void whatIsLeftIsFetchedOnce() {
    Parts parts = parts(3);
    assertTrue(files.leave(parts, 2, "gone", false));
    assertTrue(files.leave(parts, 0, "damaged", true));
    Parts left = notLent.take().get(ADDRESS);
    assertEquals(2, left.count());
    assertEquals(2, left.map(0));
    assertEquals(0, left.map(1));
    assertTrue(notLent.isEmpty());
  }

  private FileRows rows(Parts parts) {
    return new FileRows(parts, null, files, null, new TempShuffleReadMetrics(), null);
  }

  /** Other tasks have borrowed so much since this one did that its file was closed before it was read. */
  @Test
  void rowsOfAFileThatWasClosedAreReadWhenItIsBorrowedAgain() throws IOException, FetchFailedException {
    there.addAll(Arrays.asList(0L, 1L));
    FileRows rows = rows(parts(200));
    for (int part = 0; part < 2; part++) {
      for (int tries = 0; tries < LentFiles.TRIES; tries++) {
        assertTrue(rows.resolve(part));
        assertEquals(tries == 0 ? 126 : 1, asked);
      }
    }
    assertTrue(notLent.isEmpty());
  }

  @Test
  void rowsOfAFileThatIsAlwaysClosedAreLeftToTheNetwork() throws IOException, FetchFailedException {
    there.add(0L);
    FileRows rows = rows(parts(1));
    for (int tries = 0; tries < LentFiles.TRIES; tries++) {
      assertTrue(rows.resolve(0));
    }
    assertFalse(rows.resolve(0));
    assertEquals(LentFiles.TRIES, questions);
    assertEquals(1, notLent.take().get(ADDRESS).count());
  }

  @Test
  void aStreamOfAFileThatWasClosedGoesOnWhenItIsBorrowedAgain() throws IOException {
    there.add(0L);
    List<Boolean> closedTwice = Arrays.asList(false, false, true);
    looks.addAll(closedTwice);
    ManagedBuffer part = files.bySpark(parts(1), 0);
    looks.addAll(closedTwice);
    byte[] expected = new byte[100];
    for (int i = 0; i < expected.length; i++) {
      expected[i] = (byte) i;
    }
    assertArrayEquals(expected, part.nioByteBuffer().array());
    assertEquals(4, questions);
    // Lent no more: the reader goes on over the network.
    there.clear();
    looks.add(false);
    assertThrows(IOException.class, part::nioByteBuffer);
  }

  @Test
  void aStreamOfAFileThatIsAlwaysClosedEnds() throws IOException {
    there.add(0L);
    ManagedBuffer part = files.bySpark(parts(1), 0);
    looks.addAll(Collections.nCopies(1 + LentFiles.TRIES, false));
    assertThrows(IOException.class, part::nioByteBuffer);
    assertEquals(LentFiles.TRIES, questions);
    looks.addAll(Collections.nCopies(1 + LentFiles.TRIES, false));
    assertThrows(IOException.class, () -> files.bySpark(parts(1), 0));
  }
}
