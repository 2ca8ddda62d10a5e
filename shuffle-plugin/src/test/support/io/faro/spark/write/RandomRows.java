package io.faro.spark.write;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Random;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import scala.Product2;
import scala.Tuple2;

/** Random rows with their partitions: the same ones each time they are asked for. {@link #close} frees their memory. */
final class RandomRows implements AutoCloseable {
  private static final int POOL_BYTES = 1 << 20;
  private static final int LONGEST_BYTES = 400 << 10;

  /** Length of rows, and their maximum number. */
  enum Sizes {
    /** Rows without columns. */
    EMPTY(20_000),
    NARROW(40_000),
    MIXED(6_000),
    LONG(40);

    private final int max;

    Sizes(int max) {
      this.max = max;
    }

    /** Returns the length of one row, in bytes. */
    private int next(Random random) {
      switch (this) {
        case EMPTY:
          return 0;
        case NARROW:
          return 8 + 8 * random.nextInt(8);
        case LONG:
          return 8 * random.nextInt(LONGEST_BYTES / 8);
        default:
          return 8 * random.nextInt(random.nextInt(200) == 0 ? LONGEST_BYTES / 8 : 50);
      }
    }
  }

  /** Rows as a writer gets them: a row is valid until the next one. */
  interface Rows extends Iterator<Product2<Integer, UnsafeRow>> {}

  final int partitions;
  final Sizes sizes;
  final int count;
  private final long seed;
  private final double skew;
  /** The first half is random, the second is the same word again and again. */
  private final byte[] pool = new byte[POOL_BYTES];
  private final byte[] bytes = new byte[LONGEST_BYTES];
  private final long[] words = new long[LONGEST_BYTES / 8];
  private final long outside = Platform.allocateMemory(LONGEST_BYTES);

  RandomRows(Random random, int partitions, Sizes sizes) {
    this(random, partitions, sizes, random.nextInt(sizes.max));
  }

  RandomRows(Random random, int partitions, Sizes sizes, int count) {
    this.partitions = partitions;
    this.sizes = sizes;
    this.count = count;
    seed = random.nextLong();
    skew = random.nextBoolean() ? 1 : 6 * random.nextDouble();
    random.nextBytes(pool);
    for (int i = POOL_BYTES / 2; i < POOL_BYTES; i++) {
      pool[i] = pool[i % 8];
    }
  }

  Rows rows() {
    Random random = new Random(seed);
    return new Rows() {
      private int done;

      @Override
      public boolean hasNext() {
        return done < count;
      }

      @Override
      public Product2<Integer, UnsafeRow> next() {
        if (done == count) {
          throw new NoSuchElementException();
        }
        int partition = (int) (partitions * Math.pow(random.nextDouble(), skew));
        return new Tuple2<>(partition, row(random, done++));
      }
    };
  }

  /** A row in an array of bytes or of longs, or outside the heap. */
  private UnsafeRow row(Random random, int number) {
    int size = sizes.next(random);
    Object base = null;
    long offset = outside;
    switch (random.nextInt(3)) {
      case 0:
        base = bytes;
        offset = Platform.BYTE_ARRAY_OFFSET;
        break;
      case 1:
        base = words;
        offset = Platform.LONG_ARRAY_OFFSET;
        break;
      default:
    }
    offset += 8 * random.nextInt((LONGEST_BYTES - size) / 8);
    int from = random.nextInt(POOL_BYTES - size);
    Platform.copyMemory(pool, Platform.BYTE_ARRAY_OFFSET + from, base, offset, size);
    if (size > 0) {
      Platform.putLong(base, offset, number);
    }
    UnsafeRow row = new UnsafeRow(1);
    row.pointTo(base, offset, size);
    return row;
  }

  @Override
  public void close() {
    Platform.freeMemory(outside);
  }

  @Override
  public String toString() {
    return count + " rows (" + sizes + ", skew " + skew + ") for " + partitions + " partitions";
  }
}
