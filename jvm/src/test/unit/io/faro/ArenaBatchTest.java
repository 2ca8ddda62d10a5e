package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.util.Arrays;
import java.util.Collections;
import org.junit.jupiter.api.Test;

/** Batches and blocks: references, and what happens after one release too many. */
class ArenaBatchTest {
  private final FakeArena arena = new FakeArena();

  private ArenaBatch batch(RecordWriter record) throws FaroException {
    return ArenaBatch.decode(RecordWriter.direct(record.bytes()), 0, arena);
  }

  private static RecordWriter threeBlocks() {
    return new RecordWriter().request(9).firstBlock(4).batch(77)
        .slice(0, 100, 50).slice(2, 0, 20)
        .block(30).block(BlockStatus.UNKNOWN_OUTPUT, 0).block(40);
  }

  @Test
  void blocksLieOneAfterTheOtherInTheSlices() throws Exception {
    ArenaBatch batch = batch(threeBlocks());
    assertEquals(4, batch.firstBlock());
    assertEquals(3, batch.count());
    assertEquals(Fabric.TCP, batch.fabric());
    assertEquals(BlockStatus.UNKNOWN_OUTPUT, batch.status(1));
    assertEquals(40, batch.length(2));
    assertArrayEquals(FakeArena.bytes(0, 100, 30), CollectedBlocks.readAll(batch.take(0).inputStream()));
    byte[] across = CollectedBlocks.readAll(batch.take(2).inputStream());
    assertArrayEquals(FakeArena.bytes(0, 130, 20), Arrays.copyOf(across, 20));
    assertArrayEquals(FakeArena.bytes(2, 0, 20), Arrays.copyOfRange(across, 20, 40));
  }

  @Test
  void aBlockOfSeveralSlicesIsCopied() throws Exception {
    BlockBytes across = batch(threeBlocks()).take(2);
    ByteBuffer copy = ByteBuffer.allocateDirect(40);
    across.copyTo(copy);
    copy.flip();
    byte[] bytes = new byte[copy.remaining()];
    copy.get(bytes);
    assertArrayEquals(CollectedBlocks.readAll(across.inputStream()), bytes);
    across.release();
    assertThrows(IllegalStateException.class, () -> across.copyTo(ByteBuffer.allocate(40)));
  }

  @Test
  void aBatchSaysThatMemoryIsScarce() throws Exception {
    assertTrue(batch(threeBlocks().scarce()).scarce());
    assertTrue(!batch(threeBlocks()).scarce());
  }

  @Test
  void nativeMemoryGoesBackOnceWhenAllHaveLetGo() throws Exception {
    ArenaBatch batch = batch(threeBlocks());
    BlockBytes first = batch.take(0);
    BlockBytes third = batch.take(2).retain();
    batch.releaseHold();
    first.release();
    third.release();
    assertEquals(Collections.emptyList(), arena.released);
    third.release();
    assertEquals(Collections.singletonList(77L), arena.released);
  }

  /** Returns three blocks in four slices: block 0 and half of 1, the rest of 1 and 2, and all of 3. */
  private static RecordWriter fourSlices() {
    return new RecordWriter().request(9).batch(77)
        .slice(0, 0, 10).slice(1, 0, 10).slice(2, 0, 10).slice(3, 0, 10)
        .block(15).block(15).block(10).block(0);
  }

  @Test
  void aBlockReturnsTheSlicesThatNoOtherBlockHas() throws Exception {
    ArenaBatch batch = batch(fourSlices());
    BlockBytes first = batch.take(0);
    BlockBytes second = batch.take(1);
    BlockBytes third = batch.take(2);
    BlockBytes empty = batch.take(3);
    batch.releaseHold();
    assertEquals(Collections.emptyList(), arena.slices);
    first.release();
    assertEquals(Arrays.asList("0+1"), arena.slices, "the second block has a part of slice 1");
    third.release();
    assertEquals(Arrays.asList("0+1", "3+1"), arena.slices);
    assertThrows(IllegalStateException.class, () -> batch.take(0));
    assertEquals(Arrays.asList("0+1", "3+1"), arena.slices, "a refused take changes nothing");
    assertArrayEquals(FakeArena.bytes(2, 0, 10),
        Arrays.copyOfRange(CollectedBlocks.readAll(second.inputStream()), 5, 15));
    empty.release();
    second.release();
    assertEquals(Arrays.asList("0+1", "3+1", "1+2"), arena.slices);
  }

  @Test
  void slicesOfBlocksThatNobodyTookGoBackWithTheDelivery() throws Exception {
    ArenaBatch batch = batch(fourSlices());
    BlockBytes second = batch.take(1);
    batch.releaseHold();
    assertEquals(Arrays.asList("0+1", "3+1"), arena.slices);
    second.release();
    assertEquals(Arrays.asList("0+1", "3+1", "1+2"), arena.slices);
  }

