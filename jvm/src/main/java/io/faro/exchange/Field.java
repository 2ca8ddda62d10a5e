package io.faro.exchange;

/**
 * The finite field of q elements, the same as native/exchange/src/field.rs: base-p digits are coefficients; the modulus
 * is x^k + c(x) with the smallest c for which x runs through all nonzero elements.
 */
final class Field {
  private final int order;
  private final int characteristic;
  /** x^i for i below order - 1. */
  private final int[] exp;
  /** Inverse of exp; the entry of 0 is never read. */
  private final int[] log;

  Field(int order) {
    this.order = order;
    this.characteristic = primeOf(order);
    if (characteristic == 0) {
      throw new IllegalArgumentException(order + " is not a prime power, so there is no such field");
    }
    this.exp = powers();
    this.log = new int[order];
    for (int i = 0; i < exp.length; i++) {
      log[exp[i]] = i;
    }
  }

  /** The smallest prime power that is at least {@code n}. */
  static int primePowerFrom(int n) {
    int q = Math.max(n, 2);
    while (primeOf(q) == 0) {
      q++;
    }
    return q;
  }

  int order() {
    return order;
  }

  int[] elements() {
    return exp.clone();
  }

  int add(int a, int b) {
    return digits(a, b, 1);
  }

  int subtract(int a, int b) {
    return digits(a, b, characteristic - 1);
  }

  int multiply(int a, int b) {
    return a == 0 || b == 0 ? 0 : exp[(log[a] + log[b]) % (order - 1)];
  }

  /** a / b for a b that is not zero. */
  int divide(int a, int b) {
    return a == 0 ? 0 : exp[(log[a] + order - 1 - log[b]) % (order - 1)];
  }

  /** The prime p when q = p^k, otherwise 0. */
  private static int primeOf(int q) {
    if (q < 2) {
      return 0;
    }
    int p = 2;
    while (q % p != 0) {
      p++;
    }
    int rest = q;
    while (rest % p == 0) {
      rest /= p;
    }
    return rest == 1 ? p : 0;
  }

  private int[] powers() {
    int topDigit = order / characteristic;
    for (int c = 1; c < order; c++) {
      int[] powers = new int[order - 1];
      int e = 1;
      int count = 0;
      do {
        powers[count++] = e;
        int top = e / topDigit;
        e = digits((e % topDigit) * characteristic, c, characteristic - top);
      } while (e > 1 && count < order - 1);
      if (e == 1 && count == order - 1) {
        return powers;
      }
    }
    throw new IllegalStateException("every finite field has a primitive element, order " + order + " too");
  }

  /** a + factor * b, digit by digit. */
  private int digits(int a, int b, int factor) {
    int sum = 0;
    for (int place = 1; a > 0 || b > 0; place *= characteristic) {
      sum += (a % characteristic + factor * (b % characteristic)) % characteristic * place;
      a /= characteristic;
      b /= characteristic;
    }
    return sum;
  }
}
