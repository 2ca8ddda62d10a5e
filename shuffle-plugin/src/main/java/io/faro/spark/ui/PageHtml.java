package io.faro.spark.ui;

import io.faro.spark.conf.FaroKeys;
import io.faro.spark.metrics.PeerFigures;
import io.faro.spark.metrics.Reason;
import io.faro.spark.metrics.SortDeclineReason;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The page: a sentence, two plots and tables. A column is left out if no executor has its counter, for example without
 * RDMA.
 */
final class PageHtml {
  static final String[] FABRICS = {"verbs", "shm", "tcp"};
  private static final String REASON = "fallbackReason.";
  private static final String RUNS = "Faro runs on ";
  private static final int MAX_PEERS = 20;
  /** Instead of the time: the application is over, so the page shows times and not ages. */
  static final long PAST = -1;

  private final List<ExecutorFigures> executors;
  private final List<ShuffleFigures> shuffles;
  private final List<ServiceFigures> services;
  private final String manager;
  private final long nowMillis;
  private final String queries;
  private final Html html = new Html();
  private final Map<String, Long> sums = new TreeMap<>();

  private PageHtml(List<ExecutorFigures> executors, List<ShuffleFigures> shuffles, List<ServiceFigures> services,
      String manager, long nowMillis, String queries) {
    this.executors = ExecutorStates.withoutDriver(executors);
    this.shuffles = shuffles;
    this.services = services;
    this.manager = manager;
    this.nowMillis = nowMillis;
    this.queries = queries;
    for (ExecutorFigures executor : executors) {
      executor.counters.forEach((name, value) -> sums.merge(name, value, Long::sum));
    }
  }

  /**
   * The content below Spark's navigation; {@code manager}: the application's {@code spark.shuffle.manager}; {@code
   * queries}: the address of Spark's page of a query, without the query's id.
   */
  static String of(List<ExecutorFigures> executors, List<ShuffleFigures> shuffles, List<ServiceFigures> services,
      String manager, long nowMillis, String queries) {
    return new PageHtml(executors, shuffles, services, manager, nowMillis, queries).page();
  }

  private String page() {
    html.raw("<div id=\"faro\">");
    state();
    summary();
    if (!executors.isEmpty()) {
      remotePlot();
      memoryPlot();
      executorTable();
      memoryTable();
    }
    new ServiceTable(html, executors, services).write();
    if (!shuffles.isEmpty()) {
      new ShuffleTables(html, shuffles, queries).write();
    }
    peerTable();
    reasonTable();
    sortTable();
    return html.raw("</div>").toString();
  }

  private long sum(String name) {
    return sums.getOrDefault(name, 0L);
  }

  static long total(Map<String, Long> counters, String name) {
    long total = 0;
    for (String fabric : FABRICS) {
      total += counters.getOrDefault(name + "." + fabric, 0L);
    }
    return total;
  }

  private void state() {
    ExecutorStates states = ExecutorStates.of(executors);
    if (states.hasProblems()) {
      html.raw("<div class=\"alert alert-warning\" id=\"faro-state\">").text(RUNS + states.text() + ".").raw("</div>");
    } else if (!states.isEmpty()) {
      html.raw("<p id=\"faro-state\">").text(RUNS + states.text() + ".").raw("</p>");
    }
  }

  private void summary() {
    long blocks = total(sums, "remoteBlocks");
    long left = sum("fallbackBlocks");
    html.raw("<p><strong>").text(Html.bytes(total(sums, "remoteBytes"))).raw("</strong> in <strong>").number(blocks)
        .raw("</strong> remote blocks came through Faro");
    for (String fabric : FABRICS) {
      long bytes = sum("remoteBytes." + fabric);
      if (bytes > 0) {
        html.text(", " + Html.bytes(bytes) + " over " + fabric);
      }
    }
    html.raw(". ");
    long sparks = shuffles.stream().filter(shuffle -> shuffle.sparks).count();
    if (sparks > 0) {
      html.number(sparks).text((sparks == 1 ? " shuffle was" : " shuffles were")
          + " fetched by Spark alone, because Faro was switched off there (spark.faro.enabled). Of all others, ");
    }
    if (left == 0) {
      html.raw(sparks > 0 ? "nothing was left to Spark's own fetch." : "Nothing was left to Spark's own fetch.");
    } else {
      html.number(left).text(String.format(java.util.Locale.ROOT,
          " blocks (%.2f %%) were left to Spark's own fetch; the reasons are below.", 100.0 * left / (left + blocks)));
    }
    if (ExecutorStates.of(executors).hasProblems()) {
      html.raw(" What executors without Faro fetched is not counted here.");
    }
    channel();
    if (!manager.equals(FaroKeys.MANAGER)) {
      html.text(" Faro stands behind the shuffle manager " + manager + " (spark.plugins).");
    }
    html.raw("</p>");
  }

