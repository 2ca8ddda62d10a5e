package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.faro.rows.MemorySlices;
import io.faro.rows.NativeMemory;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tests the addresses of blocks that native code gets: they must hold exactly the bytes of each block. */
class SlicesTest {
  @TempDir
  Path directory;

  private final MemorySlices slices = new MemorySlices();

  @BeforeAll
  static void library() throws FaroException {
    Repository.loadNative();
  }

  private static ArenaBatch batch(RecordWriter record) throws FaroException {
    return ArenaBatch.decode(RecordWriter.direct(record.bytes()), 0, new FakeArena());
  }

  private static byte[] join(byte[]... pieces) {
    int length = 0;
    for (byte[] piece : pieces) {
      length += piece.length;
    }
    ByteBuffer all = ByteBuffer.allocate(length);
    for (byte[] piece : pieces) {
      all.put(piece);
    }
    return all.array();
  }

  @Test
  void blocksInSlicesOfSeveralSlabs() throws Exception {
    ArenaBatch batch = batch(new RecordWriter()
        .slice(0, 100, 10).slice(1, 7, 10).slice(1, 0, 0).slice(2, 65_526, 10).slice(3, 0, 10)
        .block(4).block(11).block(0).block(25));
    for (int block = 0; block < batch.count(); block++) {
      batch.take(block).addTo(slices);
    }
    assertEquals(4, slices.parts());
    List<byte[]> parts = NativeMemory.parts(slices);
    assertEquals(4, parts.size());
    assertArrayEquals(FakeArena.bytes(0, 100, 4), parts.get(0));
    assertArrayEquals(join(FakeArena.bytes(0, 104, 6), FakeArena.bytes(1, 7, 5)), parts.get(1));
    assertArrayEquals(new byte[0], parts.get(2));
    assertArrayEquals(
        join(FakeArena.bytes(1, 12, 5), FakeArena.bytes(2, 65_526, 10), FakeArena.bytes(3, 0, 10)), parts.get(3));
  }

  @Test
  void moreSlicesThanThereIsRoomForAtFirst() throws Exception {
    RecordWriter record = new RecordWriter();
    byte[][] pieces = new byte[300][];
    for (int i = 0; i < pieces.length; i++) {
      record.slice(i % 4, 3 * i, 3);
      pieces[i] = FakeArena.bytes(i % 4, 3 * i, 3);
    }
    BlockBytes block = batch(record.block(900)).take(0);
    for (int times = 1; times <= 3; times++) {
      slices.clear();
      block.addTo(slices);
      assertEquals(1, slices.parts());
      assertArrayEquals(join(pieces), NativeMemory.parts(slices).get(0));
    }
  }

  @Test
  void partsWithoutSlices() throws Exception {
    for (int i = 0; i < 100; i++) {
      slices.endPart();
    }
    assertEquals(100, slices.parts());
    assertEquals(100, NativeMemory.parts(slices).size());
    assertEquals(0, slices.clear().parts());
    assertEquals(0, NativeMemory.parts(slices).size());
  }

  @Test
  void aBlockThatWasReleasedIsRefused() throws Exception {
    BlockBytes block = batch(new RecordWriter().slice(0, 0, 8).block(8)).take(0);
    block.release();
    assertThrows(IllegalStateException.class, () -> block.addTo(slices));
    assertEquals(0, slices.parts());
  }

  @Test
  void onlyBytesOfADirectBufferAreTaken() {
    ByteBuffer direct = ByteBuffer.allocateDirect(16);
    assertThrows(IllegalArgumentException.class, () -> slices.add(direct, -1, 4));
    assertThrows(IllegalArgumentException.class, () -> slices.add(direct, 4, -1));
    assertThrows(IllegalArgumentException.class, () -> slices.add(direct, 13, 4));
    assertThrows(IllegalArgumentException.class, () -> slices.add(direct, Integer.MAX_VALUE, 4));
    assertThrows(IllegalArgumentException.class, () -> slices.add(ByteBuffer.allocate(16), 0, 4));
  }

  @ParameterizedTest
  @EnumSource(names = {"TCP", "SHM"})
  void fetchedBlocks(FabricChoice fabric) throws Exception {
    int[] lengths = {11, 3_000_001, 0, 13, 700_000};
    MapOutputs outputs = new MapOutputs(directory).write(1, 5, lengths);
    try (Pair pair = new Pair(fabric, outputs)) {
      BlockIds ids = new BlockIds();
      for (int reduce = 0; reduce < lengths.length; reduce++) {
        ids.add(1, 5, reduce, reduce + 1);
      }
      CollectedBlocks got = pair.fetch(ids).await();
      Arrays.stream(got.blocks).forEach(block -> block.addTo(slices));
      List<byte[]> parts = NativeMemory.parts(slices);
      assertEquals(lengths.length, parts.size());
      for (int reduce = 0; reduce < lengths.length; reduce++) {
        assertArrayEquals(MapOutputs.partition(5, reduce, lengths[reduce]), parts.get(reduce), "block " + reduce);
      }
      got.releaseAll();
    }
  }
}
