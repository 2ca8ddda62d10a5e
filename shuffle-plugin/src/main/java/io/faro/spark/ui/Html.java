package io.faro.spark.ui;

import java.util.Locale;

/** A page as text. {@link #text} escapes all text from outside this package. */
final class Html {
  /** Opens a table that Spark's pages sort by its heads. */
  static final String TABLE =
      "<table class=\"table table-bordered table-sm table-striped table-head-clickable sortable\">";
  private static final String SPECIAL = "&<>\"'";
  private static final String[] ENTITIES = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

  private final StringBuilder out = new StringBuilder(16_384);

  Html raw(String markup) {
    out.append(markup);
    return this;
  }

  /** Text, escaped for an element and for a quoted attribute. */
  Html text(String text) {
    out.append(escape(text));
    return this;
  }

  Html number(long number) {
    out.append(String.format(Locale.ROOT, "%,d", number));
    return this;
  }

  Html heads(String... heads) {
    raw("<thead><tr>");
    for (String head : heads) {
      raw("<th>").text(head).raw("</th>");
    }
    return raw("</tr></thead><tbody>");
  }

  /** A cell that shows one thing and sorts by another. */
  Html cell(long sortKey, String shown) {
    return raw("<td sorttable_customkey=\"").raw(Long.toString(sortKey)).raw("\">").text(shown).raw("</td>");
  }

  Html cell(long number) {
    return cell(number, String.format(Locale.ROOT, "%,d", number));
  }

  Html bytesCell(long bytes) {
    return cell(bytes, bytes(bytes));
  }

  Html millisCell(long nanos) {
    return cell(nanos, millis(nanos));
  }

  Html textCell(String text) {
    return raw("<td>").text(text).raw("</td>");
  }

  static String bytes(long bytes) {
    if (bytes < 1_024) {
      return bytes + " B";
    }
    double value = bytes;
    int unit = -1;
    while (value >= 1_023.95 && unit < 4) {
      value /= 1_024;
      unit++;
    }
    return String.format(Locale.ROOT, "%.1f %ciB", value, "KMGTP".charAt(unit));
  }

  static String millis(long nanos) {
    return String.format(Locale.ROOT, "%,.1f ms", nanos / 1e6);
  }

  static String escape(String text) {
    StringBuilder escaped = new StringBuilder(text.length());
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      int special = SPECIAL.indexOf(c);
      if (special < 0) {
        escaped.append(c);
      } else {
        escaped.append(ENTITIES[special]);
      }
    }
    return escaped.toString();
  }

  @Override
  public String toString() {
    return out.toString();
  }
}
