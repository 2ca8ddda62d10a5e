package io.faro.spark;

import io.faro.Nullable;
import io.faro.spark.conf.ChannelSecurity;
import io.faro.spark.conf.FaroKeys;
import io.faro.spark.conf.Key;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.internal.SQLConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * {@code spark.faro.enabled} for one session, query or job: the driver decides when a shuffle is registered. Spark does
 * that on the thread that runs the query, or on one to which it has copied that thread's session and local properties;
 * in a job of RDDs on the thread that calls the action. Spark SQL makes a session's settings local properties while it
 * executes a query, so they come first. The active session is asked for what runs outside of an execution, such as
 * {@code Dataset.rdd}.
 */
final class SessionToggle {
  private static final Logger LOG = LoggerFactory.getLogger(SessionToggle.class);

  private final boolean application;
  /** No shuffle may be left to Spark. */
  private final boolean forbidden;
  private final AtomicBoolean warned = new AtomicBoolean();

  /** {@code application}: what the application was submitted with. */
  SessionToggle(boolean application, boolean forbidden) {
    this.application = application;
    this.forbidden = forbidden;
  }

  /**
   * Returns whether the shuffle that this thread registers is Spark's alone. Throws for a value that is not allowed.
   */
  boolean leaves(int shuffleId) {
    String text = ofThread();
    boolean wanted = text == null ? application : FaroKeys.ENABLED.parse(text);
    if (wanted && !application) {
      if (warned.compareAndSet(false, true)) {
        LOG.warn("{}=true has no effect in an application that was submitted with false: no executor has Faro",
            FaroKeys.ENABLED.name);
      }
      return false;
    }
    if (!wanted && forbidden) {
      throw Key.refused(FaroKeys.ENABLED.name, "false", "true, because " + ChannelSecurity.FORBIDDEN, null);
    }
    if (!wanted && application) {
      LOG.info("Shuffle {} is Spark's alone: {}=false here", shuffleId, FaroKeys.ENABLED.name);
      return true;
    }
    return false;
  }

  /**
   * Returns whether Spark's client fetches all that the task of this thread reads. Behind another manager Faro learns
   * of no registration; the job's local properties are there in its tasks.
   */
  static boolean leavesTask(int shuffleId) {
    TaskContext task = TaskContext.get();
    String text = task == null ? null : task.getLocalProperty(FaroKeys.ENABLED.name);
    return text != null && !FaroKeys.ENABLED.parse(text);
  }

  /** The value for this thread; null if none is set. */
  @Nullable private static String ofThread() {
    Option<SparkContext> context = SparkContext$.MODULE$.getActive();
    String local = context.isEmpty() ? null : context.get().getLocalProperty(FaroKeys.ENABLED.name);
    return local == null ? ofSession() : local;
  }

  private static String ofSession() {
    try {
      return Session.value(FaroKeys.ENABLED.name);
    } catch (LinkageError e) {
      LOG.debug("This Spark has no SQL, or another one", e);
      return null;
    }
  }

  /** A class apart, so that nothing of Spark SQL is needed to load the other. */
  private static final class Session {
    static String value(String key) {
      return SQLConf.get().getConfString(key, null);
    }
  }
}
