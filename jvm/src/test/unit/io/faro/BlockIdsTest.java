package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

/** Tests that the encoder grows, keeps its ids, and stops at the protocol's bound. */
class BlockIdsTest {
  @Test
  void growsToTheBoundAndNoFurther() {
    BlockIds ids = new BlockIds();
    for (int i = 0; i < BlockIds.MAX_BLOCKS; i++) {
      ids.add(3, 1_000_000_000_000L + i, i, i + 1);
    }
    assertThrows(IllegalStateException.class, () -> ids.add(3, 0, 0, 1));
    assertEquals(BlockIds.MAX_BLOCKS, ids.count());
    for (int i = 0; i < BlockIds.MAX_BLOCKS; i++) {
      int at = i * BlockIdDescriptor.BYTES;
      assertEquals(1_000_000_000_000L + i, ids.buffer().getLong(at + BlockIdDescriptor.MAP_ID));
      assertEquals(i + 1, ids.buffer().getInt(at + BlockIdDescriptor.END_REDUCE));
    }
    assertEquals(0, ids.clear().count());
  }

  @Test
  void negativeIdsAreRefused() {
    BlockIds ids = new BlockIds();
    assertThrows(IllegalArgumentException.class, () -> ids.add(-1, 0, 0, 1));
    assertThrows(IllegalArgumentException.class, () -> ids.add(0, 0, -1, 1));
    assertThrows(IllegalArgumentException.class, () -> ids.add(0, 0, 0, -1));
    assertEquals(1, ids.add(0, -5, 0, 1).count());
  }

  @Test
  void aThreadHasOneInstance() {
    BlockIds first = BlockIds.local().add(1, 1, 1, 2);
    assertSame(first, BlockIds.local());
    assertEquals(0, first.count());
  }
}
