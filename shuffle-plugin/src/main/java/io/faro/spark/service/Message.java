package io.faro.spark.service;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;

/**
 * A question of an executor to the driver. It is sent as bytes and not as an object: the class loader of the driver's
 * RPC threads may not have this class. Answers are bytes too.
 *
 * <pre>
 *   u8 version | u8 kind | utf executor | i32 n, n bytes
 * </pre>
 */
final class Message {
  private static final int VERSION = 1;
  /** Two cards, each of up to 4 KiB, with a length. */
  static final int MAX_BYTES = 12_288;

  /** The questions, with what they bring and what is answered. */
  enum Kind {
    /** Nothing; the application's token. */
    TOKEN,
    /** {@link #cards}: of the service that keeps the executor's outputs, before its restart and now; nothing. */
    KEPT,
    /** {@link UnkeptShuffles} of the executor; the answer has nothing. */
    UNKEPT,
    /** Nothing; {@link KeptBy} of the service that keeps the executor's outputs, or nothing. */
    CARD,
    /** Nothing; an answer comes when the application ends. */
    END,
    /** The version of the executor's list of services, as an int; answered by {@link HostList} when it is newer. */
    HOSTS,
    /** {@link #names} of executors; those that have the same service as this one. */
    NEIGHBOURS
  }

  final Kind kind;
  final String executor;
  final byte[] bytes;

  Message(Kind kind, String executor, byte[] bytes) {
    this.kind = kind;
    this.executor = executor;
    this.bytes = bytes;
  }

  /** {@code before}: the card of the service before its restart; empty: the executor has seen none. */
  static byte[] cards(byte[] before, byte[] now) {
    return ByteBuffer.allocate(4 + before.length + now.length).putInt(before.length).put(before).put(now).array();
  }

  /** Takes {@link #cards} apart: the one before, and the one now. */
  byte[][] cards() throws IOException {
    ByteBuffer all = ByteBuffer.wrap(bytes);
    int before = bytes.length < 4 ? -1 : all.getInt();
    if (before < 0 || before > all.remaining()) {
      throw new IOException("two cards of " + bytes.length + " bytes, of which the first has " + before);
    }
    byte[][] cards = {new byte[before], new byte[all.remaining() - before]};
    all.get(cards[0]).get(cards[1]);
    return cards;
  }

  /** Ids of executors; Spark's cluster managers count them. */
  static byte[] names(Collection<String> executors) {
    return String.join("\n", executors).getBytes(StandardCharsets.UTF_8);
  }

  /** Takes {@link #names} apart. */
  static List<String> names(byte[] from) {
    return from.length == 0 ? Collections.emptyList()
        : Arrays.asList(new String(from, StandardCharsets.UTF_8).split("\n"));
  }

  byte[] encode() throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(all);
    out.writeByte(VERSION);
    out.writeByte(kind.ordinal());
    out.writeUTF(executor);
    out.writeInt(bytes.length);
    out.write(bytes);
    return all.toByteArray();
  }

  static Message decode(byte[] from) throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(from));
    int version = in.readUnsignedByte();
    if (version != VERSION) {
      throw new IOException("a message of version " + version + ", this driver reads " + VERSION);
    }
    int kind = in.readUnsignedByte();
    if (kind >= Kind.values().length) {
      throw new IOException("a message of kind " + kind + ", there are " + Kind.values().length);
    }
    String executor = in.readUTF();
    int length = in.readInt();
    if (length < 0 || length > MAX_BYTES || length != in.available()) {
      throw new IOException("a message of " + length + " bytes with " + in.available());
    }
    byte[] bytes = new byte[length];
    in.readFully(bytes);
    return new Message(Kind.values()[kind], executor, bytes);
  }
}
