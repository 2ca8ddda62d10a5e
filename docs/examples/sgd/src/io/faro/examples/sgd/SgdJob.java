package io.faro.examples.sgd;

import io.faro.collective.GroupedAllReduce;
import io.faro.collective.Mode;
import io.faro.collective.Settings;
import io.faro.spark.collective.BarrierTeam;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;

/**
 * The Spark application: one barrier stage for each model and mode, modes in turn and repeated, so that whatever else
 * the machine does falls on all of them. Prints {@code RESULT} lines of key=value pairs.
 */
public final class SgdJob {
  private SgdJob() {}

  public static void main(String[] args) throws Exception {
    if (args.length < 4) {
      throw new IllegalArgumentException("expected: WORKERS REPEATS ROUNDS_FACTOR CSV[:HIDDEN:RATE:ROUNDS:TARGET]...");
    }
    int workers = Integer.parseInt(args[0]);
    int repeats = Integer.parseInt(args[1]);
    double factor = Double.parseDouble(args[2]);
    try (JavaSparkContext jsc = new JavaSparkContext(new SparkConf())) {
      for (int i = 3; i < args.length; i++) {
        String[] parts = args[i].split(":");
        Path csv = Paths.get(parts[0]);
        Trainer.Plan plan = new Trainer.Plan();
        plan.hidden = Integer.parseInt(parts[1]);
        plan.rate = Float.parseFloat(parts[2]);
        plan.rounds = Math.max(10, (int) (Integer.parseInt(parts[3]) * factor));
        plan.look = Math.max(1, plan.rounds / 100);
        plan.batch = 16;
        double target = Double.parseDouble(parts[4]);
        Broadcast<Data> data = jsc.broadcast(Data.read(csv));
        // The first run of all pays for class loading and connections; it is not reported.
        run(jsc, data, plan, workers, Mode.GRID);
        for (int repeat = 1; repeat <= repeats; repeat++) {
          for (Mode mode : Mode.values()) {
            report(csv, plan, mode, repeat, target, run(jsc, data, plan, workers, mode));
          }
        }
      }
    }
    System.out.println("SGD DONE");
  }

  private static List<Trainer.Curve> run(
      JavaSparkContext jsc, Broadcast<Data> data, Trainer.Plan plan, int workers, Mode mode) {
    List<Integer> ranks = new ArrayList<>();
    for (int rank = 0; rank < workers; rank++) {
      ranks.add(rank);
    }
    JavaRDD<Integer> partitions = jsc.parallelize(ranks, workers);
    List<Trainer.Curve> curves = new ArrayList<>(BarrierTeam.mapPartitions(partitions, ignored -> {
      GroupedAllReduce team = BarrierTeam.join(BarrierTaskContext.get(), new Settings().mode(mode).seed(3));
      return Collections.singletonList(Trainer.train(data.value(), plan, team)).iterator();
    }, Trainer.Curve.class).collect());
    curves.sort(Comparator.comparingInt(curve -> curve.rank));
    return curves;
  }

  /** Seconds, accuracy: of the worker that is in the middle, so that no rank's luck decides. */
  private static void report(
      Path csv, Trainer.Plan plan, Mode mode, int repeat, double target, List<Trainer.Curve> curves) {
    List<Double> seconds = new ArrayList<>();
    List<Double> reached = new ArrayList<>();
    List<Double> rounds = new ArrayList<>();
    List<Double> accuracies = new ArrayList<>();
    List<Double> shares = new ArrayList<>();
    for (Trainer.Curve curve : curves) {
      double[] last = curve.looks.get(curve.looks.size() - 1);
      seconds.add(last[1]);
      accuracies.add(last[2]);
      shares.add(curve.inRounds / last[1]);
      double[] first = curve.looks.stream().filter(look -> look[2] >= target).findFirst().orElse(null);
      reached.add(first == null ? Double.POSITIVE_INFINITY : first[1]);
      rounds.add(first == null ? Double.POSITIVE_INFINITY : first[0]);
    }
    System.out.printf(Locale.ROOT,
        "RESULT data=%s hidden=%d weights=%d workers=%d mode=%s repeat=%d rounds=%d accuracy=%.4f target=%.3f "
            + "rounds_to_target=%.0f seconds_to_target=%.3f seconds=%.3f in_rounds=%.2f%n",
        csv.getFileName().toString().replace(".csv", ""), plan.hidden, curves.get(0).weights, curves.size(),
        mode.name().toLowerCase(Locale.ROOT), repeat, plan.rounds, median(accuracies), target, median(rounds),
        median(reached), median(seconds), median(shares));
  }

  private static double median(List<Double> values) {
    List<Double> sorted = new ArrayList<>(values);
    Collections.sort(sorted);
    return sorted.get(sorted.size() / 2);
  }
}
