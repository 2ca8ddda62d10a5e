package io.faro.spark.read.places;

import io.faro.Nullable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockBatchId;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/**
 * Sources of a reader's parts: those of this host's executors come from files, those of others through Spark's fetch
 * iterator, small ones in groups. What the node service of this host lends goes before all other ways to it, because it
 * is there when the executor has ended.
 */
public final class ReadPlan {
  /** Smaller parts are grouped. */
  private static final long SMALL_BYTES = 64 << 10;
  private static final long MAX_GROUP_BYTES = 1 << 20;
  private static final int MAX_GROUP_PARTS = 4096;

  /** Limits of one group. */
  public static final class Limits {
    public final long bytes;
    public final int parts;

    /** {@code requestBytes}: what Spark's iterator requests at once; {@code blocks}: the limit of one address. */
    public Limits(long requestBytes, long memoryBytes, int blocks) {
      bytes = Math.max(1, Math.min(MAX_GROUP_BYTES, Math.min(requestBytes, memoryBytes)));
      parts = Math.max(1, Math.min(MAX_GROUP_PARTS, blocks));
    }
  }

  /** Place from which Spark's iterator would read a block. */
  enum Place {
    /** This executor's files. */
    OWN,
    /** Another executor's files on this host. */
    HOST,
    /** The fall-back storage. */
    SPARK,
    /** Another executor. */
    REMOTE,
    /** The same, except that Spark's iterator would look for its files on this host. */
    HIDDEN
  }

  /** Tells a block's place by its address. */
  interface Places {
    Place of(BlockManagerId address);

    /**
     * Returns for each of {@link Parts#maps(int, int)} whether the node service of this host lends it; null if it has
     * none of the executor's.
     */
    @Nullable default boolean[] lent(BlockManagerId address, Parts parts) {
      return null;
    }
  }

  public Parts own;
  /** By executor of this host. */
  public final Map<BlockManagerId, Parts> host = new LinkedHashMap<>();
  /** By executor whose outputs the node service of this host keeps, which lends their files. */
  public final Map<BlockManagerId, Parts> lent = new LinkedHashMap<>();
  /** By the name that Spark's iterator asks for. */
  public final Map<String, Group> groups = new HashMap<>();
  /** For Spark's iterator: {@code (address, [(block, size, map index)])}. */
  public final List<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> fetched = new ArrayList<>();
  private final Map<String, Tuple2<BlockManagerId, Parts>> streams = new HashMap<>();
  private final int shuffle;
  private final Limits limits;
  private int numbers;

  private ReadPlan(int shuffle, Limits limits) {
    this.shuffle = shuffle;
    this.limits = limits;
    own = new Parts(shuffle);
  }

  public static ReadPlan of(int shuffle, Map<BlockManagerId, Parts> blocks, Places places, Limits limits) {
    ReadPlan plan = new ReadPlan(shuffle, limits);
    blocks.forEach((address, parts) -> {
      Parts others = plan.addLent(address, parts, places.lent(address, parts));
      if (others.count() > 0) {
        plan.add(address, others, places.of(address));
      }
    });
    return plan;
  }

  /** Returns the parts that are not lent. {@code lent}: see {@link Places#lent}. */
  private Parts addLent(BlockManagerId address, Parts parts, boolean[] lent) {
    if (lent == null) {
      return parts;
    }
    Parts here = new Parts(shuffle);
    Parts others = new Parts(shuffle);
    int map = -1;
    for (int i = 0; i < parts.count(); i++) {
      map += i == 0 || parts.map(i) != parts.map(i - 1) ? 1 : 0;
      (lent[map] ? here : others).add(parts, i);
    }
    if (here.count() > 0) {
      this.lent.put(address, here);
    }
    return others;
  }

  private void add(BlockManagerId address, Parts parts, Place place) {
    switch (place) {
      case OWN:
        own = parts;
        break;
      case HOST:
        host.put(address, parts);
        break;
      case SPARK:
        addSparks(address, parts);
        break;
      case HIDDEN:
        addRemote(address, elsewhere(address), parts);
        break;
      default:
        addRemote(address, address, parts);
    }
  }

  /** The part of a block that Spark's iterator reads from a file, and where it is. */
  public Tuple2<BlockManagerId, Parts> stream(String name) {
    Tuple2<BlockManagerId, Parts> found = streams.get(name);
    if (found != null) {
      return found;
    }
    Group group = groups.get(name);
    return new Tuple2<>(group.address, group.parts);
  }

  private void addSparks(BlockManagerId address, Parts all) {
    List<Tuple3<BlockId, Object, Object>> rewritten = new ArrayList<>();
    for (int i = 0; i < all.count(); i++) {
      rewritten.add(new Tuple3<>(all.id(i), all.size(i), all.mapIndex(i)));
      streams.put(all.id(i).name(), new Tuple2<>(address, all.only(i)));
    }
    fetched.add(new Tuple2<>(address, JavaConverters.asScalaBuffer(rewritten)));
  }

  /**
   * The address with another name of its host, so that Spark's iterator fetches over the network. Nothing is sent to
   * this name: {@code GroupFetch} takes the group's. Spark insists on the brackets of an IPv6 address.
   */
  static BlockManagerId elsewhere(BlockManagerId address) {
    String host = address.host();
    String other = host.endsWith("]") ? host.substring(0, host.length() - 1) + "%]" : host + ".";
    return BlockManagerId.apply(address.executorId(), other, address.port(), address.topologyInfo());
  }

  /** {@code named}: the address that Spark's iterator gets. */
  private void addRemote(BlockManagerId address, BlockManagerId named, Parts all) {
    List<Tuple3<BlockId, Object, Object>> rewritten = new ArrayList<>();
    Parts small = new Parts(shuffle);
    for (int i = 0; i < all.count(); i++) {
      long size = all.size(i);
      if (size >= SMALL_BYTES || size >= limits.bytes) {
        close(address, all.only(i), rewritten);
        continue;
      }
      if (small.count() == limits.parts || small.count() > 0 && small.bytes() + size > limits.bytes) {
        close(address, small, rewritten);
        small = new Parts(shuffle);
      }
      small.add(all, i);
    }
    close(address, small, rewritten);
    fetched.add(new Tuple2<>(named, JavaConverters.asScalaBuffer(rewritten)));
  }

  private void close(BlockManagerId address, Parts parts, List<Tuple3<BlockId, Object, Object>> rewritten) {
    if (parts.count() > 0) {
      Group group = new Group(address, parts, numbers++);
      groups.put(group.id.name(), group);
      rewritten.add(new Tuple3<>(group.id, parts.bytes(), parts.mapIndex(0)));
    }
  }

  /**
   * Parts of one executor that Spark's fetch iterator sees as one block, so that its cost per block is paid once for
   * all. A group of one part has that part's id; others have the id of a batch of a map output that cannot exist.
   */
  public static final class Group {
    /** Map ids from here on are numbers of groups: Spark counts its tasks from 0. */
    private static final long FIRST_ID = 1L << 62;

    public final BlockManagerId address;
    public final Parts parts;
    public final BlockId id;

    public Group(BlockManagerId address, Parts parts, int number) {
      this.address = address;
      this.parts = parts;
      this.id = parts.count() == 1 ? parts.id(0)
          : new ShuffleBlockBatchId(parts.shuffle, FIRST_ID + number, parts.start(0), parts.start(0) + 1);
    }
  }
}
