package io.faro;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A fetch in flight, with its listener. The listener is called by the completions thread and by the thread that closes
 * the endpoint; this object's monitor serialises these calls. The last call is the first {@code onComplete}.
 */
public final class FetchHandle {
  private static final Logger LOG = LoggerFactory.getLogger(FetchHandle.class);

  private final Endpoint endpoint;
  private final long peer;
  private final int blocks;
  private final FetchListener listener;
  private volatile long request;
  private volatile boolean done;
  /** Number of blocks that were reported, from the first on. Guarded by this. */
  private int reported;

  FetchHandle(Endpoint endpoint, long peer, int blocks, FetchListener listener) {
    this.endpoint = endpoint;
    this.peer = peer;
    this.blocks = blocks;
    this.listener = listener;
  }

  void begun(long number) {
    request = number;
  }

  /** Returns the number of the request, as in logs and errors. */
  public long request() {
    return request;
  }

  /** Returns the peer's handle, as returned by {@link Endpoint#addPeer}. */
  public long peer() {
    return peer;
  }

  /** Cancels the fetch: blocks not yet reported fail with {@link FetchError#CANCELLED}. Idempotent. */
  public void cancel() {
    if (!done) {
      endpoint.cancel(request);
    }
  }

  /** Returns whether {@link FetchListener#onComplete} was called or is about to be called. */
  public boolean isDone() {
    return done;
  }

  /** Takes over the delivery's hold of the batch. */
  synchronized void blocks(ArenaBatch batch) {
    try {
      if (!done) {
        reported = batch.firstBlock() + batch.count();
        listener.onBlocks(batch);
      }
    } catch (Throwable t) {
      threw("onBlocks", t);
    } finally {
      batch.releaseHold();
    }
  }

  synchronized void failed(FetchError why, int firstBlock, int count, String detail) {
    if (done) {
      return;
    }
    reported = Math.max(reported, firstBlock + count);
    FetchException error = new FetchException(why, peer, request, firstBlock, count, detail);
    try {
      listener.onError(firstBlock, count, error);
    } catch (Throwable t) {
      threw("onError", t);
    }
  }

  synchronized void completed() {
    if (done) {
      return;
    }
    done = true;
    try {
      listener.onComplete();
    } catch (Throwable t) {
      threw("onComplete", t);
    }
  }

  /** Ends the fetch here: an error for all blocks not yet reported, then {@code onComplete}. */
  synchronized void abandon(FetchError why, String detail) {
    if (reported < blocks) {
      failed(why, reported, blocks - reported, detail);
    }
    completed();
  }

  private void threw(String method, Throwable t) {
    LOG.error("{}.{} threw, request {}", listener.getClass().getName(), method, request, t);
  }
}
