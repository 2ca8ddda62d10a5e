package io.faro.spark;

import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;

/**
 * The addresses of an endpoint. Peers get the address of Spark's block manager, which they can reach. The endpoint
 * listens on the same address, unless the user configures another or it is not an address of this machine.
 */
final class Addresses {
  final String bind;
  final String advertise;

  private Addresses(String bind, String advertise) {
    this.bind = bind;
    this.advertise = advertise;
  }

  /** {@code configured}: spark.faro.bindAddress or {@code null}. */
  static Addresses of(String blockManagerHost, String configured) throws UnknownHostException {
    InetAddress known = resolve(blockManagerHost, "the block manager's host");
    if (configured != null) {
      return new Addresses(literal(resolve(configured, FaroKeys.BIND_ADDRESS.name)), literal(known));
    }
    return new Addresses(isHere(known) ? literal(known) : wildcard(known), literal(known));
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

  private static boolean isHere(InetAddress address) {
    try {
      return address.isLoopbackAddress() || NetworkInterface.getByInetAddress(address) != null;
    } catch (SocketException e) {
      return false;
    }
  }
}
