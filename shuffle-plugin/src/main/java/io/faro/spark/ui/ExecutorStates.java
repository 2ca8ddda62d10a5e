package io.faro.spark.ui;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;

/** On how many of the executors that have reported Faro runs, and why not on the others. */
final class ExecutorStates {
  /** More reasons are counted and not named. */
  private static final int MAX_REASONS = 3;

  private final int all;
  /** Executors by the reason why Faro does not run there. */
  private final Map<String, Integer> problems = new LinkedHashMap<>();

  private ExecutorStates(int all) {
    this.all = all;
  }

  /** Of those that run; of all once none does. */
  static ExecutorStates of(Collection<ExecutorFigures> executors) {
    boolean isOver = executors.stream().allMatch(executor -> executor.removed);
    ExecutorStates states =
        new ExecutorStates((int) executors.stream().filter(executor -> isOver || !executor.removed).count());
    for (ExecutorFigures executor : executors) {
      if ((isOver || !executor.removed) && !executor.problem.isEmpty()) {
        states.problems.merge(executor.problem, 1, Integer::sum);
      }
    }
    return states;
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
