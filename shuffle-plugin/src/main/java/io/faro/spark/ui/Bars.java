package io.faro.spark.ui;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * A plot of stacked horizontal bars, as SVG in the page, without scripts or external files. The text has the page's
 * colour, so it is readable in Spark's dark theme too. All of it fits a page of 900 pixels beside a scroll bar.
 */
final class Bars {
  private static final int LABEL = 170;
  private static final int WIDTH = 500;
  private static final int VALUE = 190;
  private static final int ROW = 22;
  private static final int BAR = 15;
  /** More rows are not drawn; the table has them. */
  static final int MAX_ROWS = 40;

  /** Meaning of a part of a bar. The colours can be told apart by colour-blind readers (Okabe and Ito). */
  enum Part {
    VERBS("verbs (RDMA)", "#009e73"),
    SHM("shm (one host)", "#56b4e9"),
    TCP("tcp", "#0072b2"),
    IN_USE("in use now", "#0072b2"),
    TAKEN("taken, not in use now", "#9ad0f5"),
    CAP("up to the cap", "#b0b0b055");

    final String label;
    final String colour;

    Part(String label, String colour) {
      this.label = label;
      this.colour = colour;
    }
  }

  private static final class Row {
    final String label;
    final long[] lengths;
    final String value;

    Row(String label, long[] lengths, String value) {
      this.label = label;
      this.lengths = lengths;
      this.value = value;
    }
  }

  private final String title;
  private final Part[] parts;
  private final List<Row> rows = new ArrayList<>();
  private int left;

  Bars(String title, Part... parts) {
    this.title = title;
    this.parts = parts;
  }

  /** One length for each part; {@code value} is written behind the bar. */
  void row(String label, String value, long... lengths) {
    if (rows.size() < MAX_ROWS) {
      rows.add(new Row(label, lengths, value));
    } else {
      left++;
    }
  }

  void writeTo(Html html) {
    long longest = 1;
    for (Row row : rows) {
      longest = Math.max(longest, sum(row.lengths));
    }
    int height = rows.size() * ROW + 34;
    html.raw("<h5>").text(title).raw("</h5>");
    html.raw("<svg class=\"faro-bars\" role=\"img\" aria-label=\"").text(title)
        .raw("\" width=\"" + (LABEL + WIDTH + VALUE) + "\" height=\"" + height
            + "\" font-size=\"12\" fill=\"currentColor\" xmlns=\"http://www.w3.org/2000/svg\">");
    legend(html);
    int y = 28;
    for (Row row : rows) {
      html.raw("<text x=\"" + (LABEL - 8) + "\" y=\"" + (y + 12) + "\" text-anchor=\"end\">").text(row.label)
          .raw("</text>");
      double x = LABEL;
      for (int i = 0; i < parts.length; i++) {
        double width = (double) row.lengths[i] / longest * WIDTH;
        if (row.lengths[i] > 0) {
          html.raw(String.format(Locale.ROOT, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\">",
              x, y, Math.max(1, width), BAR, parts[i].colour));
          html.raw("<title>").text(row.label + ", " + parts[i].label).raw("</title></rect>");
          x += width;
        }
      }
      html.raw(String.format(Locale.ROOT, "<text x=\"%.1f\" y=\"%d\">", x + 6, y + 12)).text(row.value).raw("</text>");
      y += ROW;
    }
    html.raw("</svg>");
    if (left > 0) {
      html.raw("<p>and ").number(left).raw(" more, in the table</p>");
    }
  }

  private void legend(Html html) {
    int x = LABEL;
    for (int i = 0; i < parts.length; i++) {
      if (!isDrawn(i)) {
        continue;
      }
      Part part = parts[i];
      html.raw("<rect x=\"" + x + "\" y=\"4\" width=\"12\" height=\"12\" fill=\"" + part.colour + "\"/>");
      html.raw("<text x=\"" + (x + 17) + "\" y=\"14\">").text(part.label).raw("</text>");
      x += 40 + part.label.length() * 7;
    }
  }

  private boolean isDrawn(int part) {
    return rows.stream().anyMatch(row -> row.lengths[part] > 0);
  }

  private static long sum(long[] lengths) {
    long sum = 0;
    for (long length : lengths) {
      sum += length;
    }
    return sum;
  }
}
