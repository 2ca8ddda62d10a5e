package io.faro;

/**
 * Receives the results of a fetch. One thread ({@code faro-completions-N}) makes all calls of a fetch, in order, and
 * those of other fetches, so long work belongs on another thread. Every block of the request is reported exactly once,
 * by {@link #onBlocks} or {@link #onError}; {@link #onComplete} is the last call, also after errors. Exceptions of a
 * listener are logged and have no other effect.
 */
public interface FetchListener {
  /**
   * Called when consecutive blocks have arrived, each with its own status. The batch is valid during this call; a block
   * that is {@linkplain BlockBatch#take taken} may outlive it.
   */
  void onBlocks(BlockBatch batch);

  /** Called when {@code blockCount} blocks from position {@code firstBlock} on have failed. */
  void onError(int firstBlock, int blockCount, FetchException error);

  /** Called once, after all other calls. */
  void onComplete();
}
