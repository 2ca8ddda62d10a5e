package io.faro;

/** Consecutive blocks of one request that have arrived; valid during the call of {@link FetchListener#onBlocks}. */
public interface BlockBatch {
  long request();

  /** Returns the position of the first block in the request. */
  int firstBlock();

  int count();

  Fabric fabric();

  /**
   * Returns whether at least half of the arena was in use when these blocks arrived. Blocks that are not used at once
   * should then be copied and released, because other requests may wait for their memory.
   */
  boolean scarce();

  BlockStatus status(int index);

  /** Returns the exact length of a block in bytes; 0 unless its status is OK. */
  long length(int index);

  /**
   * Returns the bytes of a block with status OK, with one reference, which the caller must release. They may outlive
   * the batch. Throws {@link IllegalStateException} for a block with another status, and if the batch was released.
   */
  BlockBytes take(int index);
}
