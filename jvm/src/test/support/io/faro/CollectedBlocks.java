package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** A listener that keeps all results, and checks that every block is reported exactly once. */
class CollectedBlocks implements FetchListener {

  final BlockBytes[] blocks;
  final BlockStatus[] statuses;
  final List<FetchException> errors = new ArrayList<>();
  final List<Fabric> fabrics = new ArrayList<>();
  private final CountDownLatch complete = new CountDownLatch(1);
  private int reported;
  /** The first violation. Errors that a listener throws would only be logged. */
  private AssertionError broken;

  CollectedBlocks(int count) {
    blocks = new BlockBytes[count];
    statuses = new BlockStatus[count];
  }

  @Override
  public synchronized void onBlocks(BlockBatch batch) {
    check(() -> assertEquals(reported, batch.firstBlock(), "blocks come in order"));
    for (int i = 0; i < batch.count(); i++) {
      statuses[reported] = batch.status(i);
      if (statuses[reported] == BlockStatus.OK) {
        blocks[reported] = batch.take(i);
      }
      reported++;
    }
    fabrics.add(batch.fabric());
  }

  @Override
  public synchronized void onError(int firstBlock, int blockCount, FetchException error) {
    check(() -> assertEquals(reported, firstBlock, "blocks come in order"));
    reported += blockCount;
    errors.add(error);
  }

  @Override
  public synchronized void onComplete() {
    check(() -> assertEquals(blocks.length, reported, "every block is reported"));
    check(() -> assertNotEquals(0, complete.getCount(), "completed twice"));
    complete.countDown();
  }

  private void check(Runnable assertion) {
    try {
      assertion.run();
    } catch (AssertionError e) {
      broken = broken == null ? e : broken;
    }
  }

  CollectedBlocks await() throws InterruptedException {
    complete.await();
    synchronized (this) {
      if (broken != null) {
        throw broken;
      }
    }
    return this;
  }

  /** Returns the bytes of a block that was delivered. */
  byte[] bytes(int index) throws IOException {
    return readAll(blocks[index].inputStream());
  }

  void releaseAll() {
    for (BlockBytes block : blocks) {
      if (block != null) {
        block.release();
      }
    }
  }

  static byte[] readAll(InputStream in) throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    byte[] part = new byte[8_192];
    for (int read = in.read(part, 0, part.length); read >= 0; read = in.read(part, 0, part.length)) {
      all.write(part, 0, read);
    }
    return all.toByteArray();
  }
}
