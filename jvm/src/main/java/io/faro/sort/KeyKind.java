package io.faro.sort;

/** How a column's values are stored in a row; its order follows from that. */
public enum KeyKind {
  BOOLEAN,
  BYTE,
  SHORT,
  INT,
  LONG,
  FLOAT,
  DOUBLE,
  /** A decimal of more than 18 digits. */
  WIDE_DECIMAL,
  /** A string or binary, in the order of its bytes without sign. */
  BYTES
}
