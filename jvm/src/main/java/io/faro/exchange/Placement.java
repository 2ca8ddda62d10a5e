package io.faro.exchange;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Members into columns of the plane, hosts and racks together where they fit: the same as
 * native/exchange/src/placement.rs, which explains the rule.
 */
final class Placement {
  private final List<List<Integer>> columns = new ArrayList<>();
  private final int capacity;

  private Placement(int count, int capacity) {
    this.capacity = capacity;
    for (int i = 0; i < count; i++) {
      columns.add(new ArrayList<>());
    }
  }

  /** Member numbers of each column; {@code members} are sorted by id. */
  static List<List<Integer>> columns(List<Member> members, int count, int capacity, SplitMix64 random) {
    Placement placement = new Placement(count, capacity);
    List<List<Integer>> open = new ArrayList<>();
    for (List<List<Integer>> rack : racks(members, random)) {
      List<Integer> whole = new ArrayList<>();
      rack.forEach(whole::addAll);
      if (!placement.firstFit(whole)) {
        open.addAll(rack);
      }
    }
    open.sort(Comparator.comparingInt(host -> -host.size()));
    List<List<Integer>> split = new ArrayList<>();
    for (List<Integer> host : open) {
      if (!placement.firstFit(host)) {
        split.add(host);
      }
    }
    split.forEach(placement::spread);
    return placement.columns;
  }

  private boolean firstFit(List<Integer> unit) {
    for (List<Integer> column : columns) {
      if (column.size() + unit.size() <= capacity) {
        return column.addAll(unit);
      }
    }
    return false;
  }

  private void spread(List<Integer> unit) {
    for (int placed = 0; placed < unit.size(); ) {
      List<Integer> emptiest = columns.get(0);
      for (List<Integer> column : columns) {
        if (column.size() < emptiest.size()) {
          emptiest = column;
        }
      }
      int piece = Math.min(unit.size() - placed, capacity - emptiest.size());
      emptiest.addAll(unit.subList(placed, placed + piece));
      placed += piece;
    }
  }

  private static List<List<List<Integer>>> racks(List<Member> members, SplitMix64 random) {
    List<Integer> order = new ArrayList<>();
    for (int i = 0; i < members.size(); i++) {
      order.add(i);
    }
    order.sort(
        Comparator.<Integer, String>comparing(i -> members.get(i).rack(), Member.BY_BYTES)
            .thenComparing(i -> members.get(i).host(), Member.BY_BYTES));
    List<List<List<Integer>>> racks = new ArrayList<>();
    List<List<Integer>> rack = null;
    List<Integer> host = null;
    Member last = null;
    for (int i : order) {
      Member member = members.get(i);
      boolean sameRack = last != null && last.rack().equals(member.rack());
      if (!sameRack) {
        rack = new ArrayList<>();
        racks.add(rack);
      }
      if (!sameRack || !last.host().equals(member.host())) {
        host = new ArrayList<>();
        rack.add(host);
      }
      host.add(i);
      last = member;
    }
    random.shuffle(racks);
    racks.sort(Comparator.comparingInt(r -> -r.stream().mapToInt(List::size).sum()));
    for (List<List<Integer>> hosts : racks) {
      random.shuffle(hosts);
      hosts.sort(Comparator.comparingInt(h -> -h.size()));
    }
    return racks;
  }
}