  private void channel() {
    long known = executors.stream().filter(executor -> executor.counters.containsKey("sealedChannel")).count();
    long sealed = sum("sealedChannel");
    if (known == 0) {
      return;
    }
    html.text(sealed == known ? " Faro's channel is sealed (AES-256-GCM)."
        : sealed == 0 ? " Faro's channel is in the clear, its members proven."
        : " Faro's channel is sealed (AES-256-GCM) in " + sealed + " of " + known + " executors.");
  }

  private static String name(ExecutorFigures executor) {
    return "executor " + executor.executor + (executor.removed ? " (ended)" : "");
  }

  private void remotePlot() {
    Bars bars = new Bars("Bytes fetched from other executors, by fabric",
        Bars.Part.VERBS, Bars.Part.SHM, Bars.Part.TCP);
    List<ExecutorFigures> max = new ArrayList<>(executors);
    max.sort(Comparator.comparingLong((ExecutorFigures e) -> -total(e.counters, "remoteBytes")));
    for (ExecutorFigures executor : max) {
      bars.row(name(executor), Html.bytes(total(executor.counters, "remoteBytes")),
          executor.counter("remoteBytes.verbs"), executor.counter("remoteBytes.shm"),
          executor.counter("remoteBytes.tcp"));
    }
    bars.writeTo(html);
  }

  private void memoryPlot() {
    Bars bars = new Bars("Native memory against its cap (spark.faro.memory.limit)",
        Bars.Part.IN_USE, Bars.Part.TAKEN, Bars.Part.CAP);
    List<ExecutorFigures> max = new ArrayList<>(executors);
    max.removeIf(executor -> executor.removed || !executor.problem.isEmpty());
    max.sort(Comparator.comparingLong((ExecutorFigures e) -> -e.counter("pool.mappedBytes")));
    for (ExecutorFigures executor : max) {
      long used = executor.counter("pool.leasedBytes");
      long taken = Math.max(used, executor.counter("pool.mappedBytes"));
      long cap = Math.max(taken, executor.counter("pool.limitBytes"));
      bars.row(name(executor), Html.bytes(taken) + " of " + Html.bytes(cap), used, taken - used, cap - taken);
    }
    if (!max.isEmpty()) {
      bars.writeTo(html);
    }
  }

  private void executorTable() {
    List<Column> columns = Column.present(sums, false);
    boolean hasReasons = executors.stream().anyMatch(executor -> !reasons(executor).isEmpty());
    html.raw("<h4>Executors</h4>").raw(Html.TABLE);
    List<String> heads = new ArrayList<>();
    heads.add("Executor");
    heads.add("Host");
    columns.forEach(column -> heads.add(column.head));
    if (hasReasons) {
      heads.add("Left to Spark because of");
    }
    heads.add("Reported");
    html.heads(heads.toArray(new String[0]));
    for (ExecutorFigures executor : executors) {
      html.raw("<tr data-executor=\"").text(executor.executor).raw("\" data-remote-bytes=\"")
          .raw(Long.toString(total(executor.counters, "remoteBytes"))).raw("\" data-remote-blocks=\"")
          .raw(Long.toString(total(executor.counters, "remoteBlocks"))).raw("\">");
      html.textCell(executor.executor + (executor.removed ? " (ended)" : "")).textCell(executor.host);
      columns.forEach(column -> column.write(html, executor.counters));
      if (hasReasons) {
        html.textCell(reasons(executor));
      }
      html.cell(executor.time, when(executor.time)).raw("</tr>");
    }
    html.raw("</tbody></table>");
  }

