package io.faro;

/**
 * What becomes of a fetch. All calls of all fetches come on one thread ({@code faro-completions}), in order:
 * hand long work on. Every block of the request is reported exactly once, in {@link #onBlocks} or in
 * {@link #onError}; {@link #onComplete} is the last call, after errors too. Whatever a listener throws is
 * logged and disturbs nothing else.
 */
public interface FetchListener {
  /**
   * A run of blocks is there, each with its own status. The batch is valid during this call; what is to
   * outlive it is taken out with {@link BlockBatch#take}.
   */
  void onBlocks(BlockBatch batch);

  /** {@code blockCount} blocks from position {@code firstBlock} will not come. */
  void onError(int firstBlock, int blockCount, FetchException error);

  /** Nothing follows. */
  void onComplete();
}
