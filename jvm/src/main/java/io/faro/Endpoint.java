package io.faro;

import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves this process's map outputs to peers and fetches those of peers; one per process. Thread-safe.
 *
 * <p>Native threads do the work; they never attach to the JVM. Daemon Java threads connect both sides: {@code
 * faro-completions-N} take finished blocks and call the listeners, each for its share of the fetches; {@code
 * faro-resolver} finds the files of map outputs. All of them wait inside native code, so a finished block is not handed
 * over between Java threads.
 */
public final class Endpoint implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Endpoint.class);

  /** Maximum time for which {@link #close} waits for a listener or resolver that does not return. */
  private static final long CLOSE_WAIT_SECONDS = 10;

  private final long handle;
  private final Requests requests = new Requests();
  private final RegisteredBufferPool buffers;
  private final List<Thread> completions = new ArrayList<>();
  private final Thread resolver;
  private final AtomicBoolean closed = new AtomicBoolean();

  private Endpoint(long handle, int completionThreads, OutputResolver outputResolver) {
    this.handle = handle;
    this.buffers = new RegisteredBufferPool(new NativeBuffers(handle));
    for (int queue = 0; queue < completionThreads; queue++) {
      Runnable loop = new CompletionLoop(handle, queue, requests, new Slabs(handle));
      completions.add(daemon("faro-completions-" + queue, loop));
    }
    this.resolver = daemon("faro-resolver", new ResolverLoop(handle, outputResolver));
  }

  private static Thread daemon(String name, Runnable body) {
    Thread thread = new Thread(body, name);
    thread.setContextClassLoader(Endpoint.class.getClassLoader());
    thread.setDaemon(true);
    return thread;
  }

  /** Opens the fabrics and starts the threads, without a secret. */
  public static Endpoint start(EndpointConfig config, OutputResolver resolver) throws FaroException {
    return start(config, null, resolver);
  }

  /**
   * Opens the fabrics and starts the threads. Only endpoints with the same {@code secret} can connect; {@code null} is
   * no secret. Native code keeps a copy; the caller should overwrite the array after use.
   */
  public static Endpoint start(EndpointConfig config, byte[] secret, OutputResolver resolver) throws FaroException {
    Objects.requireNonNull(resolver, "resolver");
    Faro.ensureAvailability();
    long handle = Native.start(config.settings(), secret, config.completionThreads());
    boolean started = false;
    try {
      Endpoint endpoint = new Endpoint(handle, config.completionThreads(), resolver);
      endpoint.completions.forEach(Thread::start);
      endpoint.resolver.start();
      started = true;
      return endpoint;
    } finally {
      if (!started) {
        Native.close(handle);
        Native.free(handle);
      }
    }
  }

  /** Returns the card with which a peer can reach this endpoint: text of at most 4 KiB. */
  public byte[] card() throws FaroException {
    return Native.card(handle);
  }

  /**
   * Returns a handle for the endpoint behind a card; the same endpoint has the same handle. Does not connect. A peer
   * that gets no request for an hour is forgotten, and must be added again.
   */
  public long addPeer(byte[] card) throws FaroException {
    return addPeer(card, Collections.emptyList());
  }

  /**
   * Adds a peer with other addresses. {@code knownAt} are addresses of the peer's host as this host sees them, for
   * example those of its name. They are tried in their order, and then the card's.
   */
  public long addPeer(byte[] card, List<InetAddress> knownAt) throws FaroException {
    StringBuilder lines = new StringBuilder();
    for (InetAddress address : knownAt) {
      String text = address.getHostAddress();
      // A link-local address has no meaning without its interface.
      if (text.indexOf('%') < 0) {
        lines.append(text).append('\n');
      }
    }
    return Native.addPeer(handle, card, lines.toString());
  }

  /**
   * Starts a fetch and returns at once. {@code blocks} may be reused on return. The fetch fails after {@code
   * timeoutMillis} without progress; 0 stands for the endpoint's own timeout. If this throws, the listener is not
   * called.
   */
  public FetchHandle fetch(long peer, BlockIds blocks, long timeoutMillis, FetchListener listener)
      throws FaroException {
    return fetch(peer, blocks, timeoutMillis, listener, false);
  }

  /**
   * As {@link #fetch(long, BlockIds, long, FetchListener)}. {@code verifies}: the blocks' reader verifies them by
   * checksums in them, so they may arrive without being checked on the way.
   */
  public FetchHandle fetch(long peer, BlockIds blocks, long timeoutMillis, FetchListener listener, boolean verifies)
      throws FaroException {
    Objects.requireNonNull(listener, "listener");
    if (timeoutMillis < 0) {
      throw new IllegalArgumentException("timeout of " + timeoutMillis + " ms");
    }
    if (blocks.count() == 0 || blocks.count() > BlockIds.MAX_BLOCKS) {
      throw new IllegalArgumentException(
          "a request of " + blocks.count() + " blocks; it has 1 to " + BlockIds.MAX_BLOCKS);
    }
    FetchHandle fetch = new FetchHandle(this, peer, blocks.count(), listener);
    requests.register(fetch,
        () -> Native.fetch(handle, peer, blocks.direct(), blocks.count(), timeoutMillis, verifies));
    return fetch;
  }

  /**
   * Returns whether requests to the peer failed a short time ago, so that a new one is likely to cost a timeout. {@link
   * #fetch} sends one anyway: only the caller knows whether the blocks can come another way.
   */
  public boolean isBackedOff(long peer) {
    try {
      return Native.isBackedOff(handle, peer);
    } catch (FaroException e) {
      // The fetch itself says that the endpoint is closed.
      return false;
    }
  }

  /** Begins the peer's back-off because of a failure that native code could not see, such as a lost answer. */
  public void blame(long peer) {
    try {
      Native.blame(handle, peer);
    } catch (FaroException e) {
      LOG.trace("Peer {} failed after its endpoint was closed", peer);
    }
  }

  void cancel(long request) {
    try {
      Native.cancel(handle, request);
    } catch (EndpointException.Closed e) {
      LOG.trace("Request {} ended with its endpoint", request);
    } catch (FaroException e) {
      LOG.warn("Request {} cannot be cancelled; it ends at its deadline", request, e);
    }
  }

  /** Starts to stage a map output that is being written. Returns null if the endpoint stages none. */
  @Nullable public StagedOutput stage() {
    try {
      long staged = Native.stage(handle);
      return staged == 0 ? null : new StagedOutput(staged);
    } catch (FaroException e) {
      LOG.trace("A map output is written after its endpoint was closed", e);
      return null;
    }
  }

  /**
   * Announces a map output that was written. Depending on the settings it is staged in the arena: from {@code staged},
   * if that is not {@code null}, and the rest from the file.
   */
  public void committed(int shuffleId, long mapId, OutputFiles files, StagedOutput staged) {
    try {
      Native.committed(handle, shuffleId, mapId, files.data().getPath(), files.index().getPath(),
          staged == null ? 0 : staged.release());
    } catch (EndpointException.Closed e) {
      LOG.trace("Map output {}/{} was written after its endpoint was closed", shuffleId, mapId);
    } catch (FaroException e) {
      LOG.warn("Map output {}/{} is not read into the arena", shuffleId, mapId, e);
    }
  }

  /** Announces the files of a map output of this process, before {@link io.faro.rows.RowReader} reads it. */
  public void resolve(int shuffleId, long mapId, OutputFiles files) {
    try {
      Native.resolve(handle, shuffleId, mapId, files.data().getPath(), files.index().getPath());
    } catch (EndpointException.Closed e) {
      LOG.trace("Map output {}/{} was looked up after its endpoint was closed", shuffleId, mapId);
    } catch (FaroException e) {
      LOG.warn("Map output {}/{} cannot be read natively", shuffleId, mapId, e);
    }
  }

  /** Returns the pool of buffers of this endpoint's arena, which closes with the endpoint. */
  public RegisteredBufferPool buffers() {
    return buffers;
  }

  /** Forgets and closes all files of a shuffle that this endpoint serves. */
  public void forgetShuffle(int shuffleId) {
    try {
      Native.forgetShuffle(handle, shuffleId);
    } catch (EndpointException.Closed e) {
      LOG.trace("Shuffle {} ended with its endpoint", shuffleId);
    } catch (FaroException e) {
      LOG.warn("Files of shuffle {} stay open", shuffleId, e);
    }
  }

  /** Returns the counters by name, e.g. {@code remoteBlocks.tcp}; empty if the endpoint is closed. */
  public Map<String, Long> counters() {
    String text;
    try {
      text = Native.counters(handle);
    } catch (FaroException e) {
      LOG.debug("No counters", e);
      return Collections.emptyMap();
    }
    Map<String, Long> counters = new LinkedHashMap<>();
    for (String line : text.split("\n")) {
      int equals = line.indexOf('=');
      if (equals > 0) {
        counters.put(line.substring(0, equals), Long.parseUnsignedLong(line.substring(equals + 1)));
      }
    }
    return counters;
  }

  /** Returns the native handle, for Faro's other packages. Native code checks it on every use. */
  public long nativeHandle() {
    return handle;
  }

  int fetchesUnderWay() {
    return requests.size();
  }

  /**
   * Ends all fetches with {@link FetchError#CLOSING}, stops all threads. Blocks taken stay readable until they are
   * released. Idempotent; may be called from a listener.
   */
  @Override
  public void close() {
    if (!closed.compareAndSet(false, true)) {
      return;
    }
    buffers.close();
    try {
      Native.close(handle);
    } catch (FaroException e) {
      LOG.error("Cannot close the native endpoint", e);
    }
    boolean interrupted = join(resolver);
    for (Thread thread : completions) {
      interrupted |= join(thread);
    }
    CompletionLoop.abandonRest(requests, "the endpoint was closed");
    try {
      Native.free(handle);
    } catch (FaroException e) {
      LOG.error("Cannot free the native endpoint", e);
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Waits for a thread's end, even if interrupted. Returns whether the caller was interrupted. */
  private static boolean join(Thread thread) {
    if (thread == Thread.currentThread()) {
      return false;
    }
    boolean interrupted = false;
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(CLOSE_WAIT_SECONDS);
    for (long left = deadline - System.nanoTime(); thread.isAlive(); left = deadline - System.nanoTime()) {
      if (left <= 0) {
        LOG.warn("{} is still busy after {} s: its listener or resolver does not return", thread.getName(),
            CLOSE_WAIT_SECONDS);
        break;
      }
      try {
        thread.join(Math.max(1, TimeUnit.NANOSECONDS.toMillis(left)));
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    return interrupted;
  }
}
