package io.faro.spark.read.groups;

import io.faro.Endpoint;
import io.faro.spark.read.places.HostDirectories;
import io.faro.spark.read.places.LoanClient;
import io.faro.spark.read.places.LocalFiles.OutputFinder;
import io.faro.spark.read.places.ReadPlan;
import org.apache.spark.TaskContext;
import org.apache.spark.storage.BlockManager;

/** What the readers of an executor share. */
public final class ReaderContext {
  public final ReaderConf conf;
  public final Endpoint endpoint;
  public final LoanClient lender;
  public final HostDirectories directories;
  final PartClient client;
  final OutputFinder outputs;

  public ReaderContext(ReaderConf conf, PartClient client, Endpoint endpoint, OutputFinder outputs, LoanClient lender,
      HostDirectories directories) {
    this.conf = conf;
    this.client = client;
    this.endpoint = endpoint;
    this.outputs = outputs;
    this.lender = lender;
    this.directories = directories;
  }

  /** The client by which one reader fetches what its plan says. */
  GroupFetch fetch(BlockManager blocks, ReadPlan plan) {
    return new GroupFetch(blocks.blockStoreClient(), client, plan.groups, conf.partsHaveChecksums());
  }

  /** How the reader of a task fetches damaged parts once more. */
  public SecondFetch secondFetch(TaskContext context, PartFailure failure) {
    return new SecondFetch(client, context, failure);
  }
}
