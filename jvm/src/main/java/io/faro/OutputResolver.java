package io.faro;

/**
 * Finds the files of a map output of this process when a peer first requests it. One thread ({@code faro-resolver})
 * makes all calls. The writers of outputs cannot announce them, because outputs also arrive by migration.
 */
public interface OutputResolver {
  /** Returns the files. Null, or an exception, which is logged, means that there is no such output. */
  @Nullable OutputFiles resolve(int shuffleId, long mapId) throws Exception;
}
