package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;

/** Tests that the encoder grows and keeps its ids. */
class BlockIdsTest {
  @Test
  void growsAndKeepsItsIds() {
    BlockIds ids = new BlockIds(0);
    for (int i = 0; i < BlockIds.MAX_BLOCKS; i++) {
      ids.add(3, 1_000_000_000_000L + i, i, i + 1);
    }
    assertEquals(BlockIds.MAX_BLOCKS, ids.count());
    ByteBuffer direct = ids.direct();
    assertTrue(direct.isDirect());
    for (int i = 0; i < BlockIds.MAX_BLOCKS; i++) {
      int at = i * BlockIdDescriptor.BYTES;
      assertEquals(1_000_000_000_000L + i, direct.getLong(at + BlockIdDescriptor.MAP_ID));
      assertEquals(i + 1, direct.getInt(at + BlockIdDescriptor.END_REDUCE));
    }
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
  void someOfThemAreTheSameBlocks() {
    BlockIds ids = new BlockIds().add(1, 10, 0, 1).add(1, 11, 2, 5, 3).add(1, Long.MAX_VALUE, 7, 8);
    ids.extendLast(9);
    String[] names = {"shuffle_1_10_0", "shuffle_1_11_2_5", "shuffle_1_" + Long.MAX_VALUE + "_7_9"};
    for (BlockIds some : new BlockIds[] {ids.range(1, 2), ids.subset(new int[] {1, 2})}) {
      assertEquals(2, some.count());
      assertEquals(names[1], some.name(0));
      assertEquals(3, some.piece(0));
      assertEquals(names[2], some.name(1));
      assertEquals(0, some.piece(1));
    }
    assertEquals(names[0], ids.name(0));
    assertEquals(0, ids.range(3, 0).count());
  }
}
