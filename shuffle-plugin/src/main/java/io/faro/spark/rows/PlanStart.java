package io.faro.spark.rows;

import java.io.Closeable;
import java.io.IOException;
import java.util.function.BiConsumer;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.util.TaskCompletionListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What every reader does with its plan before it reads. */
final class PlanStart {
  private static final Logger LOG = LoggerFactory.getLogger(PlanStart.class);

  private PlanStart() {}

  /**
   * Gives the parts in files of this host to {@code local}, and starts to fetch the others; {@code null}: there are
   * none. {@code records} and the requests end with the task.
   */
  static FetchedBlocks of(RowReaders readers, ReadPlan plan, BlockManager blocks, TaskContext context,
      ShuffleReadMetricsReporter metrics, Closeable records, BiConsumer<Parts, LocalFiles> local) {
    GroupFetch client = new GroupFetch(blocks.blockStoreClient(), readers.client, plan.groups);
    context.addTaskCompletionListener((TaskCompletionListener) ended -> {
      try {
        records.close();
      } catch (IOException e) {
        LOG.warn("Faro: a block of an ended task cannot be closed", e);
      } finally {
        client.close();
      }
    });
    local.accept(plan.own, new OwnFiles(blocks, readers.outputs));
    plan.host.forEach((address, parts) -> local.accept(
        parts, new HostFiles(address, blocks, readers.outputs, context, readers.directories)));
    return plan.fetched.isEmpty() ? null
        : new FetchedBlocks(plan, client, readers.conf, blocks, context, metrics);
  }
}
