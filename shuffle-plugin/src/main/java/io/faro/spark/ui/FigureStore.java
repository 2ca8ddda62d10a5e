package io.faro.spark.ui;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.util.kvstore.KVStore;
import org.apache.spark.util.kvstore.KVStoreIterator;

/**
 * The figures in Spark's status store, where the page finds them: in the driver while the application runs, and in the
 * history server, which may keep a store on disk and never read the event log again. Bounded: the newest shuffles, and
 * executors up to a number that no page can show anyway.
 */
final class FigureStore {
  static final int MOST_SHUFFLES = 1_000;
  static final int MOST_EXECUTORS = 5_000;

  private final KVStore store;

  FigureStore(KVStore store) {
    this.store = store;
  }

  void put(ExecutorFigures figures) throws Exception {
    store.write(figures);
    if (store.count(ExecutorFigures.class) > MOST_EXECUTORS) {
      for (ExecutorFigures old : all(ExecutorFigures.class)) {
        if (old.removed) {
          store.delete(ExecutorFigures.class, old.executor);
          return;
        }
      }
    }
  }

  void put(ShuffleFigures figures) throws Exception {
    store.write(figures);
    if (store.count(ShuffleFigures.class) > MOST_SHUFFLES) {
      // In the order of their ids.
      store.delete(ShuffleFigures.class, all(ShuffleFigures.class).get(0).shuffle);
    }
  }

  boolean isEmpty() throws Exception {
    return store.count(ExecutorFigures.class) == 0;
  }

  /** By id, as numbers where they are. */
  List<ExecutorFigures> executors() throws Exception {
    List<ExecutorFigures> all = all(ExecutorFigures.class);
    all.sort(Comparator.comparingInt((ExecutorFigures figures) -> figures.executor.length())
        .thenComparing(figures -> figures.executor));
    return all;
  }

  /** By id. */
  List<ShuffleFigures> shuffles() throws Exception {
    return all(ShuffleFigures.class);
  }

  private <T> List<T> all(Class<T> type) throws Exception {
    List<T> all = new ArrayList<>();
    // A store on disk wants its iterators closed.
    try (KVStoreIterator<T> rows = store.view(type).closeableIterator()) {
      while (rows.hasNext()) {
        all.add(rows.next());
      }
    }
    return all;
  }
}
