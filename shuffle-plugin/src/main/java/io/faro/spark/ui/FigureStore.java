package io.faro.spark.ui;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.util.kvstore.KVStore;
import org.apache.spark.util.kvstore.KVStoreIterator;

/**
 * The figures in Spark's status store, from which the page reads: in the driver while the application runs, and in the
 * history server, which may keep the store on disk and not read the event log again. Bounded: it keeps the newest
 * shuffles, drops executors that ended above a number of executors, and services above a number of hosts.
 */
final class FigureStore {
  static final int MAX_SHUFFLES = 1_000;
  static final int MAX_EXECUTORS = 5_000;
  static final int MAX_SERVICES = 5_000;

  private final KVStore store;

  FigureStore(KVStore store) {
    this.store = store;
  }

  void put(ExecutorFigures figures) throws Exception {
    store.write(figures);
    if (store.count(ExecutorFigures.class) > MAX_EXECUTORS) {
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
    if (store.count(ShuffleFigures.class) > MAX_SHUFFLES) {
      // In the order of their ids.
      store.delete(ShuffleFigures.class, all(ShuffleFigures.class).get(0).shuffle);
    }
  }

  void put(ServiceFigures figures) throws Exception {
    store.write(figures);
    if (store.count(ServiceFigures.class) > MAX_SERVICES) {
      store.delete(ServiceFigures.class, services().get(0).host);
    }
  }

  boolean isEmpty() throws Exception {
    return store.count(ExecutorFigures.class) == 0;
  }

  /** In the order of ids; numbers in their own order. */
  List<ExecutorFigures> executors() throws Exception {
    List<ExecutorFigures> all = all(ExecutorFigures.class);
    all.sort(Comparator.comparingInt((ExecutorFigures figures) -> figures.executor.length())
        .thenComparing(figures -> figures.executor));
    return all;
  }

  /** In the order of ids. */
  List<ShuffleFigures> shuffles() throws Exception {
    return all(ShuffleFigures.class);
  }

  /** In the order of hosts. */
  List<ServiceFigures> services() throws Exception {
    return all(ServiceFigures.class);
  }

  private <T> List<T> all(Class<T> type) throws Exception {
    List<T> all = new ArrayList<>();
    // A store on disk leaks iterators that are not closed.
    try (KVStoreIterator<T> rows = store.view(type).closeableIterator()) {
      while (rows.hasNext()) {
        all.add(rows.next());
      }
    }
    return all;
  }
}
