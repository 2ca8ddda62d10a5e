package io.faro.spark.ui;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** On how many of the executors that have reported Faro runs, and why not on the others. */
final class ExecutorStates {
  /** More reasons are counted and not named. */
  private static final int MAX_REASONS = 3;

  /** The id that Spark has for the driver. */
  static final String DRIVER = "driver";

  private final int all;
  /** Executors by the reason why Faro does not run there. */
  private final Map<String, Integer> problems = new LinkedHashMap<>();

  private ExecutorStates(int all) {
    this.all = all;
  }

  /** Of those that run; of all once none does. */
  static ExecutorStates of(Collection<ExecutorFigures> executors) {
    List<ExecutorFigures> reported = withoutDriver(executors);
    boolean isOver = reported.stream().allMatch(executor -> executor.removed);
    ExecutorStates states =
        new ExecutorStates((int) reported.stream().filter(executor -> isOver || !executor.removed).count());
    for (ExecutorFigures executor : reported) {
      if ((isOver || !executor.removed) && !executor.problem.isEmpty()) {
        states.problems.merge(executor.problem, 1, Integer::sum);
      }
    }
    return states;
  }

  /** The driver has figures of its plans, and is no executor. */
  static List<ExecutorFigures> withoutDriver(Collection<ExecutorFigures> all) {
    return all.stream().filter(one -> !one.executor.equals(DRIVER))
        .collect(Collectors.toList());
  }

  boolean isEmpty() {
    return all == 0;
  }

  boolean hasProblems() {
    return !problems.isEmpty();
  }

  /** Equal for states that need no new line in the log. */
  Map<String, Integer> problems() {
    return problems;
  }

  /** For a sentence that begins with "Faro runs on". */
  String text() {
    int not = problems.values().stream().mapToInt(Integer::intValue).sum();
    StringBuilder text = new StringBuilder().append(all - not).append(" of ").append(all)
        .append(all == 1 ? " executor" : " executors");
    int named = 0;
    for (Map.Entry<String, Integer> problem : problems.entrySet()) {
      if (named == MAX_REASONS) {
        return text.append("; and ").append(problems.size() - named).append(" more reasons").toString();
      }
      int count = problem.getValue();
      text.append("; ").append(count).append(count == 1 ? " does not: " : " do not: ").append(problem.getKey());
      named++;
    }
    return text.toString();
  }
}
