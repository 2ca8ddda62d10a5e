package io.faro.examples.sgd;

import java.util.Random;

/**
 * Logistic regression (no hidden units) or a perceptron with one hidden layer, for any number of classes. All weights
 * are in one array, so that a round averages the whole model.
 *
 * <pre>
 *   hidden = 0:   inputs x outputs weights, outputs biases
 *   else:         inputs x hidden, hidden, hidden x outputs, outputs
 * </pre>
 */
final class Model {
  final float[] weights;
  private final int inputs;
  private final int hidden;
  private final int outputs;
  private final float[] gradient;
  private final float[] middle;
  private final float[] scores;
  private final float[] blame;

  /** The same weights for the same arguments. */
  Model(int inputs, int hidden, int outputs, long seed) {
    this.inputs = inputs;
    this.hidden = hidden;
    this.outputs = outputs;
    int last = hidden == 0 ? inputs : hidden;
    weights = new float[(hidden == 0 ? 0 : inputs * hidden + hidden) + last * outputs + outputs];
    gradient = new float[weights.length];
    middle = new float[last];
    scores = new float[outputs];
    blame = new float[last];
    Random random = new Random(seed);
    fill(random, 0, inputs * hidden, inputs);
    fill(random, second(), last * outputs, last);
  }

  private void fill(Random random, int from, int count, int fanIn) {
    for (int i = from; i < from + count; i++) {
      weights[i] = (float) (random.nextGaussian() / Math.sqrt(fanIn));
    }
  }

  /** Where the last layer's weights begin. */
  private int second() {
    return hidden == 0 ? 0 : inputs * hidden + hidden;
  }

  /** One step of stochastic gradient descent on {@code rows} rows of {@code data} that chance chooses. */
  void step(Data data, int rows, float rate, Random random) {
    java.util.Arrays.fill(gradient, 0);
    for (int i = 0; i < rows; i++) {
      int row = random.nextInt(data.rows());
      forward(data.features[row]);
      backward(data.features[row], data.labels[row]);
    }
    float scale = rate / rows;
    for (int i = 0; i < weights.length; i++) {
      weights[i] -= scale * gradient[i];
    }
  }

  /** Part of the rows that get their own class. */
  double accuracy(Data data) {
    int right = 0;
    for (int row = 0; row < data.rows(); row++) {
      forward(data.features[row]);
      int best = 0;
      for (int k = 1; k < outputs; k++) {
        best = scores[k] > scores[best] ? k : best;
      }
      right += best == data.labels[row] ? 1 : 0;
    }
    return (double) right / data.rows();
  }

  private void forward(float[] x) {
    if (hidden == 0) {
      System.arraycopy(x, 0, middle, 0, inputs);
    } else {
      layer(x, inputs, 0, middle, hidden);
      for (int j = 0; j < hidden; j++) {
        middle[j] = Math.max(0, middle[j]);
      }
    }
    layer(middle, middle.length, second(), scores, outputs);
  }

  private void layer(float[] in, int width, int from, float[] out, int count) {
    int biases = from + width * count;
    for (int k = 0; k < count; k++) {
      float sum = weights[biases + k];
      int at = from + k * width;
      for (int i = 0; i < width; i++) {
        sum += weights[at + i] * in[i];
      }
      out[k] = sum;
    }
  }

  /** Adds the gradient of the cross-entropy at the row that {@link #forward} saw last. */
  private void backward(float[] x, int label) {
    float max = Float.NEGATIVE_INFINITY;
    for (float score : scores) {
      max = Math.max(max, score);
    }
    float sum = 0;
    for (int k = 0; k < outputs; k++) {
      scores[k] = (float) Math.exp(scores[k] - max);
      sum += scores[k];
    }
    java.util.Arrays.fill(blame, 0);
    int from = second();
    int width = middle.length;
    for (int k = 0; k < outputs; k++) {
      float error = scores[k] / sum - (k == label ? 1 : 0);
      gradient[from + width * outputs + k] += error;
      int at = from + k * width;
      for (int j = 0; j < width; j++) {
        gradient[at + j] += error * middle[j];
        blame[j] += error * weights[at + j];
      }
    }
    if (hidden == 0) {
      return;
    }
    for (int j = 0; j < hidden; j++) {
      if (middle[j] > 0) {
        gradient[inputs * hidden + j] += blame[j];
        for (int i = 0; i < inputs; i++) {
          gradient[j * inputs + i] += blame[j] * x[i];
        }
      }
    }
  }
}
