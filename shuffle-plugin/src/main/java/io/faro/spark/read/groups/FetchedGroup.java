package io.faro.spark.read.groups;

import io.faro.Nullable;
import io.faro.spark.read.groups.GroupFetch.GroupBuffer;
import io.faro.spark.read.places.ReadPlan.Group;
import java.io.IOException;
import java.io.InputStream;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.FetchFailedException;

/**
 * A group of parts that Spark's iterator has fetched, in which {@link SecondFetch} may replace corrupt parts. Holds all
 * their bytes until it is closed. Thread-safe: the task's end may close it while another thread reads.
 */
public final class FetchedGroup {
  /** Looks at a part's bytes. */
  public interface Check<T> {
    T of(ManagedBuffer part) throws IOException;
  }

  public final Group group;
  private final GroupBuffer buffer;
  /** Closing it tells Spark's iterator that the group was read. */
  private final InputStream handle;
  private final SecondFetch secondFetch;
  private final PartFailure failure;
  /** The bytes of each part after the second fetch. Guarded by this. */
  private final ManagedBuffer[] replaced;
  private boolean closed;

  public FetchedGroup(GroupBuffer buffer, InputStream handle, SecondFetch secondFetch, PartFailure failure) {
    this.buffer = buffer;
    this.handle = handle;
    this.secondFetch = secondFetch;
    this.failure = failure;
    group = buffer.group;
    replaced = new ManagedBuffer[group.parts.count()];
  }

  public int count() {
    return replaced.length;
  }

  /** The bytes of part {@code i}; null if it did not arrive. */
  @Nullable public synchronized ManagedBuffer part(int i) {
    return replaced[i] == null ? buffer.part(i) : replaced[i];
  }

  /** Returns whether part {@code i} has bytes. No part of a group is empty. */
  public boolean hasBytes(int i) {
    ManagedBuffer part = part(i);
    return part != null && part.size() > 0;
  }

  /** Returns the failure with which the task ends because part {@code i} has no bytes. */
  public FetchFailedException withoutBytes(int i) {
    ManagedBuffer part = part(i);
    return part == null ? failure.failed(group.address, group.parts, i, "not fetched", buffer.cause(i))
        : failure.corrupt(group.address, group.parts, i, "no bytes arrived", part);
  }

  /** Looks at part {@code i} while it cannot be released. */
  public synchronized <T> T look(int i, Check<T> check) throws IOException {
    checkOpen();
    return check.of(part(i));
  }

  /** Replaces a part that is corrupt, or throws what ends the task. */
  public void corrupt(int i, String problem, boolean handedOut) throws FetchFailedException {
    boolean isReplaced;
    synchronized (this) {
      isReplaced = replaced[i] != null;
    }
    ManagedBuffer bytes = secondFetch.ofCorrupt(group, i, problem, part(i), isReplaced, handedOut);
    synchronized (this) {
      if (closed) {
        bytes.release();
      }
      checkOpen();
      replaced[i] = bytes;
    }
  }

  private void checkOpen() {
    if (closed) {
      throw new IllegalStateException("the task has ended");
    }
  }

  /** Idempotent. */
  public synchronized void close() throws IOException {
    if (!closed) {
      closed = true;
      for (ManagedBuffer part : replaced) {
        if (part != null) {
          part.release();
        }
      }
      handle.close();
    }
  }
}
