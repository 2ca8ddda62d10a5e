package io.faro.rows;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.FaroException;
import io.faro.TestLibrary;
import io.faro.rows.RowReader.Step;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Tests damaged and truncated parts: their reported position in the input, and the rows that are handed out
 * nevertheless.
 */
class CorruptPartsTest {
  private final PartMemory memory = new PartMemory();

  @BeforeAll
  static void library() throws FaroException {
    TestLibrary.load();
  }

  @Test
  void aCorruptPartBehindWholeOnes() throws Exception {
    byte[] part = GoldenRows.File.LZ4_SMALL.bytes();
    try (RowReader reader = RowReader.open(RowCodec.LZ4)) {
      Walk walk = new Walk(reader);
      reader.input(memory.parts(part, part, PartMemory.flipped(part, 30), part));
      assertEquals(Step.CORRUPT, walk.toEnd());
      assertEquals(2, reader.part());
      assertEquals(GoldenRows.File.LZ4_SMALL.rows(2), walk.rows);
      assertFalse(reader.partWasHandedOut());
      assertTrue(reader.problem().startsWith("the LZ4 block at byte 0 "), reader.problem());
      assertEquals(Step.DONE, walk.step(), "the rest is dropped");
      assertEquals(0, reader.rows());
      reader.input(memory.parts(part));
      assertEquals(Step.DONE, walk.toEnd());
      assertEquals(GoldenRows.File.LZ4_SMALL.rows(3), walk.rows);
    }
  }

  @Test
  void aCorruptPartOfWhichRowsWereHandedOut() throws Exception {
    byte[] part = GoldenRows.File.LZ4.bytes();
    try (RowReader reader = RowReader.open(RowCodec.LZ4)) {
      Walk walk = new Walk(reader);
      // The damage is before the end block of the part's last stream.
      reader.input(memory.parts(PartMemory.flipped(part, part.length - 31)));
      assertEquals(Step.CORRUPT, walk.toEnd());
      assertEquals(0, reader.part());
      assertTrue(reader.partWasHandedOut());
      List<ByteBuffer> expected = GoldenRows.File.LZ4.rows(1);
      assertTrue(walk.rows.size() > 0 && walk.rows.size() < expected.size(), walk.rows.size() + " rows");
      assertEquals(expected.subList(0, walk.rows.size()), walk.rows);
      reader.input(memory.parts(part, PartMemory.flipped(GoldenRows.File.LZ4_SMALL.bytes(), 0)));
      Walk again = new Walk(reader);
      assertEquals(Step.CORRUPT, again.toEnd());
      assertEquals(1, reader.part());
      assertEquals(expected, again.rows);
      assertFalse(reader.partWasHandedOut(), "of the part that failed now");
    }
  }

  @Test
  void anyFlippedBitOfLz4IsFoundOrHarmless() throws Exception {
    byte[] part = GoldenRows.File.LZ4_SMALL.bytes();
    List<ByteBuffer> whole = GoldenRows.File.LZ4_SMALL.rows(1);
    int found = 0;
    try (RowReader reader = RowReader.open(RowCodec.LZ4)) {
      for (int at = 0; at < part.length; at++) {
        Walk walk = new Walk(reader);
        reader.input(memory.parts(PartMemory.flipped(part, at)));
        Step step = walk.toEnd();
        assertEquals(step == Step.CORRUPT ? Collections.emptyList() : whole, walk.rows, "byte " + at);
        found += step == Step.CORRUPT ? 1 : 0;
      }
    }
    assertTrue(found > part.length * 9 / 10, found + " of " + part.length);
  }

  @ParameterizedTest
  @EnumSource
  void aPartThatIsCutOffIsCorrupt(GoldenRows.File file) throws Exception {
    byte[] part = file.bytes();
    try (RowReader reader = RowReader.open(file.codec)) {
      for (int missing : new int[] {1, 2, 3, 30}) {
        Walk walk = new Walk(reader);
        reader.input(memory.parts(Arrays.copyOf(part, part.length - missing)));
        assertEquals(Step.CORRUPT, walk.toEnd(), missing + " bytes are missing");
        assertEquals(walk.rows.size() > 0, reader.partWasHandedOut());
        assertEquals(file.rows(1).subList(0, walk.rows.size()), walk.rows);
        assertFalse(reader.problem().isEmpty());
      }
      Walk walk = new Walk(reader);
      reader.input(memory.parts(part));
      assertEquals(Step.DONE, walk.toEnd());
      assertEquals(file.rows(1), walk.rows);
    }
  }
}
