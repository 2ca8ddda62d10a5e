package io.faro.spark.collective;

import io.faro.FaroException;
import io.faro.collective.GroupedAllReduce;
import io.faro.collective.Seat;
import io.faro.collective.Settings;
import io.faro.spark.FaroEndpoints;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.util.TaskCompletionListener;
import scala.Function1;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * The tasks of a barrier stage as a team, ranks being partition ids.
 *
 * <pre>
 *   rdd.barrier().mapPartitions(records -&gt; {
 *     GroupedAllReduce team = BarrierTeam.join(BarrierTaskContext.get(), new Settings().mode(Mode.DSSYNC));
 *     ...
 *     team.mean(gradient);
 * </pre>
 *
 * <p>The tasks tell each other their seats by {@link BarrierTaskContext#allGather}, once; rounds do not touch the
 * driver. Several tasks of one executor share its endpoint. A task that fails or is killed ends the rounds of those
 * that need it with an exception that names it. Spark then tries the whole stage again, with new seats, if a shuffle
 * follows it ({@code repartition(1)} will do); a barrier stage that is a job's last one fails the job, whatever runs in
 * it, because Spark does not know what its tasks have committed.
 */
public final class BarrierTeam {
  private BarrierTeam() {}

  /**
   * Makes this task a member. All tasks of the stage call it once, before any of them calls {@code barrier()} or
   * {@code allGather()} for a purpose of its own. The team is left when the task ends.
   */
  public static GroupedAllReduce join(BarrierTaskContext context, Settings settings) throws FaroException {
    try (Seat seat = Seat.on(FaroEndpoints.ofThisExecutor())) {
      String[] invitations = context.allGather(seat.invitation());
      GroupedAllReduce team = seat.join(context.partitionId(), Arrays.asList(invitations), settings);
      // By this type and not a lambda: Scala has two of the name, and its own versions differ in the other one.
      ((TaskContext) context).addTaskCompletionListener(new Leaving(team));
      team.cancelWhen(context::isInterrupted);
      return team;
    }
  }

  /**
   * {@code rdd.barrier().mapPartitions(function)}, which Spark's Java API does not have. The function runs in a barrier
   * stage with as many tasks as {@code rdd} has partitions, all at once; {@code BarrierTaskContext.get()} is their
   * context.
   */
  public static <T, R> JavaRDD<R> mapPartitions(
      JavaRDD<T> rdd, FlatMapFunction<Iterator<T>, R> function, Class<R> resultType) {
    ClassTag<R> tag = ClassTag$.MODULE$.apply(resultType);
    // What is mapped before the barrier runs in the same task, so that only the identity has to be Scala's.
    Function1<scala.collection.Iterator<R>, scala.collection.Iterator<R>> same =
        (Function1<scala.collection.Iterator<R>, scala.collection.Iterator<R>> & Serializable) records -> records;
    RDD<R> staged = rdd.mapPartitions(function).rdd().barrier().mapPartitions(same, true, tag);
    return JavaRDD.fromRDD(staged, tag);
  }

  /** Leaves the team when the task ends, however it does. */
  private static final class Leaving implements TaskCompletionListener {
    private final GroupedAllReduce team;

    Leaving(GroupedAllReduce team) {
      this.team = team;
    }

    @Override
    public void onTaskCompletion(TaskContext context) {
      team.close();
    }
  }
}
