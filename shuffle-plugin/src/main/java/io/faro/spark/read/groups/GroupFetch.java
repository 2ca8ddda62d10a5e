package io.faro.spark.read.groups;

import io.faro.Nullable;
import io.faro.spark.metrics.Reason;
import io.faro.spark.read.places.Parts;
import io.faro.spark.read.places.ReadPlan.Group;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.BlockStoreClient;
import org.apache.spark.network.shuffle.DownloadFileManager;

/**
 * The block client of one reader: Spark's fetch iterator asks it for groups. It asks for their parts, and hands a group
 * over when all of them are there or have failed.
 */
public class GroupFetch extends BlockStoreClient {
  private final BlockStoreClient blocks;
  private final PartClient client;
  private final Map<String, Group> groups;
  private final boolean verified;
  private final Set<Arrivals> underWay = ConcurrentHashMap.newKeySet();
  private volatile boolean over;

  /**
   * {@code blocks}: for what is no group, and for requests that go to files; {@code verified}: parts have checksums
   * that their reader verifies.
   */
  GroupFetch(BlockStoreClient blocks, PartClient client, Map<String, Group> groups, boolean verified) {
    this.blocks = blocks;
    this.client = client;
    this.groups = groups;
    this.verified = verified;
  }

  @Override
  public void fetchBlocks(String host, int port, String executor, String[] ids, BlockFetchingListener listener,
      DownloadFileManager files) {
    List<String> others = new ArrayList<>();
    List<Group> wanted = new ArrayList<>();
    for (String id : ids) {
      Group group = groups.get(id);
      // A request for files has one block, which is a part of its own: groups are smaller.
      if (group == null || files != null && group.parts.count() == 1) {
        others.add(id);
      } else {
        wanted.add(group);
      }
    }
    // All blocks of a request have one address.
    Group any = groups.get(ids[0]);
    String at = any == null ? host : any.address.host();
    if (!others.isEmpty()) {
      blocks.fetchBlocks(at, port, executor, others.toArray(new String[0]), listener, files);
    }
    if (!wanted.isEmpty()) {
      Arrivals arrivals = new Arrivals(wanted, listener);
      underWay.add(arrivals);
      client.fetch(at, port, executor, arrivals.parts, arrivals);
      if (over) {
        arrivals.abandon();
      }
    }
  }

  /** The task is over: releases what arrived of groups that are not complete. */
  @Override
  public void close() {
    over = true;
    underWay.forEach(Arrivals::abandon);
  }

  /** The parts of one request of Spark's iterator. */
  private final class Arrivals implements BlockListener {
    final Parts parts;
    private final List<Group> wanted;
    private final BlockFetchingListener listener;
    /** The bytes that have arrived, by part of the request. Guarded by this. */
    private final ManagedBuffer[] arrived;
    /** Reasons of failures, by part of the request; null if none failed. Guarded by this. */
    @Nullable private Throwable[] causes;
    /** The places where each group's parts start, and, last, where they end. */
    private final int[] firsts;
    /** The number of parts of each group that are neither there nor failed. Guarded by this. */
    private final int[] missing;
    private final boolean[] settled;
    private int groupsLeft;
    private boolean abandoned;

    Arrivals(List<Group> wanted, BlockFetchingListener listener) {
      this.wanted = wanted;
      this.listener = listener;
      parts = new Parts(wanted.get(0).parts.shuffle);
      firsts = new int[wanted.size() + 1];
      missing = new int[wanted.size()];
      for (int g = 0; g < wanted.size(); g++) {
        Parts own = wanted.get(g).parts;
        for (int i = 0; i < own.count(); i++) {
          parts.add(own, i);
        }
        firsts[g + 1] = parts.count();
        missing[g] = own.count();
      }
      arrived = new ManagedBuffer[parts.count()];
      settled = new boolean[parts.count()];
      groupsLeft = wanted.size();
    }

    @Override
    public boolean verifies() {
      return verified;
    }

    @Override
    public void arrived(int part, ManagedBuffer bytes) {
      settle(part, bytes, null);
    }

    @Override
    public void left(int[] at, Reason reason, Throwable cause, boolean onTaskThread) {
      for (int part : at) {
        settle(part, null, cause);
      }
    }

    private void settle(int part, ManagedBuffer bytes, Throwable cause) {
      int group = groupOf(part);
      boolean complete;
      synchronized (this) {
        if (abandoned || settled[part]) {
          if (bytes != null) {
            bytes.release();
          }
          return;
        }
        settled[part] = true;
        arrived[part] = bytes;
        if (bytes == null) {
          causes = causes == null ? new Throwable[arrived.length] : causes;
          causes[part] = cause;
        }
        complete = --missing[group] == 0;
      }
      if (complete) {
        handOver(group);
      }
    }