  private void memoryTable() {
    List<Column> columns = Column.present(sums, true);
    if (columns.isEmpty()) {
      return;
    }
    html.raw("<h4>Native memory of executors</h4>").raw(Html.TABLE).raw("<thead><tr><th>Executor</th>");
    columns.forEach(column -> html.raw("<th>").text(column.head).raw("</th>"));
    html.raw("</tr></thead><tbody>");
    for (ExecutorFigures executor : executors) {
      html.raw("<tr>").textCell(executor.executor + (executor.removed ? " (ended)" : ""));
      columns.forEach(column -> column.write(html, executor.counters));
      html.raw("</tr>");
    }
    html.raw("</tbody></table>");
  }

  private String when(long time) {
    if (nowMillis == PAST) {
      return Instant.ofEpochMilli(time).truncatedTo(ChronoUnit.SECONDS).toString();
    }
    long age = Math.max(0, nowMillis - time) / 1_000;
    return age < 3_600 ? age + " s ago" : age / 3_600 + " h ago";
  }

  private static String reasons(ExecutorFigures executor) {
    StringBuilder reasons = new StringBuilder(executor.problem);
    executor.counters.forEach((name, value) -> {
      if (name.startsWith(REASON) && value > 0) {
        reasons.append(reasons.length() == 0 ? "" : ", ").append(name, REASON.length(), name.length()).append(" ")
            .append(value);
      }
    });
    return reasons.toString();
  }

  private static final class Pair {
    final String client;
    final PeerFigures peer;

    Pair(String client, PeerFigures peer) {
      this.client = client;
      this.peer = peer;
    }
  }

  private void peerTable() {
    List<Pair> pairs = new ArrayList<>();
    for (ExecutorFigures executor : executors) {
      executor.peers.forEach(peer -> pairs.add(new Pair(executor.executor, peer)));
    }
    if (pairs.isEmpty()) {
      return;
    }
    pairs.sort(Comparator.comparingLong((Pair pair) -> -pair.peer.slowestNanos));
    html.raw("<h4>Slowest pairs of client and server</h4>").raw(Html.TABLE);
    html.heads("Client", "Server", "Slowest request", "Mean request", "Requests", "Blocks", "Bytes");
    for (Pair pair : pairs.subList(0, Math.min(MAX_PEERS, pairs.size()))) {
      PeerFigures peer = pair.peer;
      long mean = peer.requests == 0 ? 0 : peer.nanos / peer.requests;
      html.raw("<tr>").textCell("executor " + pair.client).textCell(peer.peer)
          .millisCell(peer.slowestNanos).millisCell(mean).cell(peer.requests)
          .cell(peer.blocks).bytesCell(peer.bytes).raw("</tr>");
    }
    html.raw("</tbody></table>");
  }

  private void sortTable() {
    boolean isEmpty = true;
    for (SortDeclineReason why : SortDeclineReason.values()) {
      long count = sum(why.counter());
      if (count > 0 && isEmpty) {
        isEmpty = false;
        html.raw("<h4>Why sorts were left to Spark's own</h4>").raw(Html.TABLE);
        html.heads("Reason", "Count", "Of", "Why");
      }
      if (count > 0) {
        html.raw("<tr>").textCell(why.key).cell(count).textCell(why.unit()).textCell(why.text).raw("</tr>");
      }
    }
    html.raw(isEmpty ? "" : "</tbody></table>");
  }

  private void reasonTable() {
    if (sum("fallbacks") == 0) {
      return;
    }
    html.raw("<h4>Why blocks were left to Spark's own fetch</h4>").raw(Html.TABLE);
    html.heads("Reason", "Requests", "What to do");
    for (Reason reason : Reason.values()) {
      long requests = sum(REASON + reason.key);
      if (requests > 0) {
        html.raw("<tr>").textCell(reason.key).cell(requests).textCell(reason.hint).raw("</tr>");
      }
    }
    html.raw("</tbody></table>");
  }
}