  @Test
  void aSecondReleaseNamesTheBlockAndTakesNothing() throws Exception {
    ArenaBatch batch = batch(threeBlocks());
    BlockBytes block = batch.take(2);
    block.release();
    IllegalStateException e = assertThrows(IllegalStateException.class, block::release);
    assertTrue(e.getMessage().contains("block 6 of request 9"), e.getMessage());
    assertThrows(IllegalStateException.class, block::retain);
    assertEquals(Collections.emptyList(), arena.released);
    batch.releaseHold();
    assertEquals(Collections.singletonList(77L), arena.released);
  }

  @Test
  void nothingCanBeReadAfterTheRelease() throws Exception {
    BlockBytes block = batch(threeBlocks()).take(0);
    InputStream open = block.inputStream();
    assertEquals(FakeArena.byteAt(0, 100) & 0xff, open.read());
    block.release();
    assertThrows(IllegalStateException.class, open::read);
    assertThrows(IllegalStateException.class, () -> open.read(new byte[4], 0, 4));
    assertThrows(IllegalStateException.class, () -> open.skip(1));
    assertThrows(IllegalStateException.class, open::available);
    assertThrows(IllegalStateException.class, block::inputStream);
    assertThrows(IllegalStateException.class, block::nioByteBuffer);
  }

  @Test
  void aBlockThatIsNotThereCannotBeTaken() throws Exception {
    ArenaBatch batch = batch(threeBlocks());
    IllegalStateException e = assertThrows(IllegalStateException.class, () -> batch.take(1));
    assertTrue(e.getMessage().contains("UNKNOWN_OUTPUT"), e.getMessage());
    assertThrows(IndexOutOfBoundsException.class, () -> batch.take(3));
    assertThrows(IndexOutOfBoundsException.class, () -> batch.take(-1));
    batch.releaseHold();
    assertThrows(IllegalStateException.class, () -> batch.take(0));
  }

  @Test
  void aByteBufferIsAViewInOneSliceAndACopyOverMore() throws Exception {
    ArenaBatch batch = batch(threeBlocks());
    ByteBuffer view = batch.take(0).nioByteBuffer();
    assertTrue(view.isDirect());
    assertThrows(ReadOnlyBufferException.class, () -> view.put(0, (byte) 1));
    byte[] bytes = new byte[30];
    view.get(bytes);
    assertArrayEquals(FakeArena.bytes(0, 100, 30), bytes);
    ByteBuffer copy = batch.take(2).nioByteBuffer();
    assertEquals(40, copy.remaining());
    assertTrue(copy.isReadOnly());
    assertEquals(FakeArena.byteAt(2, 19), copy.get(39));
  }

  @Test
  void emptyBlocksNeedNoMemory() throws Exception {
    ArenaBatch batch = batch(new RecordWriter().block(0).block(0));
    BlockBytes block = batch.take(1);
    assertEquals(-1, block.inputStream().read());
    assertEquals(-1, block.inputStream().read(new byte[1], 0, 1));
    assertEquals(0, block.nioByteBuffer().remaining());
    block.release();
    batch.releaseHold();
    assertEquals(Collections.emptyList(), arena.released);
  }

  @Test
  void recordsThatDoNotAddUpAreRefused() {
    assertThrows(IllegalStateException.class, () -> batch(new RecordWriter().slice(0, 0, 10).block(11)));
    assertThrows(
        IllegalStateException.class,
        () -> batch(new RecordWriter().slice(0, FakeArena.SLAB_BYTES - 1, 2).block(2)));
    assertThrows(IllegalStateException.class, () -> batch(new RecordWriter().slice(0, -8, 2).block(2)));
    assertThrows(EndpointException.class, () -> batch(new RecordWriter().slice(99, 0, 2).block(2)));
  }

  @Test
  void aBlockBeyondTwoGigabytesIsNoByteBuffer() throws Exception {
    RecordWriter record = new RecordWriter();
    long length = 0;
    while (length <= Integer.MAX_VALUE) {
      record.slice(1, 0, FakeArena.SLAB_BYTES);
      length += FakeArena.SLAB_BYTES;
    }
    BlockBytes block = batch(record.block(length)).take(0);
    assertEquals(length, block.length());
    UnsupportedOperationException e = assertThrows(UnsupportedOperationException.class, block::nioByteBuffer);
    assertTrue(e.getMessage().contains(String.valueOf(length)), e.getMessage());
    try (InputStream in = block.inputStream()) {
      assertEquals(Integer.MAX_VALUE, in.available());
      assertEquals(length - 3, in.skip(length - 3));
      assertEquals(3, in.read(new byte[8], 0, 8));
      assertEquals(-1, in.read());
    }
  }
}
