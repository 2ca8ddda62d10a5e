package io.faro.spark.ui;

import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.status.AppHistoryServerPlugin;
import org.apache.spark.status.ElementTrackingStore;
import org.apache.spark.ui.SparkUI;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.List;
import scala.collection.immutable.Nil$;
import scala.collection.immutable.Seq;

/**
 * The tab in the history server, which finds this class by {@code META-INF/services} when the jar is on its class path.
 *
 * <p>The return type is that of Scala 2.13, and narrower than that of 2.12; the compiler adds a bridge method, so that
 * one class works with both.
 */
public final class FaroHistoryPlugin implements AppHistoryServerPlugin {
  private static final Logger LOG = LoggerFactory.getLogger(FaroHistoryPlugin.class);

  @Override
  public Seq<SparkListener> createListeners(SparkConf conf, ElementTrackingStore store) {
    return one(new Replay(new FigureStore(store)));
  }

  @SuppressWarnings("unchecked")
  private static Seq<SparkListener> one(SparkListener listener) {
    List<SparkListener> none = (List<SparkListener>) (List<?>) Nil$.MODULE$;
    return none.$colon$colon(listener);
  }

  @Override
  public void setupUI(SparkUI ui) {
    try {
      FigureStore store = new FigureStore(ui.store().store());
      if (!store.isEmpty()) {
        FaroTab.attach(ui, store, false);
      }
    } catch (Exception | LinkageError e) {
      LOG.info("Faro: no tab for {}: {}", ui.appId(), e.toString());
    }
  }

  private static final class Replay extends SparkListener {
    private final FigureStore store;

    Replay(FigureStore store) {
      this.store = store;
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
      try {
        if (event instanceof ExecutorFigures) {
          store.put((ExecutorFigures) event);
        } else if (event instanceof ShuffleFigures) {
          store.put((ShuffleFigures) event);
        } else if (event instanceof ServiceFigures) {
          store.put((ServiceFigures) event);
        }
      } catch (Exception e) {
        LOG.info("Faro: an event of the log cannot be read: {}", e.toString());
      }
    }
  }
}
