package io.faro.exchange;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The affine plane behind a grouped schedule: the same as native/exchange/src/plane.rs, which explains it. */
final class Plane {
  private static final int EMPTY = -1;

  private final Field field;
  private final int columns;
  private final int rows;
  /** Direction of each round: a slope, or the field's order for vertical lines. */
  private final int[] directions;
  /** Inverse of directions. */
  private final int[] rounds;
  /** Member at x * rows + y, or EMPTY. */
  private final int[] points;
  /** Inverse of points: x * rows + y of each member. */
  private final int[] places;

  Plane(List<Member> members, SplitMix64 random) {
    int root = root(members.size());
    field = new Field(Field.primePowerFrom(root * root == members.size() ? root : root + 1));
    rows = Math.min(field.order(), root + 2);
    columns = (members.size() + rows - 1) / rows;
    directions = new int[field.order() + 1];
    Arrays.setAll(directions, i -> i);
    random.shuffle(directions);
    rounds = new int[directions.length];
    for (int round = 0; round < directions.length; round++) {
      rounds[directions[round]] = round;
    }
    List<List<Integer>> placed = Placement.columns(members, columns, rows, random);
    random.shuffle(placed);
    points = new int[columns * rows];
    places = new int[members.size()];
    for (int x = 0; x < columns; x++) {
      int[] column = new int[rows];
      Arrays.fill(column, EMPTY);
      for (int y = 0; y < placed.get(x).size(); y++) {
        column[y] = placed.get(x).get(y);
      }
      random.shuffle(column);
      System.arraycopy(column, 0, points, x * rows, rows);
    }
    for (int at = 0; at < points.length; at++) {
      if (points[at] != EMPTY) {
        places[points[at]] = at;
      }
    }
  }

  static int root(int n) {
    int root = (int) Math.sqrt(n);
    while (root * root > n) {
      root--;
    }
    while ((root + 1) * (root + 1) <= n) {
      root++;
    }
    return root;
  }

  int rounds() {
    return directions.length;
  }

  int maxPeers() {
    return Math.max(rows, columns) - 1;
  }

  /** The members of {@code member}'s line in {@code round}, by ascending x, or y in a column. */
  List<Integer> group(int round, int member) {
    int x = places[member] / rows;
    int y = places[member] % rows;
    int direction = directions[round];
    List<Integer> group = new ArrayList<>();
    if (direction == field.order()) {
      for (int i = 0; i < rows; i++) {
        add(group, x, i);
      }
    } else {
      int b = field.subtract(y, field.multiply(direction, x));
      for (int i = 0; i < columns; i++) {
        add(group, i, field.add(field.multiply(direction, i), b));
      }
    }
    return group;
  }

  /** The round in which two different members meet. */
  int roundOf(int a, int b) {
    int run = field.subtract(places[b] / rows, places[a] / rows);
    int rise = field.subtract(places[b] % rows, places[a] % rows);
    return rounds[run == 0 ? field.order() : field.divide(rise, run)];
  }

  private void add(List<Integer> group, int x, int y) {
    if (y < rows && points[x * rows + y] != EMPTY) {
      group.add(points[x * rows + y]);
    }
  }
}
