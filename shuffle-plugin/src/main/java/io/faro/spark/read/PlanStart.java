package io.faro.spark.read;

import java.util.function.BiConsumer;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockManager;

/** Starts the local and remote reads of a plan, for every reader. */
final class PlanStart {
  private PlanStart() {}

  /**
   * Gives the parts in files of this host to {@code local}, and starts to fetch the others; {@code null}: there are
   * none. {@code records} and the requests end with {@code end}, at the latest with the task.
   */
  static FetchedBlocks of(RowReaders readers, ReadPlan plan, BlockManager blocks, TaskContext context,
      ShuffleReadMetricsReporter metrics, ReaderEnd.Records records, ReaderEnd end,
      BiConsumer<Parts, LocalFiles> local) {
    GroupFetch client = new GroupFetch(blocks.blockStoreClient(), readers.client, plan.groups);
    end.begin(records, client);
    boolean started = false;
    try {
      local.accept(plan.own, new OwnFiles(blocks, readers.outputs, readers.endpoint));
      plan.host.forEach((address, parts) -> local.accept(parts, new HostFiles(address, blocks, readers.outputs,
          readers.endpoint, readers.directories.of(address, blocks, context))));
      PartFetch network = new PartFetch(readers.client, context);
      plan.lent.forEach((address, parts) -> local.accept(
          parts, new LentFiles(address, readers.lender, readers.endpoint, network)));
      FetchedBlocks fetched = plan.fetched.isEmpty() ? null
          : new FetchedBlocks(plan, client, readers.conf, blocks, context, metrics);
      // A task's listeners run in the reverse order: the records let go of fetched bytes before Spark's iterator,
      // which has registered its own by now, releases them.
      context.addTaskCompletionListener(end);
      started = true;
      return fetched;
    } finally {
      if (!started) {
        end.run();
      }
    }
  }
}
