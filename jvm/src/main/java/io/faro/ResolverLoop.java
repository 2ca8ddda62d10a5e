package io.faro;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Body of {@code faro-resolver}: native code asks for the files of map outputs, and the {@link OutputResolver} answers.
 * Every question gets an answer, also "no such output", because a peer's request waits for it.
 */
final class ResolverLoop implements Runnable {
  private static final Logger LOG = LoggerFactory.getLogger(ResolverLoop.class);

  private static final int MAX_FAILURES = 8;
  private static final int QUESTIONS = 256;
  private static final long WAIT_MILLIS = 250;
  private static final int CLOSED = -1;

  private final long endpoint;
  private final OutputResolver resolver;

  ResolverLoop(long endpoint, OutputResolver resolver) {
    this.endpoint = endpoint;
    this.resolver = resolver;
  }

  @Override
  public void run() {
    long[] questions = new long[2 * QUESTIONS];
    int failures = 0;
    while (failures < MAX_FAILURES) {
      try {
        int count = Native.unresolved(endpoint, questions, WAIT_MILLIS);
        if (count == CLOSED) {
          return;
        }
        for (int i = 0; i < count; i++) {
          answer((int) questions[2 * i], questions[2 * i + 1]);
        }
        failures = 0;
      } catch (EndpointException.Closed e) {
        return;
      } catch (Throwable t) {
        failures++;
        LOG.error("Resolving map outputs failed ({} of {} times in a row)", failures, MAX_FAILURES, t);
      }
    }
    LOG.error("This process serves no more map outputs through Faro");
  }

  private void answer(int shuffleId, long mapId) throws FaroException {
    String data = null;
    String index = null;
    try {
      OutputFiles files = resolver.resolve(shuffleId, mapId);
      if (files != null) {
        data = files.data().getPath();
        index = files.index().getPath();
      }
    } catch (Throwable t) {
      LOG.warn("Map output {} of shuffle {} cannot be resolved; peers get the answer that there is none", mapId,
          shuffleId, t);
    }
    Native.resolve(endpoint, shuffleId, mapId, data, index);
  }
}
