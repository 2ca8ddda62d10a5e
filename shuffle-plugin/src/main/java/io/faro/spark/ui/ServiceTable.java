package io.faro.spark.ui;

import io.faro.spark.metrics.Traffic;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The table of the page whose rows are hosts with a node service ({@code faro serve}). A column is left out if it is 0
 * for all hosts.
 */
final class ServiceTable {
  private static final String REGISTERED = "serviceRegistered";
  private static final String OUTPUTS = "serviceOutputs";
  private static final String REFUSED = "serviceOutputsRefused";
  private static final String BEHIND = "replicasBehind";
  private static final String LENT = "serviceLocalBlocks";

  private final Html html;
  private final Map<String, Row> rows = new TreeMap<>();

  private enum Column {
    EXECUTORS("Executors registered", ""),
    ENDED("of these ended", ""),
    HANDED_OVER("Map outputs handed over",
        "Handed over: by executors of the host, also for shuffles that were removed since."),
    NOT_KEPT("Map outputs not kept",
        "Not kept: the service refused them or did not answer, so they are lost with their executor."),
    BLOCKS("Blocks read from it", "Read from it: over the network or shared memory."),
    BYTES("Bytes read from it", ""),
    LENT_BLOCKS("Blocks read from lent files", "Lent files: that it gave to executors of its host."),
    COPIES_BEHIND("Copies behind",
        "Copies behind: of map outputs of the host, that other hosts do not have yet (spark.faro.replicas)."),
    COPIED_BLOCKS("Blocks read from copies elsewhere", "");

    final String head;
    final String explanation;

    Column(String head, String explanation) {
      this.head = head;
      this.explanation = explanation;
    }
  }

  private static final class Row {
    private final Map<Column, Long> values = new EnumMap<>(Column.class);

    long get(Column column) {
      return values.getOrDefault(column, 0L);
    }

    void add(Column column, long more) {
      values.merge(column, more, Long::sum);
    }

    void max(Column column, long value) {
      values.merge(column, value, Math::max);
    }
  }

  ServiceTable(Html html, List<ExecutorFigures> executors, List<ServiceFigures> services) {
    this.html = html;
    for (ExecutorFigures executor : executors) {
      // An executor that no service has taken counts the outputs that one should keep.
      if (executor.counter(REGISTERED) + executor.counter(OUTPUTS) + executor.counter(REFUSED) > 0) {
        Row row = row(executor.host);
        row.add(Column.EXECUTORS, executor.counter(REGISTERED));
        row.add(Column.ENDED, executor.removed ? executor.counter(REGISTERED) : 0);
        row.add(Column.HANDED_OVER, executor.counter(OUTPUTS));
        row.add(Column.NOT_KEPT, executor.counter(REFUSED));
        row.add(Column.LENT_BLOCKS, executor.counter(LENT));
        // All executors of the host say the same, at different times.
        row.max(Column.COPIES_BEHIND, executor.removed ? 0 : executor.counter(BEHIND));
      }
    }
    for (ServiceFigures service : services) {
      Row row = row(service.host);
      row.add(Column.BLOCKS, service.counter(Traffic.SERVICE_BLOCKS));
      row.add(Column.BYTES, service.counter(Traffic.SERVICE_BYTES));
      row.add(Column.COPIED_BLOCKS, service.counter(Traffic.REPLICA_BLOCKS));
    }
  }

  private Row row(String host) {
    return rows.computeIfAbsent(host, name -> new Row());
  }

  /** Nothing, where there is no service. */
  void write() {
    if (rows.isEmpty()) {
      return;
    }
    List<Column> columns = Stream.of(Column.values())
        .filter(column -> rows.values().stream().anyMatch(row -> row.get(column) != 0)).collect(Collectors.toList());
    html.raw("<h4>Node services</h4>").raw(Html.TABLE);
    html.heads(Stream.concat(Stream.of("Host"), columns.stream().map(column -> column.head)).toArray(String[]::new));
    rows.forEach((host, row) -> {
      html.raw("<tr data-service=\"").text(host).raw("\" data-outputs=\"" + row.get(Column.HANDED_OVER)
          + "\" data-blocks=\"" + row.get(Column.BLOCKS) + "\">").textCell(host);
      for (Column column : columns) {
        if (column == Column.BYTES) {
          html.bytesCell(row.get(column));
        } else {
          html.cell(row.get(column));
        }
      }
      html.raw("</tr>");
    });
    html.raw("</tbody></table><p>").text(columns.stream().map(column -> column.explanation)
        .filter(text -> !text.isEmpty()).collect(Collectors.joining(" "))).raw("</p>");
  }
}
