package io.faro.spark.read;

import java.util.Collections;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;

/**
 * What a reader fetches, by Spark's iterator with its limits and retries: first what its plan says, from the start on;
 * then, when all files were read, the parts that lent files did not give.
 */
final class PlanFetches {
  private final RowReaders readers;
  private final int shuffle;
  private final BlockManager blocks;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final ReaderEnd end;
  private final RefusedLoans notLent = new RefusedLoans();
  /** {@code null}: none is under way. */
  private FetchedBlocks current;

  private PlanFetches(RowReaders readers, int shuffle, BlockManager blocks, TaskContext context,
      ShuffleReadMetricsReporter metrics, ReaderEnd end) {
    this.readers = readers;
    this.shuffle = shuffle;
    this.blocks = blocks;
    this.context = context;
    this.metrics = metrics;
    this.end = end;
  }

  /**
   * Gives the parts in files of this host to {@code local}, and starts to fetch the others. {@code records} and the
   * requests end with {@code end}, at the latest with the task.
   */
  static PlanFetches start(RowReaders readers, ReadPlan plan, BlockManager blocks, TaskContext context,
      ShuffleReadMetricsReporter metrics, ReaderEnd.Records records, ReaderEnd end,
      BiConsumer<Parts, LocalFiles> local) {
    PlanFetches fetches = new PlanFetches(readers, plan.own.shuffle, blocks, context, metrics, end);
    end.begin(records);
    boolean started = false;
    try {
      local.accept(plan.own, new OwnFiles(blocks, readers.outputs, readers.endpoint));
      plan.host.forEach((address, parts) -> local.accept(parts, new HostFiles(address, blocks, readers.outputs,
          readers.endpoint, readers.directories.of(address, blocks, context))));
      plan.lent.forEach((address, parts) -> local.accept(
          parts, new LentFiles(address, readers.lender, LentPart.Files.of(readers.endpoint), fetches.notLent)));
      fetches.fetch(plan);
      started = true;
      return fetches;
    } finally {
      if (!started) {
        end.run();
      }
    }
  }

  private void fetch(ReadPlan plan) {
    if (!plan.fetched.isEmpty()) {
      GroupFetch client = new GroupFetch(blocks.blockStoreClient(), readers.client, plan.groups);
      end.fetches(client);
      current = new FetchedBlocks(plan, client, readers.conf, blocks, context, metrics);
    }
    // A task's listeners run in the reverse order: the records let go of fetched bytes before Spark's iterator, which
    // has registered its own by now, releases them.
    context.addTaskCompletionListener(end);
  }

  /**
   * Fetches one part, beside what is under way, waits for it, and makes a source of it. Nothing of it has to be given
   * up when the reader ends: a group of one part is handed over to Spark's iterator when it arrives.
   */
  <S> S one(BlockManagerId address, Parts part, SecondFetch secondFetch, PartFailure failure,
      Function<FetchedGroup, S> ofGroup, Function<StreamPart, S> ofPart) {
    ReadPlan plan = ReadPlan.of(shuffle, Collections.singletonMap(address, part),
        BlockPlaces.overTheNetwork(blocks), readers.conf.limits());
    GroupFetch client = new GroupFetch(blocks.blockStoreClient(), readers.client, plan.groups);
    FetchedBlocks fetched = new FetchedBlocks(plan, client, readers.conf, blocks, context, metrics);
    // See fetch: before Spark's iterator.
    context.addTaskCompletionListener(end);
    return fetched.next(secondFetch, failure, ofGroup, ofPart);
  }

  /**
   * Waits for the next block, and makes a source of it: of a group, or of the stream of a part; {@code null}: there are
   * none left. To be called when all files were read, as the rest is known then.
   */
  <S> S next(SecondFetch secondFetch, PartFailure failure, Function<FetchedGroup, S> ofGroup,
      Function<StreamPart, S> ofPart) {
    while (true) {
      S source = current == null ? null : current.next(secondFetch, failure, ofGroup, ofPart);
      if (source != null) {
        return source;
      }
      current = null;
      if (notLent.isEmpty()) {
        return null;
      }
      Map<BlockManagerId, Parts> rest = notLent.take();
      fetch(ReadPlan.of(shuffle, rest, BlockPlaces.overTheNetwork(blocks), readers.conf.limits()));
    }
  }
}
