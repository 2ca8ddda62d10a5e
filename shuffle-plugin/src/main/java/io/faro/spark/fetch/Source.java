package io.faro.spark.fetch;

import io.faro.BlockIds;
import io.faro.spark.peers.PeerKey;
import io.faro.spark.read.groups.BlockListener;

/** A place that may have blocks of an executor. {@link SourceChain} decides which one is asked next. */
interface Source {
  /** Asks for blocks of the executor {@code peer}. */
  void ask(PeerKey peer, BlockIds ids, TaskFetches.Task task, BlockListener listener);
}
