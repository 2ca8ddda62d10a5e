package io.faro.e2e;

import org.apache.spark.ShuffleDependency;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;

/**
 * Spark's physical plans. By reflection: a list of Scala's has another type in Scala 2.13, and Dataset's methods are in
 * another class since Spark 4.0.
 */
final class Plans {
    private Plans() {}

    /** The rows of a query as Spark has them. */
    static RDD<?> rows(Dataset<?> query) throws Exception {
        return (RDD<?>) call(call(query, "queryExecution"), "toRdd");
    }

    /** The first node of that class in the query's plan; after adaptive execution, in its final plan. */
    static Object node(Dataset<?> query, String name) throws Exception {
        Object plan = call(call(query, "queryExecution"), "executedPlan");
        Object found = find(plan, name);
        Check.that("the plan should have a " + name + ":\n" + plan, found != null);
        return found;
    }

    private static Object find(Object node, String name) throws Exception {
        String type = node.getClass().getSimpleName();
        if (type.equals(name)) {
            return node;
        } else if (type.equals("AdaptiveSparkPlanExec")) {
            return find(call(node, "executedPlan"), name);
        } else if (type.endsWith("QueryStageExec")) {
            return find(call(node, "plan"), name);
        }
        Object children = call(node, "children");
        int size = (Integer) call(children, "size");
        for (int i = 0; i < size; i++) {
            Object found = find(apply(children, int.class, i), name);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    /** A metric of a node. */
    static long metric(Object node, String name) throws Exception {
        return (Long) call(apply(call(node, "metrics"), Object.class, name), "value");
    }

    static ShuffleDependency<?, ?, ?> dependency(Object exchange) throws Exception {
        return (ShuffleDependency<?, ?, ?>) call(exchange, "shuffleDependency");
    }

    /** Calls a method without arguments. */
    static Object call(Object on, String method) throws Exception {
        java.lang.reflect.Method found = on.getClass().getMethod(method);
        found.setAccessible(true);
        return found.invoke(on);
    }

    /** The element of a collection of Scala's. */
    static Object apply(Object collection, Class<?> type, Object key) throws Exception {
        java.lang.reflect.Method found = collection.getClass().getMethod("apply", type);
        found.setAccessible(true);
        return found.invoke(collection, key);
    }
}
