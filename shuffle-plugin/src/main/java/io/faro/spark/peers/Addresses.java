package io.faro.spark.peers;

import io.faro.Nullable;
import io.faro.spark.conf.FaroKeys;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * The addresses of an endpoint. Peers get the address of Spark's block manager, as it is resolved here, and try before
 * it what they themselves find for its name ({@link #known}). The endpoint listens where the block manager does, unless
 * the user configures another address or that one is not of this machine.
 */
public final class Addresses {
  public final String bind;
  public final String advertise;

  private Addresses(String bind, String advertise) {
    this.bind = bind;
    this.advertise = advertise;
  }

  /**
   * {@code configured}: spark.faro.bindAddress or {@code null}; {@code sparks}: where Spark's block manager listens if
   * that is not at its host's address ({@link #sparksBindAddress}), or {@code null}.
   */
  public static Addresses of(String blockManagerHost, String configured, String sparks) throws UnknownHostException {
    InetAddress own = sparks == null ? null : resolve(sparks, "the executor's --bind-address");
    InetAddress known;
    try {
      known = resolve(blockManagerHost, "the block manager's host");
    } catch (UnknownHostException e) {
      if (own == null || own.isAnyLocalAddress()) {
        throw e;
      }
      // The name is for others only.
      known = own;
    }
    if (configured != null) {
      return new Addresses(literal(resolve(configured, FaroKeys.BIND_ADDRESS.name)), literal(known));
    }
    InetAddress bind = own == null ? known : own;
    return new Addresses(isHere(bind) ? literal(bind) : wildcard(bind), literal(known));
  }

  /** The address that Kubernetes gives an executor to listen on; null if there is none. {@code command}: the JVM's. */
  @Nullable public static String sparksBindAddress(String command) {
    List<String> words = Arrays.asList(command.split(" "));
    int at = words.indexOf("--bind-address") + 1;
    return at > 0 && at < words.size() ? words.get(at) : null;
  }

  /** The addresses of a host's name, in the order of this host's resolver; empty: it knows none. Blocks. */
  public static List<InetAddress> known(String host) {
    try {
      return Arrays.asList(InetAddress.getAllByName(host));
    } catch (UnknownHostException e) {
      return Collections.emptyList();
    }
  }

  private static InetAddress resolve(String name, String what) throws UnknownHostException {
    boolean bracketed = name.startsWith("[") && name.endsWith("]");
    try {
      return InetAddress.getByName(bracketed ? name.substring(1, name.length() - 1) : name);
    } catch (UnknownHostException e) {
      UnknownHostException clear =
          new UnknownHostException(what + " '" + name + "' cannot be resolved on this machine");
      clear.initCause(e);
      throw clear;
    }
  }

  private static String literal(InetAddress address) {
    String text = address.getHostAddress();
    int scope = text.indexOf('%');
    return scope < 0 ? text : text.substring(0, scope);
  }

  private static String wildcard(InetAddress like) {
    return like.getAddress().length == 4 ? "0.0.0.0" : "::";
  }

  /** Whether the address to listen on is one of this host's. */
  public boolean bindsHere() {
    try {
      return isHere(InetAddress.getByName(bind));
    } catch (UnknownHostException e) {
      return false;
    }
  }

  private static boolean isHere(InetAddress address) {
    try {
      return address.isLoopbackAddress() || address.isAnyLocalAddress()
          || NetworkInterface.getByInetAddress(address) != null;
    } catch (SocketException e) {
      return false;
    }
  }
}
