package io.faro.spark.ui;

import io.faro.spark.metrics.Traffic;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The tables of the page whose rows are queries of Spark SQL and shuffles, the newest first. */
final class ShuffleTables {
  private static final String LEFT = "Blocks left to Spark";

  private final Html html;
  private final List<ShuffleFigures> shuffles;
  /** The address of Spark's page of a query, without the query's id. */
  private final String queries;

  ShuffleTables(Html html, List<ShuffleFigures> shuffles, String queries) {
    this.html = html;
    this.shuffles = shuffles;
    this.queries = queries;
  }

  void write() {
    queryTable();
    shuffleTable();
  }

  /** The fabrics that some shuffle used; {@code heads} gets their columns. */
  private List<String> fabrics(List<String> heads) {
    List<String> fabrics = new ArrayList<>();
    for (String fabric : PageHtml.FABRICS) {
      if (shuffles.stream().anyMatch(shuffle -> shuffle.counter("remoteBlocks." + fabric) > 0)) {
        fabrics.add(fabric);
        heads.add("Blocks " + fabric);
        heads.add("Bytes " + fabric);
      }
    }
    return fabrics;
  }

  private void fabricCells(List<String> fabrics, ShuffleFigures figures) {
    for (String fabric : fabrics) {
      html.cell(figures.counter("remoteBlocks." + fabric)).bytesCell(figures.counter("remoteBytes." + fabric));
    }
  }

  /** Whether blocks of some shuffle were left to Spark. */
  private boolean isLeft() {
    return shuffles.stream().anyMatch(shuffle -> shuffle.sparks || shuffle.counter(Traffic.FALLBACK_BLOCKS) > 0);
  }

  private void leftCell(boolean isShown, ShuffleFigures figures) {
    if (isShown && figures.sparks) {
      html.cell(Long.MAX_VALUE, "all: Faro off");
    } else if (isShown) {
      html.cell(figures.counter(Traffic.FALLBACK_BLOCKS));
    }
  }

  private void queryTable() {
    Map<Long, ShuffleFigures> sumsOf = new TreeMap<>(Comparator.reverseOrder());
    Map<Long, List<String>> shufflesOf = new TreeMap<>();
    for (ShuffleFigures shuffle : shuffles) {
      if (shuffle.query != ShuffleFigures.NO_QUERY) {
        sumsOf.merge(shuffle.query, shuffle, (sum, more) -> sum.plus(more.counters));
        shufflesOf.computeIfAbsent(shuffle.query, id -> new ArrayList<>()).add(Integer.toString(shuffle.shuffle));
      }
    }
    if (sumsOf.isEmpty()) {
      return;
    }
    List<String> heads = new ArrayList<>(Arrays.asList("Query", "Shuffles"));
    List<String> fabrics = fabrics(heads);
    boolean left = isLeft();
    if (left) {
      heads.add(LEFT);
    }
    heads.addAll(Arrays.asList("Tasks waited", "Requests"));
    html.raw("<h4>Queries of Spark SQL</h4>").raw(Html.TABLE).heads(heads.toArray(new String[0]));
    sumsOf.forEach((id, sum) -> {
      html.raw("<tr data-query=\"" + id + "\" data-remote-bytes=\""
              + PageHtml.total(sum.counters, "remoteBytes") + "\">")
          .raw("<td sorttable_customkey=\"" + id + "\"><a href=\"").text(queries + id).raw("\">" + id + "</a></td>")
          .textCell(String.join(", ", shufflesOf.get(id)));
      fabricCells(fabrics, sum);
      leftCell(left, sum);
      html.millisCell(sum.counter(Traffic.TASK_WAIT)).cell(sum.counter(Traffic.REQUESTS)).raw("</tr>");
    });
    html.raw("</tbody></table>");
  }

  private void shuffleTable() {
    List<String> heads = new ArrayList<>();
    heads.add("Shuffle");
    List<String> fabrics = fabrics(heads);
    boolean left = isLeft();
    if (left) {
      heads.add(LEFT);
    }
    heads.addAll(Arrays.asList("Tasks waited", "Requests", "Requests took", "Slowest request"));
    html.raw("<h4>Shuffles</h4>").raw(Html.TABLE).heads(heads.toArray(new String[0]));
    for (int i = shuffles.size() - 1; i >= 0; i--) {
      ShuffleFigures shuffle = shuffles.get(i);
      html.raw("<tr data-shuffle=\"" + shuffle.shuffle + "\" data-remote-bytes=\""
          + PageHtml.total(shuffle.counters, "remoteBytes") + "\">").cell(shuffle.shuffle);
      fabricCells(fabrics, shuffle);
      leftCell(left, shuffle);
      html.millisCell(shuffle.counter(Traffic.TASK_WAIT))
          .cell(shuffle.counter(Traffic.REQUESTS)).millisCell(shuffle.counter(Traffic.REQUEST_NANOS))
          .millisCell(shuffle.counter(Traffic.SLOWEST)).raw("</tr>");
    }
    html.raw("</tbody></table><p>").text("Tasks waited: Spark's fetch wait, summed over the tasks of the stages that "
        + "read this shuffle; a stage that reads several counts for each. Requests took: Faro's requests, of which a "
        + "task has many under way at a time.").raw("</p>");
  }
}
