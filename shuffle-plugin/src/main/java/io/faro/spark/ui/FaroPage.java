package io.faro.spark.ui;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.concurrent.Callable;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;
import org.apache.spark.ui.UIUtils;
import org.apache.spark.ui.WebUIPage;
import org.json4s.JsonAST;
import scala.Function0;
import scala.None$;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.xml.Node;
import scala.xml.Unparsed;

/**
 * The page for Spark's web server, and its figures as JSON. Spark 3 calls {@code render(javax...)} and Spark 4 {@code
 * render(jakarta...)}. A class may have both, since the JVM loads a parameter's type only when it is needed. Both
 * return Scala's immutable {@code Seq}; the compiler adds the bridge method that Scala 2.12 calls.
 */
final class FaroPage extends WebUIPage {
  private final SparkUITab tab;
  private final SparkUI ui;
  private final FigureStore store;
  private final boolean live;

  FaroPage(SparkUITab tab, SparkUI ui, FigureStore store, boolean live) {
    super("");
    this.tab = tab;
    this.ui = ui;
    this.store = store;
    this.live = live;
  }

  @Override
  public Seq<Node> render(javax.servlet.http.HttpServletRequest request) {
    return page(request);
  }

  /** For Spark 4. Without annotation: Spark 3, which this is compiled against, does not have it. */
  public Seq<Node> render(jakarta.servlet.http.HttpServletRequest request) {
    return page(request);
  }

  @Override
  public JsonAST.JValue renderJson(javax.servlet.http.HttpServletRequest request) {
    return (JsonAST.JValue) shown(this::json);
  }

  /** For Spark 4, as above. */
  public org.json4s.JValue renderJson(jakarta.servlet.http.HttpServletRequest request) {
    return (org.json4s.JValue) shown(this::json);
  }

  private Object json() throws Exception {
    return PageJson.asJson4s(PageJson.of(store.executors(), store.shuffles(), store.services(), manager()));
  }

  private Seq<Node> page(Object request) {
    return shown(() -> {
      long now = live ? System.currentTimeMillis() : PageHtml.PAST;
      return frame(request, new Unparsed(PageHtml.of(
          store.executors(), store.shuffles(), store.services(), manager(), now, queries(request))));
    });
  }

  private static <T> T shown(Callable<T> content) {
    try {
      return content.call();
    } catch (InvocationTargetException e) {
      throw new IllegalStateException("the Faro page cannot be shown: " + e.getCause(), e.getCause());
    } catch (Exception e) {
      throw new IllegalStateException("the Faro page cannot be shown: " + e, e);
    }
  }

  /** Spark's own page of a query, without its id: below a proxy or the history server it has another place. */
  private String queries(Object request) throws ReflectiveOperationException {
    for (Method method : UIUtils.class.getMethods()) {
      if (method.getName().equals("prependBaseUri") && method.getParameterCount() == 3) {
        return method.invoke(null, request, tab.basePath(), "/SQL/execution/?id=").toString();
      }
    }
    throw new NoSuchMethodException("UIUtils.prependBaseUri");
  }

  /** The application's {@code spark.shuffle.manager}. */
  private String manager() throws ReflectiveOperationException {
    Iterator<?> properties = Sequences.elements(ui.store().environmentInfo(), "sparkProperties");
    while (properties.hasNext()) {
      Tuple2<?, ?> property = (Tuple2<?, ?>) properties.next();
      if (property._1().equals("spark.shuffle.manager")) {
        return property._2().toString();
      }
    }
    return "sort";
  }

  /** Spark's page around the content. Its parameters differ between versions: 4.2 and later have more flags. */
  private Seq<Node> frame(Object request, Node content) throws ReflectiveOperationException {
    for (Method method : UIUtils.class.getMethods()) {
      if (method.getName().equals("headerSparkPage")) {
        Class<?>[] types = method.getParameterTypes();
        Object[] arguments = new Object[types.length];
        for (int i = 0; i < types.length; i++) {
          arguments[i] = argument(types[i], request, content);
        }
        @SuppressWarnings("unchecked")
        Seq<Node> page = (Seq<Node>) method.invoke(null, arguments);
        return page;
      }
    }
    throw new NoSuchMethodException("UIUtils.headerSparkPage");
  }

  private Object argument(Class<?> type, Object request, Node content) {
    if (type == String.class) {
      return "Faro";
    } else if (type == boolean.class) {
      return false;
    } else if (type == Option.class) {
      return None$.MODULE$;
    } else if (type == Function0.class) {
      return (Function0<Node>) () -> content;
    } else if (type.isInstance(tab)) {
      return tab;
    }
    return request;
  }
}
