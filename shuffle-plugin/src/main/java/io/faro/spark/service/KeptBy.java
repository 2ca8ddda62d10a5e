package io.faro.spark.service;

import java.io.IOException;
import java.nio.ByteBuffer;

/** The service that keeps an executor's outputs: its place in the list of services, and its card. */
public final class KeptBy {
  public final int place;
  public final byte[] card;

  KeptBy(int place, byte[] card) {
    this.place = place;
    this.card = card;
  }

  byte[] encode() {
    return ByteBuffer.allocate(4 + card.length).putInt(place).put(card).array();
  }

  static KeptBy decode(byte[] from) throws IOException {
    if (from.length <= 4) {
      throw new IOException("a place and a card of " + from.length + " bytes");
    }
    ByteBuffer all = ByteBuffer.wrap(from);
    int place = all.getInt();
    byte[] card = new byte[all.remaining()];
    all.get(card);
    return new KeptBy(place, card);
  }
}
