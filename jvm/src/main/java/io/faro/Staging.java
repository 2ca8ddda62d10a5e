package io.faro;

/** When bytes of map outputs are brought into frames of the arena, where peers can read them one-sidedly. */
public enum Staging {
  /** What is asked for often. */
  ON_DEMAND("onDemand"),
  /** Also what was just written, while there is room. */
  ON_COMMIT("onCommit"),
  /** Also what a peer waits for whose turn in the exchange has not come. */
  PLANNED("planned");

  /** As in the configuration. */
  public final String code;

  Staging(String code) {
    this.code = code;
  }
}
