package io.faro.spark.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.Set;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.Test;

class LentFilesTest {
  private static final BlockManagerId ADDRESS = Blocks.address("1");

  /** Map outputs that are lent. */
  private final Set<Long> there = new HashSet<>();
  private final NotLent notLent = new NotLent();
  private int questions;

  private final Lender lender = new Lender() {
    @Override
    public Set<String> near(Collection<String> executors) {
      return Collections.emptySet();
    }

    @Override
    public boolean[] borrow(int shuffle, long[] maps) {
      questions++;
      boolean[] lent = new boolean[maps.length];
      for (int i = 0; i < maps.length; i++) {
        lent[i] = there.contains(maps[i]);
      }
      return lent;
    }

    @Override
    public void read(long parts, long bytes) {}
  };

  private final LentFiles files = new LentFiles(ADDRESS, lender, null, notLent);

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
}
