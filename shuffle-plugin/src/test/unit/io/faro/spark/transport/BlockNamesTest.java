package io.faro.spark.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.BlockIds;
import io.faro.spark.read.places.Parts;
import java.util.Random;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.ShuffleBlockBatchId;
import org.apache.spark.storage.ShuffleBlockId;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class BlockNamesTest {
  private static final long SEED = 20240607;

  private final Random random = new Random(SEED);

  private int part() {
    // Short ones, long ones, and the ends of the range.
    int bits = random.nextInt(32);
    return random.nextInt(20) == 0 ? Integer.MAX_VALUE - 1 : random.nextInt() >>> 1 >>> Math.min(bits, 30);
  }

  private long map() {
    return random.nextInt(20) == 0 ? Long.MAX_VALUE : random.nextLong() >>> 1 >>> random.nextInt(62);
  }

  @Test
  void namesPartsAsSparkDoes() {
    Parts parts = new Parts(7);
    parts.add(41, 0, 2, 3, 10, false);
    parts.add(Long.MAX_VALUE, 1, 2, 9, 10, true);
    parts.add(5, 2, 0, 1, 10, false);
    BlockIds ids = parts.ids;
    assertEquals("shuffle_7_41_2", ids.name(0));
    assertEquals("shuffle_7_" + Long.MAX_VALUE + "_2_9", ids.name(1));
    BlockIds last = ids.range(2, 1);
    assertEquals(1, last.count());
    assertEquals("shuffle_7_5_0", last.name(0));
    assertEquals("shuffle_7_5_0", BlockNames.parse(new String[] {last.name(0)}).name(0));
  }

  @Test
  void readsWhatSparkWrites() {
    for (int round = 0; round < 500; round++) {
      int count = 1 + random.nextInt(40);
      BlockId[] blocks = new BlockId[count];
      String[] names = new String[count];
      for (int i = 0; i < count; i++) {
        int start = part();
        blocks[i] = random.nextBoolean()
            ? new ShuffleBlockId(part(), map(), start)
            : new ShuffleBlockBatchId(part(), map(), start, start + 1 + random.nextInt(Integer.MAX_VALUE - start));
        names[i] = blocks[i].name();
      }
      BlockIds ids = BlockNames.parse(names);
      assertNotNull(ids, () -> String.join(" ", names));
      assertEquals(count, ids.count());
      for (int i = 0; i < count; i++) {
        BlockId read = blocks[i] instanceof ShuffleBlockId
            ? new ShuffleBlockId(ids.shuffle(i), ids.map(i), ids.start(i))
            : new ShuffleBlockBatchId(ids.shuffle(i), ids.map(i), ids.start(i), ids.end(i));
        assertEquals(blocks[i], read);
        assertTrue(ids.end(i) > ids.start(i));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {
    "", "shuffle", "shuffle_", "shuffle__", "shuffle_1", "shuffle_1_2", "shuffle_1_2_", "shuffle__1_2", "shuffle_1__2",
    "shuffle_1_2_3_", "shuffle_1_2_3_4_5", "shuffle_1_2_3_3", "shuffle_1_2_4_3", "_shuffle_1_2_3", "Shuffle_1_2_3",
    "shuffle_-1_2_3", "shuffle_1_-2_3", "shuffle_1_2_-3", "shuffle_+1_2_3", "shuffle_1_2_3.data", "shuffle_1_2_0.index",
    "shuffle_ 1_2_3", "shuffle_1_2_3 ", "shuffle_01_2_3", "shuffle_1_00_3", "shuffle_a_2_3",
    "shuffle_2147483648_2_3", "shuffle_1_9223372036854775808_3", "shuffle_1_99999999999999999999999_3",
    "shuffle_1_2_2147483648", "shuffle_1_2_2147483647", "shuffle_1_2_3_4294967300", "shuffle_\u0661_2_3",
    "shuffleChunk_1_2_3_4", "shuffleMerged_app_1_2_3", "shufflePush_1_2_3_4", "rdd_1_2", "broadcast_1", "taskresult_1",
    "test_faro-1", "shuffle_1_2_3\0", "shuffle_1_2_3_noop"
  })
  void refusesWhatIsNotExactlyAShuffleBlock(String name) {
    assertNull(BlockNames.parse(new String[] {name}));
    assertNull(BlockNames.parse(new String[] {"shuffle_1_2_3", name}));
    assertNull(BlockNames.parse(new String[] {name, "shuffle_1_2_3"}));
  }

  @Test
  void refusesNothingAtAll() {
    assertNull(BlockNames.parse(new String[0]));
    assertNull(BlockNames.parse(new String[] {null}));
  }

  @Test
  void oneChangedCharacterNeverReadsAsAnotherSpelling() {
    String digits = "0123456789_";
    for (int round = 0; round < 20_000; round++) {
      StringBuilder name = new StringBuilder(new ShuffleBlockId(part(), map(), part()).name());
      int at = random.nextInt(name.length());
      name.setCharAt(at, random.nextInt(3) == 0
          ? (char) random.nextInt(300) : digits.charAt(random.nextInt(digits.length())));
      BlockIds ids = BlockNames.parse(new String[] {name.toString()});
      if (ids != null) {
        // Whatever is accepted is written back as it was: the names go back to Spark as keys.
        String back = "shuffle_" + ids.shuffle(0) + "_" + ids.map(0) + "_" + ids.start(0);
        assertTrue(name.toString().equals(back) || name.toString().equals(back + "_" + ids.end(0)), name::toString);
      }
    }
  }
}
