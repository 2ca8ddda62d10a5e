package io.faro.exchange;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;

/**
 * Who reads from whom in which round: the same as native/exchange/src/schedule.rs, bit for bit; both are held to
 * native/exchange/tests/golden/exchange.txt. Members are numbers: positions in {@link #members()}. Immutable.
 */
public final class Schedule {
  /** Most members of one schedule. */
  public static final int MAX_MEMBERS = 65_536;

  /** Fewest members for which groups are made; below, {@link Policy#GROUPED} is a rotation. */
  public static final int MIN_PLANE = 4;

  /** How peers are ordered. */
  public enum Policy {
    GROUPED,
    ROTATED,
    RANDOM
  }

  private final List<Member> members;
  private final long epoch;
  /** Null for other policies. */
  private final Plane plane;
  /** Member on each place of the ring; null, as the next two, for other policies. */
  private final int[] ring;
  /** Place of each member; inverse of ring. */
  private final int[] placeOf;
  /** How far away the owner stands in each round. */
  private final int[] distances;

  /** {@code epoch} is unsigned. The order of {@code members} does not matter. */
  public Schedule(Collection<Member> members, long epoch, Policy policy) {
    if (members.isEmpty() || members.size() > MAX_MEMBERS) {
      throw new IllegalArgumentException(members.size() + " members; 1 to " + MAX_MEMBERS + " are allowed");
    }
    List<Member> sorted = new ArrayList<>(members);
    sorted.sort(Comparator.comparing(Member::id, Member.BY_BYTES));
    for (int i = 1; i < sorted.size(); i++) {
      if (sorted.get(i).id().equals(sorted.get(i - 1).id())) {
        throw new IllegalArgumentException("member \"" + sorted.get(i).id() + "\" is listed twice");
      }
    }
    this.members = Collections.unmodifiableList(sorted);
    this.epoch = epoch;
    int n = sorted.size();
    SplitMix64 random = new SplitMix64(epoch);
    boolean grouped = policy == Policy.GROUPED && n >= MIN_PLANE;
    boolean rotated = !grouped && policy != Policy.RANDOM;
    plane = grouped ? new Plane(sorted, random) : null;
    ring = rotated ? shuffled(n, 0, random) : null;
    placeOf = rotated ? new int[n] : null;
    distances = rotated ? shuffled(n - 1, 1, random) : null;
    for (int place = 0; rotated && place < n; place++) {
      placeOf[ring[place]] = place;
    }
  }

  /** Sorted by the UTF-8 bytes of the id. */
  public List<Member> members() {
    return members;
  }

  public long epoch() {
    return epoch;
  }

  /** Rounds of one cycle. */
  public int rounds() {
    return plane != null ? plane.rounds() : members.size() - 1;
  }

  /** Peers of the largest group, or what it would have for other policies. */
  public int maxPeers() {
    int n = members.size();
    if (plane != null) {
      return plane.maxPeers();
    }
    if (n < MIN_PLANE) {
      return n - 1;
    }
    int root = Plane.root(n);
    int rows = Math.min(Field.primePowerFrom(root * root == n ? root : root + 1), root + 2);
    return Math.max(rows, (n + rows - 1) / rows) - 1;
  }

  /** Whom {@code member} reads from in {@code round}, in issue order. */
  public int[] sources(int round, int member) {
    if (plane != null) {
      List<Integer> group = plane.group(round, member);
      Collections.rotate(group, -group.indexOf(member));
      return group.stream().skip(1).mapToInt(Integer::intValue).toArray();
    }
    if (ring != null) {
      return new int[] {ring[(placeOf[member] + distances[round]) % ring.length]};
    }
    return new int[] {randomOrder(member)[round]};
  }

  /** The round in which {@code reader} reads from {@code owner}, another member. */
  public int roundOf(int reader, int owner) {
    if (reader == owner) {
      throw new IllegalArgumentException("member " + reader + " does not read from itself");
    }
    if (plane != null) {
      return plane.roundOf(reader, owner);
    }
    int[] order = distances;
    int wanted = owner;
    if (ring != null) {
      wanted = Math.floorMod(placeOf[owner] - placeOf[reader], ring.length);
    } else {
      order = randomOrder(reader);
    }
    int round = 0;
    while (order[round] != wanted) {
      round++;
    }
    return round;
  }

  private int[] randomOrder(int member) {
    int[] order = new int[members.size() - 1];
    Arrays.setAll(order, i -> i < member ? i : i + 1);
    SplitMix64.stream(epoch, member).shuffle(order);
    return order;
  }

  private static int[] shuffled(int count, int first, SplitMix64 random) {
    int[] items = new int[count];
    Arrays.setAll(items, i -> first + i);
    random.shuffle(items);
    return items;
  }
}
