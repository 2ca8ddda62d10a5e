package io.faro.spark.ui;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.spark.scheduler.SparkListenerEvent;

/** The figures of the page for programs, at {@code json/} below it: what is stored, by the names of its fields. */
final class PageJson {
  private static final ObjectMapper MAPPER = new ObjectMapper();
  /** Spark's mapping of events adds the name of the class. */
  private static final String CLASS_NAME = "Event";

  private PageJson() {}

  static ObjectNode of(List<ExecutorFigures> executors, List<ShuffleFigures> shuffles, List<ServiceFigures> services,
      String manager) {
    ObjectNode page = MAPPER.createObjectNode();
    page.put("manager", manager);
    add(page, "executors", executors);
    add(page, "shuffles", shuffles);
    add(page, "services", services);
    return page;
  }

  private static void add(ObjectNode page, String name, List<? extends SparkListenerEvent> figures) {
    ArrayNode array = page.putArray(name);
    for (SparkListenerEvent one : figures) {
      ObjectNode node = MAPPER.valueToTree(one);
      node.remove(CLASS_NAME);
      array.add(node);
    }
  }

  /** As Spark's web server takes it. By reflection: the methods of json4s return another class in Spark 4. */
  static Object asJson4s(JsonNode node) throws ReflectiveOperationException {
    Object methods = Class.forName("org.json4s.jackson.JsonMethods$").getField("MODULE$").get(null);
    return methods.getClass().getMethod("fromJsonNode", JsonNode.class).invoke(methods, node);
  }
}
