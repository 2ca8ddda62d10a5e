package io.faro.spark.collective;

import io.faro.FaroException;
import io.faro.collective.GroupedAllReduce;
import io.faro.collective.Member;
import io.faro.collective.Settings;
import io.faro.spark.FaroEndpoints;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.util.TaskCompletionListener;
import scala.Function1;
import scala.Option;
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
 * <p>The tasks exchange their bootstrap ids by {@link BarrierTaskContext#allGather}, once; rounds do not use the
 * driver. Tasks of one executor share its endpoint. A task's rack is what Spark's topology mapper says of its executor
 * ({@code spark.storage.replication.topologyMapper}). If a task fails or is killed, the rounds of members that need it
 * end with an exception that names it. Spark then repeats the whole stage, with new members, if a shuffle follows the
 * stage ({@code repartition(1)} is enough). If a job's last stage is a barrier stage and fails, the job fails, because
 * Spark does not know what the tasks have committed.
 */
public final class BarrierTeam {
  private BarrierTeam() {}

  /**
   * Makes this task a member. All tasks of the stage call it once, before any of them calls {@code barrier()} or
   * {@code allGather()} itself. The end of the task closes the team.
   */
  public static GroupedAllReduce join(BarrierTaskContext context, Settings settings) throws FaroException {
    try (Member member = Member.on(FaroEndpoints.ofThisExecutor(), rack())) {
      String[] ids = context.allGather(member.bootstrapId());
      GroupedAllReduce team = member.join(context.partitionId(), Arrays.asList(ids), settings);
      // Not a lambda: this method has an overload with a Scala function, which differs between Scala versions.
      ((TaskContext) context).addTaskCompletionListener(new LeaveOnCompletion(team));
      team.cancelWhen(context::isInterrupted);
      return team;
    }
  }

  /** This executor's rack: what the driver's topology mapper has answered for its host; empty without one. */
  private static String rack() {
    Option<String> topology = SparkEnv.get().blockManager().blockManagerId().topologyInfo();
    return topology.isDefined() ? topology.get() : "";
  }

  /**
   * {@code rdd.barrier().mapPartitions(function)}, which Spark's Java API does not have. The function runs in a barrier
   * stage with as many tasks as {@code rdd} has partitions, all at once; {@code BarrierTaskContext.get()} is their
   * context.
   */
  public static <T, R> JavaRDD<R> mapPartitions(
      JavaRDD<T> rdd, FlatMapFunction<Iterator<T>, R> function, Class<R> resultType) {
    ClassTag<R> tag = ClassTag$.MODULE$.apply(resultType);
    // Spark runs a map before the barrier in the same task. So only the identity has to be a Scala function.
    Function1<scala.collection.Iterator<R>, scala.collection.Iterator<R>> same =
        (Function1<scala.collection.Iterator<R>, scala.collection.Iterator<R>> & Serializable) records -> records;
    RDD<R> staged = rdd.mapPartitions(function).rdd().barrier().mapPartitions(same, true, tag);
    return JavaRDD.fromRDD(staged, tag);
  }

  /** Closes the team when the task ends, also with an error. */
  private static final class LeaveOnCompletion implements TaskCompletionListener {
    private final GroupedAllReduce team;

    LeaveOnCompletion(GroupedAllReduce team) {
      this.team = team;
    }

    @Override
    public void onTaskCompletion(TaskContext context) {
      team.close();
    }
  }
}
