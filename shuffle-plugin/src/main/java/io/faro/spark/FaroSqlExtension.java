package io.faro.spark;

import io.faro.spark.conf.FaroKeys;
import io.faro.spark.conf.Key;
import io.faro.spark.sort.SortRule;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.internal.SQLConf;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Brings Faro's sort into the plans of Spark SQL. {@link FaroShuffleManager} adds this class to {@code
 * spark.sql.extensions}. A rule after those about columns sees plans as they are executed: what looks for Spark's own
 * sorts, such as the rule against skew, has run.
 */
public final class FaroSqlExtension extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectColumnar(new Rules());
    return BoxedUnit.UNIT;
  }

  private static final class Rules extends AbstractFunction1<SparkSession, ColumnarRule> {
    @Override
    public ColumnarRule apply(SparkSession session) {
      return new ColumnarRule() {
        @Override
        public Rule<SparkPlan> postColumnarTransitions() {
          return new SortRule(FaroSqlExtension::isWanted, SortExecutors::areReady);
        }
      };
    }
  }

  /** Of the session whose plan this thread makes, where Faro is on in the application. */
  private static boolean isWanted() {
    FaroProcess process = FaroProcess.current();
    return process != null && !process.isOff() && isOn(FaroKeys.ENABLED) && isOn(FaroKeys.SORT);
  }

  private static boolean isOn(Key<Boolean> key) {
    return key.parse(SQLConf.get().getConfString(key.name, key.defaultValue()));
  }
}
