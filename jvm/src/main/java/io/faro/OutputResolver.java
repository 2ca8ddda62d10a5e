package io.faro;

/**
 * Says where a map output of this process lies, when a peer first asks for it. Called on one thread
 * ({@code faro-resolver}); asked lazily because outputs also arrive by migration, past every writer.
 */
public interface OutputResolver {
  /** The files, or {@code null}: there is no such output. What it throws is logged and means the same. */
  OutputFiles resolve(int shuffleId, long mapId) throws Exception;
}
