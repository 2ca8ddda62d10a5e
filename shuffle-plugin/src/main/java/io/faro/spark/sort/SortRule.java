package io.faro.spark.sort;

import io.faro.spark.conf.OncePerKey;
import io.faro.spark.metrics.SortCounters;
import io.faro.spark.metrics.SortDeclineReason;
import java.util.function.BooleanSupplier;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.SortExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec;
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec;
import org.apache.spark.sql.execution.exchange.ShuffleExchangeLike;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/** Puts Faro's node in place of each sort of Spark's whose rows come from a shuffle of its own stage. */
public final class SortRule extends Rule<SparkPlan> {
  private static final Logger LOG = LoggerFactory.getLogger(SortRule.class);

  /** Each has one line in the log, which names an order. */
  private static final OncePerKey LOGGED = new OncePerKey();

  private final BooleanSupplier wanted;
  private final BooleanSupplier ready;

  /** {@code wanted}: whether the session of the plan wants it; {@code ready}: whether all executors can run it. */
  public SortRule(BooleanSupplier wanted, BooleanSupplier ready) {
    this.wanted = wanted;
    this.ready = ready;
  }

  @Override
  public SparkPlan apply(SparkPlan plan) {
    return wanted.getAsBoolean() ? plan.transformUp(new Sorts()) : plan;
  }

  private final class Sorts extends AbstractPartialFunction<SparkPlan, SparkPlan> {
    @Override
    public boolean isDefinedAt(SparkPlan plan) {
      // Not its subclasses: they are other plug-ins', or Faro's already.
      return plan.getClass() == SortExec.class && plan.find(new IsShuffle()).isDefined();
    }

    @Override
    public SparkPlan apply(SparkPlan plan) {
      SortExec sort = (SortExec) plan;
      SortColumns columns = SortColumns.of(sort);
      SortDeclineReason why = columns.key.size() == 0 ? columns.end
          : ready.getAsBoolean() ? null : SortDeclineReason.EXECUTORS;
      if (why == null) {
        return columns.key.size() == 0 ? plan : SortNodes.of(sort, new RowSortBody(columns));
      }
      SortCounters.declined(why);
      if (LOGGED.of(why)) {
        LOG.info("Faro leaves sorts to Spark: {}, as here: {}", why.text, SortNodes.order(sort));
      }
      return plan;
    }
  }

  private static final class IsShuffle extends AbstractFunction1<SparkPlan, Object> {
    @Override
    public Object apply(SparkPlan plan) {
      return plan instanceof ShuffleExchangeLike || plan instanceof ShuffleQueryStageExec
          || plan instanceof AQEShuffleReadExec;
    }
  }
}
