package io.faro.spark.fetch;

import io.faro.BlockIds;
import io.faro.Nullable;
import io.faro.spark.metrics.Reason;
import io.faro.spark.peers.PeerKey;
import io.faro.spark.read.groups.BlockListener;
import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.RejectedExecutionException;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.DownloadFileManager;

/**
 * Fetches the blocks of one request into files, one block after the other, in pieces, so that a block may be larger
 * than all of the arena. The first piece that is not full is a block's last: a map status gives no exact lengths.
 */
final class FileFetch {
  /** Pieces of a block that were asked for and are not in the file: 16 MiB. */
  static final int AHEAD = 4;

  private final SourceChain sources;
  private final PeerKey peer;
  private final BlockIds ids;
  private final String[] names;
  private final BlockFetchingListener listener;
  private final DownloadFileManager files;
  private final TaskFetches.Task task;
  private final DownloadFiles toFile;
  private final FallBack fallBack;

  FileFetch(SourceChain sources, PeerKey peer, BlockIds ids, String[] names, BlockFetchingListener listener,
      DownloadFileManager files, TaskFetches.Task task, DownloadFiles toFile, FallBack fallBack) {
    this.sources = sources;
    this.peer = peer;
    this.ids = ids;
    this.names = names;
    this.listener = listener;
    this.files = files;
    this.task = task;
    this.toFile = toFile;
    this.fallBack = fallBack;
  }

  /** On the task's thread. */
  void start() {
    start(0, true);
  }

  private void start(int at, boolean byTask) {
    if (at < ids.count()) {
      Block block = new Block(at);
      for (int piece = 1; piece <= AHEAD; piece++) {
        block.ask(piece, byTask);
      }
    }
  }

  /** Faro does not deliver the blocks from {@code at} on. */
  private void leave(int at, Reason reason, Throwable cause, boolean onTaskThread) {
    String[] left = Arrays.copyOfRange(names, at, names.length);
    fallBack.take(new FallBack.UndeliveredBlocks(peer, left, listener, files, reason, cause), onTaskThread);
  }

  private enum State {
    /** For the next piece. */
    WAITING,
    WRITING,
    /** The block is over, and a thread still writes: it deletes the file. */
    STOPPING,
    ENDED
  }

  /** One block on its way into its file. */
  private final class Block {
    private final int at;
    /** Null if nothing was written. Used by the thread that writes, or else by the one that ends the block. */
    @Nullable private DownloadFiles.Block file;
    // All that follows is guarded by this.
    private State state = State.WAITING;
    /** Pieces that have arrived and are not written, by their number modulo AHEAD. */
    private final ManagedBuffer[] arrived = new ManagedBuffer[AHEAD];
    private int written;

    Block(int at) {
      this.at = at;
    }

    void ask(int piece, boolean byTask) {
      synchronized (this) {
        if (state == State.STOPPING || state == State.ENDED) {
          return;
        }
      }
      BlockIds one = new BlockIds(1).add(ids.shuffle(at), ids.map(at), ids.start(at), ids.end(at), piece);
      sources.start(peer, one, new Piece(this, piece, byTask), task);
    }

    void arrived(int piece, ManagedBuffer data) {
      synchronized (this) {
        if (state == State.STOPPING || state == State.ENDED) {
          data.release();
          return;
        }
        arrived[piece % AHEAD] = data;
        if (state == State.WRITING || piece != written + 1) {
          return;
        }
        state = State.WRITING;
      }
      try {
        toFile.threads.execute(this::write);
      } catch (RejectedExecutionException e) {
        fail(Reason.CLOSING, e);
      }
    }

    /** Writes what has arrived in its order. */
    private void write() {
      try {
        for (ManagedBuffer data = next(); data != null; data = next()) {
          boolean last = data.size() < toFile.pieceBytes;
          append(data);
          if (last) {
            finish();
            return;
          }
          ask(written() + AHEAD, false);
        }
      } catch (Throwable e) {
        fail(Reason.OTHER, e);
      }
    }

    /** Null if the calling thread has nothing more to write. */
    @Nullable private ManagedBuffer next() {
      synchronized (this) {
        if (state == State.WRITING) {
          int slot = (written + 1) % AHEAD;
          ManagedBuffer data = arrived[slot];
          arrived[slot] = null;
          if (data == null) {
            state = State.WAITING;
          }
          return data;
        }
        state = State.ENDED;
      }
      discard();
      return null;
    }

    private void append(ManagedBuffer data) throws IOException {
      try {
        if (file == null) {
          file = toFile.create(files);
        }
        file.append(data);
      } finally {
        data.release();
      }
      synchronized (this) {
        written++;
      }
    }

    private synchronized int written() {
      return written;
    }

    private void finish() throws IOException {
      if (stopWriting()) {
        discard();
        return;
      }
      ManagedBuffer whole;
      try {
        whole = file.finish();
      } catch (IOException | RuntimeException e) {
        discard();
        leave(at, Reason.OTHER, e, false);
        return;
      }
      fallBack.give(listener, names[at], whole);
      start(at + 1, false);
    }

    /** The thread that writes cannot go on. */
    private void fail(Reason reason, Throwable cause) {
      boolean stopped = stopWriting();
      discard();
      if (!stopped) {
        leave(at, reason, cause, false);
      }
    }

    /** To ENDED, from the thread that writes; true: the block was over already. */
    private synchronized boolean stopWriting() {
      boolean stopped = state == State.STOPPING;
      state = State.ENDED;
      releaseArrived();
      return stopped;
    }

    /** {@code reason}: null if nothing waits for the block any more. */
    void end(@Nullable Reason reason, @Nullable Throwable cause, boolean onTaskThread) {
      synchronized (this) {
        switch (state) {
          case WAITING:
            state = State.ENDED;
            discardSoon();
            break;
          case WRITING:
            state = State.STOPPING;
            break;
          default:
            return;
        }
        releaseArrived();
      }
      if (reason != null) {
        leave(at, reason, cause, onTaskThread);
      }
    }

    private synchronized void releaseArrived() {
      for (int i = 0; i < AHEAD; i++) {
        if (arrived[i] != null) {
          arrived[i].release();
          arrived[i] = null;
        }
      }
    }

    /** Deleting a large file takes a while. */
    private void discardSoon() {
      try {
        toFile.threads.execute(this::discard);
      } catch (RejectedExecutionException e) {
        discard();
      }
    }

    private void discard() {
      if (file != null) {
        file.discard();
      }
    }
  }

  /** The request for one piece. */
  private static final class Piece implements BlockListener {
    private final Block block;
    private final int number;
    private final boolean byTask;

    Piece(Block block, int number, boolean byTask) {
      this.block = block;
      this.number = number;
      this.byTask = byTask;
    }

    @Override
    public void arrived(int at, ManagedBuffer data) {
      block.arrived(number, data);
    }

    @Override
    public void left(int[] at, Reason reason, Throwable cause, boolean onTaskThread) {
      block.end(reason, cause, onTaskThread && byTask);
    }

    @Override
    public void abandoned() {
      block.end(null, null, false);
    }
  }
}
