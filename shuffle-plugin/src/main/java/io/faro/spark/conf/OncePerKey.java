package io.faro.spark.conf;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Tells the first time of each thing from the others, for what is logged once in an executor. */
public final class OncePerKey {
  private final Set<Object> known = ConcurrentHashMap.newKeySet();

  public boolean of(Object thing) {
    return known.add(thing);
  }
}
