package io.faro.spark.sort;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.Period;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A table of random columns and rows, and a random order of it. The last column, id, is different in each row. */
final class RandomTable {
  private static final DataType[] TYPES = {
    DataTypes.BooleanType, DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType,
    DataTypes.FloatType, DataTypes.DoubleType, DataTypes.DateType, DataTypes.TimestampType, DataTypes.StringType,
    DataTypes.BinaryType, DataTypes.createDecimalType(12, 2), DataTypes.createDecimalType(38, 3),
    DataTypes.createDayTimeIntervalType(), DataTypes.createYearMonthIntervalType(), DataTypes.TimestampNTZType,
    DataTypes.createArrayType(DataTypes.IntegerType)};
  private static final double[] DOUBLES = {0.0, -0.0, Double.NaN, Double.NEGATIVE_INFINITY, -1.5, 1e300};

  final StructType schema;
  final List<Row> rows;
  /** Texts of {@code ORDER BY}. */
  final List<String> order;
  private final Random random;

  /** The order ends with the column id: Spark's sort does not keep the order of equal rows where there are nulls. */
  RandomTable(Random random, int count) {
    this.random = random;
    int columns = 1 + random.nextInt(5);
    List<StructField> fields = new ArrayList<>();
    List<Integer> shapes = new ArrayList<>();
    for (int i = 0; i < columns; i++) {
      fields.add(DataTypes.createStructField("c" + i, TYPES[random.nextInt(TYPES.length)], true));
      shapes.add(random.nextInt(1 << 16));
    }
    fields.add(DataTypes.createStructField("id", DataTypes.IntegerType, false));
    schema = DataTypes.createStructType(fields);
    rows = new ArrayList<>();
    for (int row = 0; row < count; row++) {
      Object[] values = new Object[columns + 1];
      for (int i = 0; i < columns; i++) {
        values[i] = shapes.get(i) % 4 == 0 && random.nextInt(5) == 0
            ? null : value(fields.get(i).dataType(), shapes.get(i) % 3 == 0);
      }
      values[columns] = row;
      rows.add(RowFactory.create(values));
    }
    List<Integer> ordered = new ArrayList<>();
    for (int i = 0; i < columns; i++) {
      ordered.add(i);
    }
    java.util.Collections.shuffle(ordered, random);
    order = ordered.subList(0, 1 + random.nextInt(columns)).stream().map(this::direction)
        .collect(Collectors.toCollection(ArrayList::new));
    order.add("id" + (random.nextBoolean() ? " desc" : ""));
  }

  private String direction(int column) {
    String[] directions = {"", " desc", " nulls last", " desc nulls first"};
    String expression = random.nextInt(8) == 0 ? "hash(c" + column + ")" : "c" + column;
    return expression + directions[random.nextInt(directions.length)];
  }

  private Object value(DataType type, boolean few) {
    long bits = few ? random.nextInt(6) - 2 : random.nextLong();
    if (type.equals(DataTypes.BooleanType)) {
      return bits % 2 == 0;
    } else if (type.equals(DataTypes.ByteType)) {
      return (byte) bits;
    } else if (type.equals(DataTypes.ShortType)) {
      return (short) bits;
    } else if (type.equals(DataTypes.IntegerType)) {
      return (int) bits;
    } else if (type.equals(DataTypes.LongType)) {
      return bits;
    } else if (type.equals(DataTypes.FloatType)) {
      return few ? (float) DOUBLES[(int) bits + 2] : Float.intBitsToFloat((int) bits);
    } else if (type.equals(DataTypes.DoubleType)) {
      return few ? DOUBLES[(int) bits + 2] : Double.longBitsToDouble(bits);
    } else if (type.equals(DataTypes.DateType)) {
      return LocalDate.ofEpochDay(few ? bits : bits % 40_000);
    } else if (type.equals(DataTypes.TimestampType)) {
      return Instant.ofEpochMilli(bits % 4_000_000_000_000L);
    } else if (type.equals(DataTypes.TimestampNTZType)) {
      return LocalDateTime.ofEpochSecond(bits % 4_000_000_000L, 0, ZoneOffset.UTC);
    } else if (type.equals(DataTypes.StringType)) {
      return text(few, bits);
    } else if (type.equals(DataTypes.BinaryType)) {
      byte[] bytes = new byte[random.nextInt(few ? 3 : 90)];
      random.nextBytes(bytes);
      return bytes;
    } else if (type instanceof DecimalType) {
      DecimalType decimal = (DecimalType) type;
      BigInteger number = new BigInteger(few ? 3 : 1 + random.nextInt(decimal.precision() > 18 ? 120 : 39), random);
      return new BigDecimal(random.nextBoolean() ? number : number.negate(), decimal.scale());
    } else if (type.typeName().startsWith("interval day")) {
      return Duration.ofSeconds(bits % 1_000_000_000);
    } else if (type.typeName().startsWith("interval year")) {
      return Period.ofMonths((int) (bits % 100_000));
    }
    return Arrays.asList((int) bits % 3, random.nextInt(2));
  }

  private String text(boolean few, long bits) {
    if (few) {
      return new String[] {"", "a", "a\0", "ab", "b", "\u00e4"}[(int) bits + 2];
    }
    StringBuilder text = new StringBuilder(random.nextInt(3) == 0 ? "https://example.org/a-long-start/" : "");
    for (int i = random.nextInt(30); i > 0; i--) {
      text.append((char) (random.nextInt(20) == 0 ? 0x20ac : 'a' + random.nextInt(26)));
    }
    return text.toString();
  }

  @Override
  public String toString() {
    return rows.size() + " rows of " + schema.simpleString() + " by " + order;
  }
}
