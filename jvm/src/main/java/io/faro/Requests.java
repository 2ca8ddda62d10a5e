package io.faro;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Fetches in flight, by request number.
 *
 * <p>Native code chooses the number, so the first blocks can arrive before {@link #register} has stored the handle.
 * Submitters share a lock over both steps. A lookup that finds nothing waits for them and looks again. A request costs
 * one boxed number, a block nothing.
 */
final class Requests {
  /** Hands a request to native code and returns its number. */
  interface Submission {
    long submit() throws FaroException;
  }

  private final ConcurrentHashMap<Long, FetchHandle> byNumber = new ConcurrentHashMap<>();
  private final ReentrantReadWriteLock submitting = new ReentrantReadWriteLock();
  /** Set under the write lock, read under the read lock. */
  private boolean ended;

  void register(FetchHandle handle, Submission submission) throws FaroException {
    submitting.readLock().lock();
    try {
      if (ended) {
        throw new EndpointException.Closed("the endpoint is closed");
      }
      long request = submission.submit();
      handle.begun(request);
      byNumber.put(request, handle);
    } finally {
      submitting.readLock().unlock();
    }
  }

  FetchHandle find(long request) {
    FetchHandle handle = byNumber.get(request);
    if (handle == null) {
      submitting.writeLock().lock();
      submitting.writeLock().unlock();
      handle = byNumber.get(request);
    }
    return handle;
  }

  void remove(long request) {
    byNumber.remove(request);
  }

  /** Removes and returns all fetches. Later fetches are still accepted. */
  List<FetchHandle> takeAll() {
    submitting.writeLock().lock();
    try {
      List<FetchHandle> all = new ArrayList<>(byNumber.values());
      byNumber.clear();
      return all;
    } finally {
      submitting.writeLock().unlock();
    }
  }

  /** Removes and returns all fetches, and accepts no more. */
  List<FetchHandle> end() {
    submitting.writeLock().lock();
    try {
      ended = true;
    } finally {
      submitting.writeLock().unlock();
    }
    return takeAll();
  }

  int size() {
    return byNumber.size();
  }
}
