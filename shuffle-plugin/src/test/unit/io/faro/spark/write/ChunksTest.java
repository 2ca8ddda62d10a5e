package io.faro.spark.write;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.memory.MemoryBlock;
import org.junit.jupiter.api.Test;

class ChunksTest {
  private final Chunks chunks = new Chunks(3);

  private static MemoryBlock page(int words) {
    return MemoryBlock.fromLongArray(new long[words]);
  }

  /** As {@code offset+length}, of the partition's blocks. */
  private List<String> blocks(int partition) {
    List<String> found = new ArrayList<>();
    chunks.visit(partition, (base, offset, length) -> found.add(offset - Platform.LONG_ARRAY_OFFSET + "+" + length));
    return found;
  }

  @Test
  void aPartitionHasItsBlocksInOrder() {
    assertTrue(chunks.isEmpty());
    assertFalse(chunks.fits(1));
    chunks.addPage(page(4));
    chunks.add(2, 5);
    chunks.add(0, 6);
    chunks.add(2, 21);
    assertTrue(chunks.fits(0));
    assertFalse(chunks.fits(1));
    chunks.addPage(page(1));
    chunks.add(2, 8);
    assertEquals(Arrays.asList("5+6"), blocks(0));
    assertEquals(Arrays.asList(), blocks(1));
    assertEquals(Arrays.asList("0+5", "11+21", "0+8"), blocks(2));
    assertEquals(40, chunks.bytes());
    assertTrue(chunks.has(2) && !chunks.has(1) && !chunks.isEmpty());
  }

  /** The arrays of their fields grow. */
  @Test
  void manyBlocks() {
    chunks.addPage(page(1000));
    List<String> expected = new ArrayList<>();
    for (int i = 0; i < 3000; i++) {
      chunks.add(i % 3, 2);
      if (i % 3 == 1) {
        expected.add(2 * i + "+2");
      }
    }
    assertEquals(expected, blocks(1));
  }

  @Test
  void afterClearThereIsNothing() {
    MemoryBlock first = page(4);
    MemoryBlock second = page(4);
    chunks.addPage(first);
    chunks.add(1, 5);
    chunks.addPage(second);
    chunks.add(1, 5);
    List<MemoryBlock> pages = chunks.clear();
    assertEquals(2, pages.size());
    assertSame(first, pages.get(0));
    assertSame(second, pages.get(1));
    assertTrue(chunks.isEmpty() && !chunks.has(1) && chunks.bytes() == 0 && !chunks.fits(1));
    assertEquals(Arrays.asList(), blocks(1));
    chunks.addPage(first);
    chunks.add(1, 7);
    assertEquals(Arrays.asList("0+7"), blocks(1));
  }
}