    private int groupOf(int part) {
      int low = 0;
      int high = wanted.size() - 1;
      while (low < high) {
        int middle = (low + high + 1) >>> 1;
        if (firsts[middle] <= part) {
          low = middle;
        } else {
          high = middle - 1;
        }
      }
      return low;
    }

    private void handOver(int g) {
      Group group = wanted.get(g);
      int count = group.parts.count();
      ManagedBuffer[] bytes = new ManagedBuffer[count];
      Throwable[] problems = null;
      synchronized (this) {
        if (abandoned) {
          return;
        }
        System.arraycopy(arrived, firsts[g], bytes, 0, count);
        for (int i = 0; i < count; i++) {
          arrived[firsts[g] + i] = null;
          if (bytes[i] == null) {
            problems = problems == null ? new Throwable[count] : problems;
            problems[i] = causes[firsts[g] + i];
          }
        }
        if (--groupsLeft == 0) {
          underWay.remove(this);
        }
      }
      GroupBuffer buffer = new GroupBuffer(group, bytes, problems);
      try {
        Throwable alone = soleProblem(problems);
        if (alone != null) {
          listener.onBlockFetchFailure(group.id.name(), alone);
        } else {
          listener.onBlockFetchSuccess(group.id.name(), buffer);
        }
      } finally {
        // The iterator has a reference of its own, unless its task is over.
        buffer.release();
      }
    }

    /**
     * A failure that Spark's iterator handles itself: of a group that is one part, so that its id is right; and when
     * Netty is out of memory, after which the iterator asks again.
     */
    private Throwable soleProblem(Throwable[] problems) {
      if (problems == null) {
        return null;
      }
      for (Throwable problem : problems) {
        if (problem != null && (problems.length == 1 || problem instanceof OutOfMemoryError)) {
          return problem;
        }
      }
      return null;
    }

    synchronized void abandon() {
      abandoned = true;
      underWay.remove(this);
      for (int i = 0; i < arrived.length; i++) {
        if (arrived[i] != null) {
          arrived[i].release();
          arrived[i] = null;
        }
      }
    }
  }

  /**
   * The bytes of a group's parts. Some of them may have failed: Spark's iterator would report the failure of a block
   * that does not exist, so a group always arrives, and its reader reports the part.
   */
  public static final class GroupBuffer extends ManagedBuffer {
    final Group group;
    /** {@code null}: that part failed. */
    private final ManagedBuffer[] parts;
    /** Null if no part failed. */
    @Nullable private final Throwable[] causes;
    private final AtomicInteger references = new AtomicInteger(1);
    private final long size;

    /** Takes over the references of the parts. */
    public GroupBuffer(Group group, ManagedBuffer[] parts, Throwable[] causes) {
      this.group = group;
      this.parts = parts;
      this.causes = causes;
      long sum = 0;
      for (ManagedBuffer part : parts) {
        sum += part == null ? 0 : part.size();
      }
      size = sum;
    }

    /** Null if the part failed. */
    @Nullable ManagedBuffer part(int i) {
      return parts[i];
    }

    Throwable cause(int i) {
      return causes == null ? null : causes[i];
    }

    /** At least 1: Spark's iterator takes an empty block for a fault of its own kind. */
    @Override
    public long size() {
      return Math.max(1, size);
    }

    @Override
    public InputStream createInputStream() {
      return new GroupStream(this);
    }

    @Override
    public ManagedBuffer retain() {
      references.incrementAndGet();
      return this;
    }

    @Override
    public ManagedBuffer release() {
      if (references.decrementAndGet() == 0) {
        for (ManagedBuffer part : parts) {
          if (part != null) {
            part.release();
          }
        }
      }
      return this;
    }

    /** Spark's iterator calls none of these for a block that it reads. */
    @Override
    public ByteBuffer nioByteBuffer() {
      throw new UnsupportedOperationException("a group of blocks is decoded in place");
    }

    @Override
    public Object convertToNetty() {
      return nioByteBuffer();
    }

    /** Abstract in ManagedBuffer from Spark 4.0 on, absent before: hence no annotation. */
    public Object convertToNettyForSsl() {
      return convertToNetty();
    }

    /**
     * Spark's iterator hands it over as the stream of a group. It carries the buffer, which the reader decodes in
     * place; it is no stream of bytes.
     */
    static final class GroupStream extends InputStream {
      final GroupBuffer buffer;

      GroupStream(GroupBuffer buffer) {
        this.buffer = buffer;
      }

      @Override
      public int read() throws IOException {
        throw new IOException("a group of blocks is decoded in place");
      }
    }
  }
}
