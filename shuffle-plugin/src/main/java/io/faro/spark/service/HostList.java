package io.faro.spark.service;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/**
 * The node services of an application, one for each host, as the driver lists them. The list only grows: a service that
 * was started again keeps its place and has another card there. So a place means the same host everywhere, and a list
 * that is behind is the beginning of the newer one. Each change has a number, so that only changes are sent.
 *
 * <p>After a restart an executor that has not seen the older card may come first, and its service gets a place of its
 * own. When one comes that has seen both, that place is left without a service: an empty card.
 *
 * <pre>
 *   i32 version | i32 services, then for each that is newer: i32 place | i32 n, n bytes of card
 * </pre>
 */
final class HostList {
  private static final int MAX_CARD = 4_096;
  private static final byte[] NO_CARD = {};

  private final List<byte[]> cards = new ArrayList<>();
  /** The version in which each card came. */
  private final List<Integer> since = new ArrayList<>();
  private int version;

  /**
   * A service has the card {@code now}; {@code before}, if it is not empty, was its card before a restart. Returns its
   * place, which may be another one than a call before has returned for the same card.
   */
  int put(byte[] before, byte[] now) {
    int known = place(now);
    int place = before.length > 0 ? place(before) : -1;
    if (place < 0 && known >= 0) {
      return known;
    }
    version++;
    if (place < 0) {
      cards.add(now);
      since.add(version);
      return cards.size() - 1;
    }
    if (known >= 0) {
      set(known, NO_CARD);
    }
    set(place, now);
    return place;
  }

  private void set(int place, byte[] card) {
    cards.set(place, card);
    since.set(place, version);
  }

  /** The place of the service that has the card; -1: there is none. */
  int place(byte[] card) {
    for (int i = 0; i < cards.size(); i++) {
      if (Arrays.equals(cards.get(i), card)) {
        return i;
      }
    }
    return -1;
  }

  /** The places that have a service. */
  IntStream places() {
    return IntStream.range(0, cards.size()).filter(place -> cards.get(place).length > 0);
  }

  byte[] card(int place) {
    return cards.get(place);
  }

  int version() {
    return version;
  }

  int size() {
    return cards.size();
  }

  /** Returns the services that are newer than version {@code known}, in the layout above. */
  byte[] changesAfter(int known) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(all)) {
      out.writeInt(version);
      out.writeInt(cards.size());
      for (int i = 0; i < cards.size(); i++) {
        if (since.get(i) > known) {
          out.writeInt(i);
          out.writeInt(cards.get(i).length);
          out.write(cards.get(i));
        }
      }
    } catch (IOException e) {
      throw new IllegalStateException("a stream in memory failed", e);
    }
    return all.toByteArray();
  }

  /** Takes over what {@link #changesAfter} gave, and returns the cards that are new by place. */
  Map<Integer, byte[]> take(byte[] changes) throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(changes));
    int newVersion = in.readInt();
    int size = in.readInt();
    if (size < cards.size()) {
      throw new IOException("a list of " + size + " services, there were " + cards.size());
    }
    Map<Integer, byte[]> taken = new LinkedHashMap<>();
    while (in.available() > 0) {
      int place = in.readInt();
      int length = in.readInt();
      if (place < 0 || place >= size || length < 0 || length > MAX_CARD || length > in.available()) {
        throw new IOException("service " + place + " of " + size + " with a card of " + length + " bytes");
      }
      byte[] card = new byte[length];
      in.readFully(card);
      taken.put(place, card);
    }
    for (int i = cards.size(); i < size; i++) {
      if (!taken.containsKey(i)) {
        throw new IOException("a list of " + size + " services without service " + i);
      }
      cards.add(null);
      since.add(0);
    }
    taken.forEach((place, card) -> {
      cards.set(place, card);
      since.set(place, newVersion);
    });
    version = newVersion;
    return taken;
  }
}
