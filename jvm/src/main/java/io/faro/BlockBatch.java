package io.faro;

/** A run of blocks of one request whose bytes lie in the arena. Valid during {@link FetchListener#onBlocks}. */
public final class BlockBatch {
  BlockBatch() {}

  /** Position of the first block in the request. */
  public int firstBlock() {
    throw new UnsupportedOperationException();
  }

  public int count() {
    throw new UnsupportedOperationException();
  }

  /** Which fabric carried the bytes. */
  public Fabric fabric() {
    throw new UnsupportedOperationException();
  }

  /** Status of a block; {@code index} counts from 0 in this batch. */
  public BlockStatus status(int index) {
    throw new UnsupportedOperationException();
  }

  /** Exact length of a block in bytes; 0 unless its status is OK. */
  public long length(int index) {
    throw new UnsupportedOperationException();
  }

  /**
   * The bytes of a block with status OK, with a reference that the caller owns and must release. They
   * outlive the batch's own validity.
   */
  public BlockBytes take(int index) {
    throw new UnsupportedOperationException();
  }
}
