package io.faro.spark.ui;

import io.faro.spark.metrics.Traffic;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The table of the page whose rows are hosts with a node service ({@code faro serve}). */
final class ServiceTable {
  private static final String REGISTERED = "serviceRegistered";
  private static final String OUTPUTS = "serviceOutputs";
  private static final String REFUSED = "serviceOutputsRefused";
  private static final String BEHIND = "replicasBehind";
  private static final String LENT = "serviceLocalBlocks";

  private final Html html;
  private final Map<String, Row> rows = new TreeMap<>();

  private static final class Row {
    long running;
    long ended;
    long outputs;
    long refused;
    long blocks;
    long bytes;
    long lent;
    long copied;
    long behind;
  }

  ServiceTable(Html html, List<ExecutorFigures> executors, List<ServiceFigures> services) {
    this.html = html;
    for (ExecutorFigures executor : executors) {
      // An executor that no service has taken counts the outputs that one should keep.
      if (executor.counter(REGISTERED) + executor.counter(OUTPUTS) + executor.counter(REFUSED) > 0) {
        Row row = row(executor.host);
        row.running += executor.removed ? 0 : executor.counter(REGISTERED);
        row.ended += executor.removed ? executor.counter(REGISTERED) : 0;
        row.outputs += executor.counter(OUTPUTS);
        row.refused += executor.counter(REFUSED);
        row.lent += executor.counter(LENT);
        // All executors of the host say the same, at different times.
        row.behind = executor.removed ? row.behind : Math.max(row.behind, executor.counter(BEHIND));
      }
    }
    for (ServiceFigures service : services) {
      Row row = row(service.host);
      row.blocks += service.counter(Traffic.SERVICE_BLOCKS);
      row.bytes += service.counter(Traffic.SERVICE_BYTES);
      row.copied += service.counter(Traffic.REPLICA_BLOCKS);
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
    html.raw("<h4>Node services</h4>").raw(Html.TABLE);
    html.heads("Host", "Executors registered", "of these ended", "Map outputs handed over", "Map outputs not kept",
        "Blocks read from it", "Bytes read from it", "Blocks read from lent files", "Copies behind",
        "Blocks read from copies elsewhere");
    rows.forEach((host, row) -> html.raw("<tr data-service=\"").text(host)
        .raw("\" data-outputs=\"" + row.outputs + "\" data-blocks=\"" + row.blocks + "\">").textCell(host)
        .cell(row.running + row.ended).cell(row.ended).cell(row.outputs).cell(row.refused)
        .cell(row.blocks).bytesCell(row.bytes).cell(row.lent).cell(row.behind).cell(row.copied).raw("</tr>"));
    html.raw("</tbody></table><p>").text("Handed over: by executors of the host, also for shuffles that were removed "
        + "since. Not kept: the service refused them or did not answer, so they are lost with their executor. "
        + "Read from it: over the network or shared memory. Lent files: that it gave to executors of its host. "
        + "Copies behind: of map outputs of the host, that other hosts do not have yet (spark.faro.replicas).")
        .raw("</p>");
  }
}
