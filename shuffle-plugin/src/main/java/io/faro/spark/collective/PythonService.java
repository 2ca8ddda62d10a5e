package io.faro.spark.collective;

import io.faro.FaroException;
import io.faro.collective.GroupedAllReduce;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.concurrent.TimeUnit;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the rounds of one task's Python worker: listens on the loopback interface, accepts one connection with the right
 * token, and ends with the task. A round has two more copies, through the kernel, than one in the JVM.
 *
 * <pre>
 *   worker   32 bytes of token
 *   service  u32 rank, u32 ranks
 *   worker   u8 operation (1 sum, 2 mean), u8 element (1 float, 2 double), u16 0, u32 count, values
 *   service  u32 0, values   or   u32 length, text of the error
 * </pre>
 *
 * Little-endian, the values as well.
 */
final class PythonService implements Runnable {
  private static final Logger LOG = LoggerFactory.getLogger(PythonService.class);

  private static final int TOKEN_BYTES = 32;
  /** The worker sends its token at once; another client may be held up or send nothing. */
  private static final long PROOF_NANOS = TimeUnit.SECONDS.toNanos(10);
  private static final int HEAD_BYTES = 8;
  /** Most bytes of one array: a direct buffer has at most {@code Integer.MAX_VALUE}. */
  private static final long MAX_BYTES = Integer.MAX_VALUE - 64;

  private final GroupedAllReduce team;
  private final WorkerPort port;
  private final byte[] token;
  /** The values of a round; reused by the next. */
  private ByteBuffer values = ByteBuffer.allocateDirect(0);

  private PythonService(GroupedAllReduce team, byte[] token) throws IOException {
    this.team = team;
    this.token = token;
    port = new WorkerPort(token, PROOF_NANOS);
  }

  static PythonService start(GroupedAllReduce team, TaskContext context) throws IOException {
    byte[] random = new byte[TOKEN_BYTES / 2];
    new SecureRandom().nextBytes(random);
    StringBuilder hex = new StringBuilder();
    for (byte one : random) {
      hex.append(String.format("%02x", one));
    }
    PythonService service = new PythonService(team, hex.toString().getBytes(StandardCharsets.US_ASCII));
    context.addTaskCompletionListener(new CloseOnCompletion(service.port));
    Thread thread = new Thread(service, "faro-python-" + context.partitionId());
    thread.setDaemon(true);
    thread.start();
    return service;
  }

  int port() throws IOException {
    return port.number();
  }

  String token() {
    return new String(token, StandardCharsets.US_ASCII);
  }

  @Override
  public void run() {
    try (SocketChannel worker = port.await()) {
      if (worker != null) {
        serve(worker);
      }
    } catch (ClosedChannelException e) {
      LOG.trace("The task is over", e);
    } catch (IOException e) {
      LOG.warn("The connection to the Python worker of rank {} is lost: {}", team.rank(), e.toString());
    } finally {
      // Without its worker this member runs no more rounds.
      team.close();
    }
  }

  private static void fill(SocketChannel from, ByteBuffer into) throws IOException {
    while (into.hasRemaining()) {
      if (from.read(into) < 0) {
        throw new EOFException("the connection ended with " + into.remaining() + " bytes missing");
      }
    }
    into.flip();
  }

  private static void drain(SocketChannel to, ByteBuffer from) throws IOException {
    while (from.hasRemaining()) {
      to.write(from);
    }
  }

  private static ByteBuffer little(int bytes) {
    return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  private void serve(SocketChannel worker) throws IOException {
    ByteBuffer hello = little(HEAD_BYTES).putInt(team.rank()).putInt(team.ranks());
    hello.flip();
    drain(worker, hello);
    ByteBuffer head = little(HEAD_BYTES);
    while (true) {
      head.clear();
      if (worker.read(head) < 0) {
        return;
      }
      fill(worker, head);
      int operation = head.get();
      int size = head.get() == 2 ? Double.BYTES : Float.BYTES;
      head.getShort();
      long length = (head.getInt() & 0xffffffffL) * size;
      if (length > MAX_BYTES) {
        throw new IOException("an array of " + length + " bytes, at most " + MAX_BYTES + " are possible");
      }
      if (values.capacity() < length) {
        values = ByteBuffer.allocateDirect((int) length);
      }
      values.clear().limit((int) length);
      fill(worker, values);
      answer(worker, reduce(operation, size));
    }
  }

  /** Null, or the text of the error. */
  private String reduce(int operation, int size) {
    ByteBuffer round = values.duplicate().order(ByteOrder.nativeOrder());
    try {
      if (operation < 1 || operation > 3) {
        return "operation " + operation + ", allowed: 1 (sum), 2 (mean), 3 (mean of all)";
      }
      if (size == Double.BYTES && operation == 3) {
        team.meanOfAll(round.asDoubleBuffer());
      } else if (operation == 3) {
        team.meanOfAll(round.asFloatBuffer());
      } else if (size == Double.BYTES && operation == 2) {
        team.mean(round.asDoubleBuffer());
      } else if (size == Double.BYTES) {
        team.sum(round.asDoubleBuffer());
      } else if (operation == 2) {
        team.mean(round.asFloatBuffer());
      } else {
        team.sum(round.asFloatBuffer());
      }
      return null;
    } catch (FaroException | RuntimeException e) {
      return e.getMessage() == null ? e.toString() : e.getMessage();
    }
  }

  private void answer(SocketChannel worker, String problem) throws IOException {
    byte[] text = problem == null ? new byte[0] : problem.getBytes(StandardCharsets.UTF_8);
    ByteBuffer head = little(Integer.BYTES + text.length).putInt(text.length).put(text);
    head.flip();
    drain(worker, head);
    if (problem == null) {
      drain(worker, values);
    }
  }

  /** Ends the waiting for a worker with its task. */
  private static final class CloseOnCompletion implements TaskCompletionListener {
    private final WorkerPort port;

    CloseOnCompletion(WorkerPort port) {
      this.port = port;
    }

    @Override
    public void onTaskCompletion(TaskContext context) {
      try {
        port.close();
      } catch (IOException e) {
        LOG.debug("Closing a port", e);
      }
    }
  }
}
