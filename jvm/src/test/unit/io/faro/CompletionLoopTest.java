package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collections;
import org.junit.jupiter.api.Test;

/** Delivers records to listeners, without native code. */
class CompletionLoopTest {
  private final FakeArena arena = new FakeArena();
  private final Requests requests = new Requests();
  private final CompletionLoop loop = new CompletionLoop(0, 0, requests, arena);

  private FetchHandle begin(long request, int blocks, FetchListener listener) throws FaroException {
    FetchHandle handle = new FetchHandle(null, 5, blocks, listener);
    requests.register(handle, () -> request);
    return handle;
  }

  private void deliver(byte[]... records) {
    ByteBuffer all = RecordWriter.direct(records);
    loop.deliverAll(all, all.capacity());
  }

  @Test
  void recordsReachTheirListenersInOrder() throws Exception {
    CollectedBlocks one = new CollectedBlocks(3);
    CollectedBlocks two = new CollectedBlocks(1);
    FetchHandle handle = begin(1, 3, one);
    begin(2, 1, two);
    deliver(
        new RecordWriter().request(1).batch(10).slice(0, 0, 8).block(4).block(4).more().bytes(),
        new RecordWriter().request(2).batch(11).slice(1, 0, 2).block(2).bytes(),
        new RecordWriter().request(1).firstBlock(2).error(3, 1, "no answer in 5 ms").bytes());
    one.await();
    two.await();
    assertTrue(handle.isDone());
    assertEquals(0, requests.size());
    assertArrayEquals(FakeArena.bytes(0, 4, 4), one.bytes(1));
    FetchException error = one.errors.get(0);
    assertEquals(FetchError.TIMED_OUT, error.error());
    assertEquals(5, error.peer());
    assertEquals(1, error.request());
    assertEquals(2, error.firstBlock());
    assertEquals(1, error.blockCount());
    assertEquals("no answer in 5 ms", error.detail());
    one.releaseAll();
    two.releaseAll();
    assertEquals(Arrays.asList(10L, 11L), arena.released);
  }

  @Test
  void everyCodeHasItsError() {
    for (FetchError error : FetchError.values()) {
      assertEquals(error, FetchError.ofCode(error.code()));
    }
    assertEquals(FetchError.PROTOCOL, FetchError.ofCode(99));
    assertEquals(FetchError.PROTOCOL, FetchError.ofCode(0));
  }

  @Test
  void aListenerThatThrowsLosesNothingButItsOwn() throws Exception {
    CollectedBlocks fine = new CollectedBlocks(1);
    FetchHandle broken = begin(1, 2, new FetchListener() {
      @Override
      public void onBlocks(BlockBatch batch) {
        throw new IllegalArgumentException("listener");
      }

      @Override
      public void onError(int firstBlock, int blockCount, FetchException error) {
        throw new StackOverflowError("listener");
      }

      @Override
      public void onComplete() {
        throw new IllegalArgumentException("listener");
      }
    });
    begin(2, 1, fine);
    deliver(
        new RecordWriter().request(1).batch(10).slice(0, 0, 4).block(4).more().bytes(),
        new RecordWriter().request(1).firstBlock(1).error(1, 1, "").bytes(),
        new RecordWriter().request(2).batch(11).slice(0, 0, 4).block(4).bytes());
    assertTrue(broken.isDone());
    assertEquals(Collections.singletonList(10L), arena.released);
    fine.await().releaseAll();
  }

  @Test
  void blocksOfAFetchThatEndedGoStraightBack() {
    deliver(new RecordWriter().request(404).batch(10).slice(0, 0, 4).block(4).bytes());
    assertEquals(Collections.singletonList(10L), arena.released);
  }

  @Test
  void aRecordThatCannotBeDecodedFailsItsFetchOnly() throws Exception {
    CollectedBlocks one = new CollectedBlocks(1);
    CollectedBlocks two = new CollectedBlocks(1);
    begin(1, 1, one);
    begin(2, 1, two);
    deliver(
        new RecordWriter().request(1).batch(10).slice(0, 0, 4).block(5).bytes(),
        new RecordWriter().request(2).batch(11).slice(0, 0, 4).block(4).bytes());
    assertEquals(FetchError.PROTOCOL, one.await().errors.get(0).error());
    assertEquals(Collections.singletonList(10L), arena.released);
    two.await().releaseAll();
  }

  @Test
  void recordsWithWrongSizesAreRefused() {
    byte[] record = new RecordWriter().block(0).bytes();
    for (int size : new int[] {0, 7, 40, record.length - 8, record.length + 8, -8, Integer.MAX_VALUE}) {
      ByteBuffer bad = RecordWriter.direct(record);
      bad.putInt(0, size);
      assertThrows(IllegalStateException.class, () -> loop.deliverAll(bad, record.length), "size " + size);
    }
    ByteBuffer cut = RecordWriter.direct(record);
    assertThrows(IllegalStateException.class, () -> loop.deliverAll(cut, record.length - 8));
  }

  @Test
  void theEndOfAnEndpointEndsItsFetchesOnce() throws Exception {
    CollectedBlocks half = new CollectedBlocks(3);
    FetchHandle handle = begin(1, 3, half);
    deliver(new RecordWriter().request(1).block(0).more().bytes());
    CompletionLoop.abandonRest(requests, "over");
    half.await();
    assertEquals(FetchError.CLOSING, half.errors.get(0).error());
    assertEquals(1, half.errors.get(0).firstBlock());
    assertEquals(2, half.errors.get(0).blockCount());
    assertTrue(handle.isDone());
    deliver(new RecordWriter().request(1).firstBlock(1).batch(3).slice(0, 0, 1).block(1).block(0).bytes());
    assertEquals(Collections.singletonList(3L), arena.released);
    half.await();
    assertThrows(EndpointException.Closed.class, () -> begin(2, 1, half));
    assertFalse(half.errors.size() > 1);
  }
}
