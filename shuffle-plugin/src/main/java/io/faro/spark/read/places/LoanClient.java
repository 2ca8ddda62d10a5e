package io.faro.spark.read.places;

import java.util.Collection;
import java.util.Collections;
import java.util.Set;

/** Lends files of map outputs that the node service of this host keeps. The endpoint reads them as its own. */
public interface LoanClient {
  /** There is no node service. */
  LoanClient NONE = new LoanClient() {
    @Override
    public Set<String> near(Collection<String> executors) {
      return Collections.emptySet();
    }

    @Override
    public boolean[] borrow(int shuffle, long[] maps) {
      return new boolean[maps.length];
    }

    @Override
    public void read(long parts, long bytes) {}
  };

  /** Returns those of these executors whose outputs the node service of this host keeps. */
  Set<String> near(Collection<String> executors);

  /** Borrows map outputs. Returns for each whether it is lent; of many, some are lent when they are borrowed again. */
  boolean[] borrow(int shuffle, long[] maps);

  /** Counts what was read from lent files. */
  void read(long parts, long bytes);
}
