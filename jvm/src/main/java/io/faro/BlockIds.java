package io.faro;

/** The blocks of one request, encoded as they cross to native code. Reusable; for one thread at a time. */
public final class BlockIds {
  /** Most blocks of one request. */
  public static final int MAX_BLOCKS = 32_768;

  public BlockIds() {}

  /** The calling thread's instance, cleared. */
  public static BlockIds local() {
    throw new UnsupportedOperationException();
  }

  public BlockIds clear() {
    throw new UnsupportedOperationException();
  }

  /** Appends Spark's {@code shuffle_<shuffleId>_<mapId>_<startReduce>_<endReduce>}; the end is exclusive. */
  public BlockIds add(int shuffleId, long mapId, int startReduce, int endReduce) {
    throw new UnsupportedOperationException();
  }

  public int count() {
    throw new UnsupportedOperationException();
  }
}
