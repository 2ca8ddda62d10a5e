package io.faro.spark.sort;

import org.apache.spark.unsafe.memory.MemoryBlock;

/** Goes from row to row of {@link PagedRows}. The caller counts them. */
abstract class RowCursor {
  /** Pages that were left are not needed any more. */
  final boolean frees;
  /** Where the row is: its page, and its head. */
  MemoryBlock page;
  Object base;
  long offset;
  /** The row's length without its head. */
  int bytes;

  RowCursor(boolean frees) {
    this.frees = frees;
  }

  abstract void next();

  /** Returns a cursor that goes on from this place. */
  abstract RowCursor copy();
}
