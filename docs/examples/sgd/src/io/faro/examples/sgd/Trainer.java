package io.faro.examples.sgd;

import io.faro.FaroException;
import io.faro.collective.GroupedAllReduce;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * One worker's training: a step on its own rows, then a round in which the models become their mean; and again. With
 * an exact mode all workers have the same model after each round; with DS-Sync each has its group's.
 */
final class Trainer {
  private Trainer() {}

  /** What every worker is told. */
  static final class Plan implements Serializable {
    private static final long serialVersionUID = 1L;

    int hidden;
    int rounds;
    /** Rounds between two looks at the accuracy. */
    int look;
    int batch;
    float rate;
  }

  /** What one worker saw. */
  static final class Curve implements Serializable {
    private static final long serialVersionUID = 1L;

    int rank;
    int weights;
    /** Of each look: rounds so far, seconds of training so far, accuracy on the rows kept back. */
    final List<double[]> looks = new ArrayList<>();
    /** Seconds in rounds, of all seconds of training. */
    double inRounds;
  }

  /** Of each ten rows two are kept back to test on. */
  static Curve train(Data data, Plan plan, GroupedAllReduce team) throws FaroException {
    int tests = data.rows() / 5;
    Data test = data.part(0, tests, 0, 1);
    Data mine = data.part(tests, data.rows(), team.rank(), team.ranks());
    Model model = new Model(data.width(), plan.hidden, data.classes(), 1);
    Random random = new Random(100 + team.rank());
    Curve curve = new Curve();
    curve.rank = team.rank();
    curve.weights = model.weights.length;
    long training = 0;
    long inRounds = 0;
    for (int round = 1; round <= plan.rounds; round++) {
      long start = System.nanoTime();
      model.step(mine, plan.batch, plan.rate, random);
      long stepped = System.nanoTime();
      team.mean(model.weights);
      long end = System.nanoTime();
      training += end - start;
      inRounds += end - stepped;
      if (round % plan.look == 0) {
        // Every worker looks, so that none waits for another one that does.
        curve.looks.add(new double[] {round, training / 1e9, model.accuracy(test)});
      }
    }
    curve.inRounds = inRounds / 1e9;
    return curve;
  }
}
