package io.faro.examples.sgd;

import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/** Rows of features, scaled to mean 0 and deviation 1, with a class each. */
final class Data implements Serializable {
  private static final long serialVersionUID = 1L;

  final float[][] features;
  final int[] labels;

  private Data(float[][] features, int[] labels) {
    this.features = features;
    this.labels = labels;
  }

  int rows() {
    return labels.length;
  }

  int width() {
    return features[0].length;
  }

  int classes() {
    int max = 0;
    for (int label : labels) {
      max = Math.max(max, label);
    }
    return max + 1;
  }

  /** A file of comma-separated numbers, the class last. Rows are shuffled, always in the same way. */
  static Data read(Path csv) throws IOException {
    List<String> lines = new ArrayList<>(Files.readAllLines(csv, StandardCharsets.US_ASCII));
    lines.removeIf(line -> line.trim().isEmpty());
    Collections.shuffle(lines, new Random(1));
    float[][] features = new float[lines.size()][];
    int[] labels = new int[lines.size()];
    for (int row = 0; row < labels.length; row++) {
      String[] fields = lines.get(row).split(",");
      features[row] = new float[fields.length - 1];
      for (int i = 0; i < fields.length - 1; i++) {
        features[row][i] = Float.parseFloat(fields[i]);
      }
      labels[row] = (int) Float.parseFloat(fields[fields.length - 1]);
    }
    scale(features);
    return new Data(features, labels);
  }

  private static void scale(float[][] features) {
    for (int i = 0; i < features[0].length; i++) {
      double sum = 0;
      double squares = 0;
      for (float[] row : features) {
        sum += row[i];
        squares += row[i] * row[i];
      }
      double mean = sum / features.length;
      double deviation = Math.sqrt(Math.max(0, squares / features.length - mean * mean));
      for (float[] row : features) {
        // A feature that never changes says nothing.
        row[i] = deviation < 1e-9 ? 0 : (float) ((row[i] - mean) / deviation);
      }
    }
  }

  /** Rows {@code first}, {@code first + step}, ... of those from {@code from} to {@code to}. */
  Data part(int from, int to, int first, int step) {
    List<float[]> features = new ArrayList<>();
    List<Integer> labels = new ArrayList<>();
    for (int row = from + first; row < to; row += step) {
      features.add(this.features[row]);
      labels.add(this.labels[row]);
    }
    return new Data(features.toArray(new float[0][]), labels.stream().mapToInt(label -> label).toArray());
  }
}
