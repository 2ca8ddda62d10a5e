package io.faro.spark.collective;

import io.faro.collective.GroupedAllReduce;
import io.faro.collective.Mode;
import io.faro.collective.NanPolicy;
import io.faro.collective.Settings;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.Locale;
import java.util.NoSuchElementException;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.FlatMapFunction;

/**
 * Teams for PySpark. A Python worker has no gateway to its executor's JVM. So the JVM side of the task joins the team,
 * opens a port on the loopback interface for this task, and sends the worker port and token as the first record of its
 * input. docs/examples/sgd/faro_collective.py is the Python side.
 */
public final class PythonTeams {
  private PythonTeams() {}

  /**
   * The records of a PySpark RDD (batches, pickled) with one before them in each partition: a pickled list of one
   * tuple, {@code ("faro", port, token)}. For barrier stages only.
   */
  public static JavaRDD<byte[]> joinTeams(
      JavaRDD<byte[]> batches,
      String mode,
      int group,
      long seed,
      String nanPolicy,
      long timeoutMillis,
      boolean slowMembersApart) {
    // Checks the values on the driver. Settings is not serializable, so each task makes its own.
    settings(mode, group, seed, nanPolicy, timeoutMillis);
    FlatMapFunction<Iterator<byte[]>, byte[]> join =
        records ->
            new JoiningRecords(
                records,
                settings(mode, group, seed, nanPolicy, timeoutMillis).slowMembersApart(slowMembersApart));
    return batches.mapPartitions(join, true);
  }

  private static Settings settings(String mode, int group, long seed, String nanPolicy, long timeoutMillis) {
    return new Settings()
        .mode(Mode.valueOf(mode.toUpperCase(Locale.ROOT)))
        .group(group)
        .seed(seed)
        .nanPolicy(NanPolicy.valueOf(nanPolicy.toUpperCase(Locale.ROOT)))
        .timeoutMillis(timeoutMillis);
  }

  /** Joins in the task, when it reads its first record. */
  private static final class JoiningRecords implements Iterator<byte[]> {
    private final Iterator<byte[]> records;
    /** Null once the team is joined. */
    private Settings settings;

    JoiningRecords(Iterator<byte[]> records, Settings settings) {
      this.records = records;
      this.settings = settings;
    }

    @Override
    public boolean hasNext() {
      return settings != null || records.hasNext();
    }

    @Override
    public byte[] next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      if (settings == null) {
        return records.next();
      }
      TaskContext context = TaskContext.get();
      if (!(context instanceof BarrierTaskContext)) {
        throw new IllegalStateException("a team needs a barrier stage: rdd.barrier().mapPartitions(..)");
      }
      try {
        GroupedAllReduce team = BarrierTeam.join((BarrierTaskContext) context, settings);
        settings = null;
        PythonService service = PythonService.start(team, context);
        return address(service.port(), service.token());
      } catch (Exception e) {
        throw new IllegalStateException("the Python worker's task cannot join its team: " + e.getMessage(), e);
      }
    }

    /** {@code pickle.dumps([("faro", port, token)], 0)}, as text. */
    private static byte[] address(int port, String token) {
      return ("((Vfaro\nI" + port + "\nV" + token + "\ntl.").getBytes(StandardCharsets.US_ASCII);
    }
  }
}
