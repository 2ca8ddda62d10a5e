package io.faro.spark.read.groups;

import io.faro.Nullable;
import java.io.IOException;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ends a reader once: when its last record was read, or with its task. Afterwards it holds nothing, because a task
 * keeps its listeners, and may have thousands of readers, one after the other ({@code coalesce} after a shuffle).
 */
public final class ReaderEnd implements TaskCompletionListener {
  private static final Logger LOG = LoggerFactory.getLogger(ReaderEnd.class);

  /** Records that can be closed from any thread. */
  public interface Records {
    void close() throws IOException;
  }

  /** Null if they are not there yet, or have ended. Guarded by this. */
  @Nullable private Records records;
  private GroupFetch client;
  private boolean ended;

  synchronized void begin(Records of) {
    records = of;
  }

  /** {@code from}: what is asked for blocks from now on; what was asked before has answered. */
  synchronized void fetches(GroupFetch from) {
    if (ended) {
      from.close();
    } else {
      client = from;
    }
  }

  /** From any thread. */
  public void run() {
    Records of;
    GroupFetch from;
    synchronized (this) {
      ended = true;
      of = records;
      from = client;
      records = null;
      client = null;
    }
    try {
      if (of != null) {
        of.close();
      }
    } catch (IOException e) {
      LOG.warn("Faro: a block of an ended task cannot be closed", e);
    } finally {
      if (from != null) {
        from.close();
      }
    }
  }

  @Override
  public void onTaskCompletion(TaskContext context) {
    run();
  }
}
