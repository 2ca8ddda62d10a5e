package io.faro.spark.collective;

import io.faro.Nullable;
import java.io.Closeable;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.security.MessageDigest;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A port of the loopback interface for one worker: the first connection that sends the token. Every process of the
 * machine can connect. So each connection has a while to send its token, at most {@link #MOST} wait for that at once,
 * of which the oldest makes room for a new one, and a connection that fails ends alone.
 */
final class WorkerPort implements Closeable {
  private static final Logger LOG = LoggerFactory.getLogger(WorkerPort.class);

  /** Connections that have not sent their token. */
  static final int MOST = 16;
  private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final byte[] token;
  private final long proofNanos;
  private final Selector selector;
  private final ServerSocketChannel server;
  private final SelectionKey listening;
  /** The oldest first. */
  private final ArrayDeque<UnauthenticatedClient> unauthenticated = new ArrayDeque<>();

  /** {@code proofNanos}: what a connection has to send its token. */
  WorkerPort(byte[] token, long proofNanos) throws IOException {
    this.token = token;
    this.proofNanos = proofNanos;
    selector = Selector.open();
    server = ServerSocketChannel.open();
    server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), MOST);
    server.configureBlocking(false);
    listening = server.register(selector, SelectionKey.OP_ACCEPT);
  }

  int number() throws IOException {
    return ((InetSocketAddress) server.getLocalAddress()).getPort();
  }

  /** Waits for the worker and closes the port; its connection blocks. Null if another thread closed the port. */
  @Nullable SocketChannel await() throws IOException {
    try {
      while (true) {
        selector.select(waitMillis());
        SocketChannel worker = proven();
        if (worker != null) {
          return worker;
        }
        removeLate();
      }
    } catch (ClosedSelectorException e) {
      LOG.trace("The port was closed", e);
      return null;
    } finally {
      close();
      unauthenticated.forEach(UnauthenticatedClient::end);
    }
  }

  /** Until the oldest connection is late, or the port is watched again; 0: for ever. */
  private long waitMillis() {
    if (listening.isValid() && listening.interestOps() == 0) {
      return TimeUnit.NANOSECONDS.toMillis(PAUSE_NANOS);
    }
    UnauthenticatedClient oldest = unauthenticated.peekFirst();
    return oldest == null ? 0 : Math.max(1, TimeUnit.NANOSECONDS.toMillis(oldest.deadline - System.nanoTime()) + 1);
  }

  private SocketChannel proven() throws IOException {
    boolean paused = listening.isValid() && listening.interestOps() == 0;
    Iterator<SelectionKey> ready = selector.selectedKeys().iterator();
    while (ready.hasNext()) {
      SelectionKey key = ready.next();
      ready.remove();
      if (key == listening) {
        accept();
      } else if (key.isValid()) {
        UnauthenticatedClient client = (UnauthenticatedClient) key.attachment();
        if (client.proves(token)) {
          unauthenticated.remove(client);
          key.cancel();
          selector.selectNow();
          client.channel.configureBlocking(true);
          return client.channel;
        } else if (!client.channel.isOpen()) {
          unauthenticated.remove(client);
        }
      }
    }
    if (paused) {
      listening.interestOps(SelectionKey.OP_ACCEPT);
    }
    return null;
  }

  private void accept() {
    try {
      SocketChannel channel = server.accept();
      if (channel == null) {
        return;
      }
      if (unauthenticated.size() == MOST) {
        unauthenticated.removeFirst().end();
      }
      UnauthenticatedClient client = new UnauthenticatedClient(channel, token.length, System.nanoTime() + proofNanos);
      unauthenticated.addLast(client);
      channel.configureBlocking(false);
      channel.register(selector, SelectionKey.OP_READ, client);
    } catch (ClosedChannelException e) {
      LOG.trace("The port was closed", e);
    } catch (IOException e) {
      // No descriptor is left, most likely. The connection waits in the kernel, and so does this thread.
      LOG.debug("Cannot accept a connection for now", e);
      listening.interestOps(0);
    }
  }

  private void removeLate() {
    long now = System.nanoTime();
    while (!unauthenticated.isEmpty() && unauthenticated.peekFirst().deadline - now <= 0) {
      unauthenticated.removeFirst().end();
    }
  }

  /** From any thread, and more than once. */
  @Override
  public void close() throws IOException {
    server.close();
    selector.close();
  }

  /** A connection that has not sent all of its token. */
  private static final class UnauthenticatedClient {
    final SocketChannel channel;
    final long deadline;
    private final ByteBuffer sent;

    UnauthenticatedClient(SocketChannel channel, int bytes, long deadline) {
      this.channel = channel;
      this.deadline = deadline;
      sent = ByteBuffer.allocate(bytes);
    }

    /** Reads what has come. A connection that failed, or sent another token, is closed. */
    boolean proves(byte[] token) {
      try {
        boolean ended = channel.read(sent) < 0;
        if (!ended && sent.hasRemaining()) {
          return false;
        }
        if (!ended && MessageDigest.isEqual(token, sent.array())) {
          return true;
        }
        LOG.debug("A connection did not send the token");
      } catch (IOException e) {
        LOG.debug("A connection failed before it sent the token", e);
      }
      end();
      return false;
    }

    void end() {
      try {
        channel.close();
      } catch (IOException e) {
        LOG.debug("Closing a connection", e);
      }
    }
  }
}
