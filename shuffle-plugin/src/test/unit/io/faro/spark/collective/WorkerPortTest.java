package io.faro.spark.collective;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Other processes at the port of a Python worker. */
class WorkerPortTest {
  private static final byte[] TOKEN = "0123456789abcdef0123456789abcdef".getBytes(StandardCharsets.US_ASCII);

  private WorkerPort port;
  private int number;
  private CompletableFuture<SocketChannel> found;
  private final List<Socket> sockets = new ArrayList<>();

  @BeforeEach
  void listen() throws IOException {
    listen(TimeUnit.MINUTES.toNanos(10));
  }

  @AfterEach
  void close() throws IOException {
    port.close();
    for (Socket socket : sockets) {
      socket.close();
    }
  }

  private void listen(long proofNanos) throws IOException {
    port = new WorkerPort(TOKEN, proofNanos);
    number = port.number();
    found = CompletableFuture.supplyAsync(() -> {
      try {
        return port.await();
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }
    });
  }

  private Socket connect() throws IOException {
    Socket socket = new Socket(InetAddress.getLoopbackAddress(), number);
    sockets.add(socket);
    return socket;
  }

  private void assertTheWorkerIsFound() throws Exception {
    Socket worker = connect();
    worker.getOutputStream().write(TOKEN);
    worker.getOutputStream().write(7);
    try (SocketChannel channel = found.get()) {
      assertTrue(channel.isBlocking());
      ByteBuffer next = ByteBuffer.allocate(1);
      channel.read(next);
      assertEquals(7, next.get(0));
    }
  }

  private static void assertEnded(Socket socket) throws IOException {
    int end;
    try {
      end = socket.getInputStream().read();
    } catch (SocketException e) {
      end = -1;
    }
    assertEquals(-1, end);
  }

  @Test
  void oneThatSaysNothingHoldsUpNobody() throws Exception {
    connect();
    connect().getOutputStream().write(TOKEN, 0, 5);
    assertTheWorkerIsFound();
  }

  @Test
  void aResetAndAnotherTokenEndTheirConnectionOnly() throws Exception {
    Socket reset = connect();
    reset.getOutputStream().write(1);
    reset.setSoLinger(true, 0);
    reset.close();
    Socket other = connect();
    other.getOutputStream().write(new byte[TOKEN.length]);
    assertEnded(other);
    assertTheWorkerIsFound();
  }

  @Test
  void theOldestMakesRoom() throws Exception {
    Socket oldest = connect();
    for (int i = 0; i < WorkerPort.MOST; i++) {
      connect();
    }
    assertEnded(oldest);
    assertTheWorkerIsFound();
  }

  @Test
  void oneThatIsLateIsClosed() throws Exception {
    port.close();
    listen(1);
    assertEnded(connect());
  }

  @Test
  void aPortThatIsClosedFindsNone() throws Exception {
    connect();
    port.close();
    assertNull(found.get());
  }
}
