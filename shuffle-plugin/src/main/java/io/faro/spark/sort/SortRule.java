package io.faro.spark.sort;

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

  private final BooleanSupplier wanted;

  /** {@code wanted}: whether the session of the plan wants it. */
  public SortRule(BooleanSupplier wanted) {
    this.wanted = wanted;
  }

  @Override
  public SparkPlan apply(SparkPlan plan) {
    return wanted.getAsBoolean() ? plan.transformUp(new Sorts()) : plan;
  }

  private static final class Sorts extends AbstractPartialFunction<SparkPlan, SparkPlan> {
    @Override
    public boolean isDefinedAt(SparkPlan plan) {
      // Not its subclasses: they are other plug-ins', or Faro's already.
      return plan.getClass() == SortExec.class && plan.find(new IsShuffle()).isDefined();
    }

    @Override
    public SparkPlan apply(SparkPlan plan) {
      SortExec sort = (SortExec) plan;
      SortColumns columns = SortColumns.of(sort);
      if (columns.key.size() == 0) {
        LOG.info("Faro leaves a sort to Spark: {}", columns.end);
        return plan;
      }
      return SortNodes.of(sort, new RowSortBody(columns));
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
