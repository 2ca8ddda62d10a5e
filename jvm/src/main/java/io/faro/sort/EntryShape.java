package io.faro.sort;

/**
 * How entries are made: one or two longs, the highest first, whose bits are a row's key, the number of its page and the
 * word of the page at which it begins. Page and word are in the last long. Immutable.
 */
public final class EntryShape {
  /** The longs of an entry. */
  public final int words;
  /** Rows whose entries have the same key have equal keys. */
  public final boolean isExact;
  private final int wordBits;
  private final int pageBits;

  /** {@code packed}: see {@link SortNative#plan}. */
  EntryShape(int packed) {
    words = packed & 0xff;
    wordBits = packed >> 8 & 0xff;
    pageBits = packed >> 16 & 0xff;
    isExact = packed >> 24 != 0;
  }

  /** Returns whether entries are sorted in one array. Otherwise a second one as large is needed. */
  public boolean isSortedInPlace() {
    return words > 1;
  }

  /** Returns the number of the page of an entry's row, by the entry's last long. */
  public int page(long last) {
    return (int) (last >>> wordBits & (1L << pageBits) - 1);
  }

  /** Returns at which byte of its page an entry's row begins, by the entry's last long. */
  public long offset(long last) {
    return (last & (1L << wordBits) - 1) * Long.BYTES;
  }

  /** Returns whether two entries have the same key as far as it is in their last longs. */
  public boolean agree(long last, long otherLast) {
    return (last ^ otherLast) >>> wordBits + pageBits == 0;
  }
}
