package io.faro.spark.transport;

import io.faro.BlockIds;
import io.faro.Nullable;

/**
 * Reads Spark's names of blocks: {@code shuffle_<s>_<m>_<r>} and {@code shuffle_<s>_<m>_<r0>_<r1>}, both kinds in any
 * mix. Spark's parser (a regular expression and an object per id) takes as long as the transfer of a small block. A
 * request with any other name goes to Spark's own fetch as a whole.
 */
public final class BlockNames {
  private static final String PREFIX = "shuffle_";

  private BlockNames() {}

  /** Null if there is a name that is not a shuffle block's, or there is no name at all. */
  @Nullable public static BlockIds parse(String[] names) {
    if (names.length == 0) {
      return null;
    }
    BlockIds ids = new BlockIds(names.length);
    long[] fields = new long[4];
    for (String name : names) {
      if (name == null || !parse(name, fields)) {
        return null;
      }
      ids.add((int) fields[0], fields[1], (int) fields[2], (int) fields[3]);
    }
    return ids;
  }

  private static boolean parse(String name, long[] fields) {
    if (!name.startsWith(PREFIX)) {
      return false;
    }
    int field = 0;
    long value = -1;
    for (int at = PREFIX.length(); at <= name.length(); at++) {
      char c = at == name.length() ? '_' : name.charAt(at);
      if (c == '_') {
        // All but the map id are Spark's Int.
        if (value < 0 || field == fields.length || field != 1 && value > Integer.MAX_VALUE) {
          return false;
        }
        fields[field++] = value;
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
      fields[3] = fields[2] + 1;
      return fields[3] <= Integer.MAX_VALUE;
    }
    return field == 4 && fields[2] < fields[3];
  }
}
