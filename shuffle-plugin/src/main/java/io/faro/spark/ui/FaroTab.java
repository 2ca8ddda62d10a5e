package io.faro.spark.ui;

import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;

/** The tab "Faro", with its one page. */
final class FaroTab extends SparkUITab {
  private FaroTab(SparkUI ui, FigureStore store, boolean live) {
    super(ui, "faro");
    attachPage(new FaroPage(this, ui, store, live));
  }

  /** {@code live}: the application runs in this process. */
  static void attach(SparkUI ui, FigureStore store, boolean live) {
    ui.attachTab(new FaroTab(ui, store, live));
  }
}
