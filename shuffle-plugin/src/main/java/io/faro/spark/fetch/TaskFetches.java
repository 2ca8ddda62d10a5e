package io.faro.spark.fetch;

import io.faro.BlockIds;
import io.faro.Nullable;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.TaskContext;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.util.TaskCompletionListener;

/**
 * The requests of the tasks that run here. With its end, also when it is killed, a task's requests are cancelled:
 * nothing waits for their blocks. Also finds the block that a reader of a task asks for a second time: Spark does that
 * once for a block that it cannot decompress or whose checksum is wrong.
 */
final class TaskFetches {
  private final Map<Long, Task> tasks = new ConcurrentHashMap<>();

  /** The task of this thread; null if there is none. */
  @Nullable Task current() {
    TaskContext context = TaskContext.get();
    if (context == null) {
      return null;
    }
    long id = context.taskAttemptId();
    Task known = tasks.get(id);
    if (known != null) {
      return known;
    }
    Task task = new Task();
    known = tasks.putIfAbsent(id, task);
    if (known != null) {
      return known;
    }
    // Spark calls the listener at once if the task has ended already.
    context.addTaskCompletionListener((TaskCompletionListener) ended -> {
      tasks.remove(id);
      task.end();
    });
    return task;
  }

  int size() {
    return tasks.size();
  }

  /** A task that has fetched blocks. */
  static final class Task {
    private final Set<FetchCall> calls = ConcurrentHashMap.newKeySet();
    /**
     * Blocks that each reader (Spark's fetch iterator) has asked for. Guarded by this. A task may have thousands of
     * readers, one after the other, so this keeps none of them.
     */
    private final Map<ReaderKey, BlockHashes> asked = new HashMap<>();
    private final ReferenceQueue<Object> gone = new ReferenceQueue<>();

    private volatile boolean over;

    /** Abandons the request at once if the task is over. */
    void begin(FetchCall call) {
      calls.add(call);
      if (over) {
        call.abandon();
      }
    }

    void ended(FetchCall call) {
      calls.remove(call);
    }

    private void end() {
      over = true;
      calls.forEach(FetchCall::abandon);
      calls.clear();
    }

    /** Returns whether the request is for one block that the same reader has asked for before. */
    synchronized boolean asksAgain(BlockFetchingListener listener, BlockIds ids) {
      Object reader = READER.get(listener.getClass()).of(listener);
      if (reader == null) {
        return false;
      }
      for (Reference<?> key = gone.poll(); key != null; key = gone.poll()) {
        asked.remove(key);
      }
      BlockHashes before = asked.computeIfAbsent(new ReaderKey(reader, gone), key -> new BlockHashes());
      boolean again = false;
      for (int i = 0; i < ids.count(); i++) {
        again = !before.add(hash(ids, i));
      }
      return again && ids.count() == 1;
    }

    private static long hash(BlockIds ids, int i) {
      long hash = mix(ids.shuffle(i) * 31L + ids.map(i));
      return mix(hash ^ ((long) ids.start(i) << 32 | ids.end(i)));
    }

    private static long mix(long value) {
      long z = (value ^ value >>> 30) * 0xBF58476D1CE4E5B9L;
      z = (z ^ z >>> 27) * 0x94D049BB133111EBL;
      return z ^ z >>> 31;
    }
  }

  /** A reader, by identity, which it does not keep alive. */
  private static final class ReaderKey extends WeakReference<Object> {
    private final int hash;

    ReaderKey(Object reader, ReferenceQueue<Object> gone) {
      super(reader, gone);
      hash = System.identityHashCode(reader);
    }

    @Override
    public int hashCode() {
      return hash;
    }

    @Override
    public boolean equals(Object other) {
      // A key whose reader is gone equals only itself.
      Object reader = get();
      return this == other || reader != null && other instanceof ReaderKey && ((ReaderKey) other).get() == reader;
    }
  }

  /** A listener's reader: Spark's listeners are anonymous classes in the fetch iterator. */
  private static final ClassValue<OuterFetch> READER = new ClassValue<OuterFetch>() {
    @Override
    protected OuterFetch computeValue(Class<?> type) {
      try {
        Field field = type.getDeclaredField("$outer");
        field.setAccessible(true);
        return new OuterFetch(field);
      } catch (ReflectiveOperationException | RuntimeException e) {
        return new OuterFetch(null);
      }
    }
  };

  private static final class OuterFetch {
    private final Field field;

    OuterFetch(Field field) {
      this.field = field;
    }

    /** Null if it is not known; the block is then fetched again in the same way. */
    @Nullable Object of(Object listener) {
      try {
        return field == null ? null : field.get(listener);
      } catch (IllegalAccessException e) {
        return null;
      }
    }
  }

  /** A set of 64-bit hashes, 16 to 32 bytes each: a reader may ask for hundreds of thousands of blocks. */
  static final class BlockHashes {
    private long[] slots = new long[16];
    private int count;

    /** False: it was there. */
    boolean add(long hash) {
      // 0 is an empty slot.
      long key = hash == 0 ? 1 : hash;
      if (2 * count >= slots.length) {
        long[] old = slots;
        slots = new long[2 * old.length];
        Arrays.stream(old).filter(each -> each != 0).forEach(each -> slots[slotOf(each)] = each);
      }
      int slot = slotOf(key);
      if (slots[slot] == key) {
        return false;
      }
      slots[slot] = key;
      count++;
      return true;
    }

    /** The key's slot, or the free one where it belongs. */
    private int slotOf(long key) {
      int slot = (int) key & slots.length - 1;
      while (slots[slot] != 0 && slots[slot] != key) {
        slot = slot + 1 & slots.length - 1;
      }
      return slot;
    }
  }
}
