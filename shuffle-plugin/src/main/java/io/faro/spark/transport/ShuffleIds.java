package io.faro.spark.transport;

import io.faro.Nullable;
import io.faro.spark.read.places.Parts;
import java.util.Arrays;

/**
 * The blocks of one request, parsed from Spark's names: {@code shuffle_<s>_<m>_<r>} and {@code
 * shuffle_<s>_<m>_<r0>_<r1>}, both kinds in any mix. Parsed into four arrays, because Spark's parser (a regular
 * expression and an object per id) takes as long as the transfer of a small block. A request with any other name goes
 * to Spark's own fetch as a whole.
 */
public final class ShuffleIds {
  private static final String PREFIX = "shuffle_";

  private final int[] shuffles;
  private final long[] maps;
  private final int[] starts;
  private final int[] ends;
  /** Null until they are asked for. */
  @Nullable private final String[] names;
  /** Piece of each block; 0: the whole. */
  private int piece;

  private ShuffleIds(int count, String[] names) {
    this.names = names;
    shuffles = new int[count];
    maps = new long[count];
    starts = new int[count];
    ends = new int[count];
  }

  /** Null if there is a name that is not a shuffle block's, or there is no name at all. */
  @Nullable public static ShuffleIds parse(String[] names) {
    if (names.length == 0) {
      return null;
    }
    ShuffleIds ids = new ShuffleIds(names.length, names);
    for (int i = 0; i < names.length; i++) {
      if (names[i] == null || !ids.parseOne(names[i], i)) {
        return null;
      }
    }
    return ids;
  }

  /** {@code count} of the parts from position {@code first} on. */
  public static ShuffleIds of(Parts parts, int first, int count) {
    ShuffleIds ids = new ShuffleIds(count, null);
    for (int i = 0; i < count; i++) {
      ids.shuffles[i] = parts.shuffle;
      ids.maps[i] = parts.map(first + i);
      ids.starts[i] = parts.start(first + i);
      ids.ends[i] = parts.end(first + i);
    }
    return ids;
  }

  /** One piece of block {@code i}; the first one is 1. */
  public ShuffleIds piece(int i, int piece) {
    ShuffleIds one = new ShuffleIds(1, new String[] {name(i)});
    one.shuffles[0] = shuffles[i];
    one.maps[0] = maps[i];
    one.starts[0] = starts[i];
    one.ends[0] = ends[i];
    one.piece = piece;
    return one;
  }

  /** The blocks at these places, as they are here. */
  public ShuffleIds subset(int[] places) {
    ShuffleIds some = new ShuffleIds(places.length, names == null ? null : new String[places.length]);
    for (int i = 0; i < places.length; i++) {
      int from = places[i];
      some.shuffles[i] = shuffles[from];
      some.maps[i] = maps[from];
      some.starts[i] = starts[from];
      some.ends[i] = ends[from];
      if (names != null) {
        some.names[i] = names[from];
      }
    }
    some.piece = piece;
    return some;
  }

  public int[] all() {
    int[] places = new int[count()];
    Arrays.setAll(places, i -> i);
    return places;
  }

  /** Spark's names of the blocks at these places. */
  public String[] names(int[] places) {
    String[] some = new String[places.length];
    Arrays.setAll(some, i -> name(places[i]));
    return some;
  }

  public int count() {
    return shuffles.length;
  }

  public String name(int i) {
    if (names != null) {
      return names[i];
    }
    String first = PREFIX + shuffles[i] + "_" + maps[i] + "_" + starts[i];
    return ends[i] == starts[i] + 1 ? first : first + "_" + ends[i];
  }

  public int shuffle(int i) {
    return shuffles[i];
  }

  public long map(int i) {
    return maps[i];
  }

  public int start(int i) {
    return starts[i];
  }

  /** Exclusive. */
  public int end(int i) {
    return ends[i];
  }

  /** 0: the whole block; else the piece wanted of it. */
  public int piece() {
    return piece;
  }

  private boolean parseOne(String name, int i) {
    if (!name.startsWith(PREFIX)) {
      return false;
    }
    int field = 0;
    long value = -1;
    for (int at = PREFIX.length(); at <= name.length(); at++) {
      char c = at == name.length() ? '_' : name.charAt(at);
      if (c == '_') {
        if (value < 0 || !store(i, field++, value)) {
          return false;
        }
        value = -1;
      } else if (c >= '0' && c <= '9') {
        int digit = c - '0';
        // Neither a leading zero (Spark writes none, and would not find the id again) nor an overflow.
        if (value == 0 || value > (Long.MAX_VALUE - digit) / 10) {
          return false;
        }
        value = value < 0 ? digit : value * 10 + digit;
      } else {
        return false;
      }
    }
    if (field == 3) {
      // One past the largest reduce partition would not fit.
      ends[i] = starts[i] + 1;
      return ends[i] > 0;
    }
    return field == 4 && starts[i] < ends[i];
  }

  private boolean store(int i, int field, long value) {
    if (field == 1) {
      maps[i] = value;
      return true;
    }
    if (value > Integer.MAX_VALUE) {
      return false;
    }
    switch (field) {
      case 0:
        shuffles[i] = (int) value;
        return true;
      case 2:
        starts[i] = (int) value;
        return true;
      case 3:
        ends[i] = (int) value;
        return true;
      default:
        return false;
    }
  }
}
