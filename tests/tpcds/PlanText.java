package io.faro.tpcds;

import java.io.PrintWriter;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Dataset;

/**
 * The physical plan that a query ended with, one node a line, indented by its depth. What only wraps a node (stages of
 * adaptive execution and of code generation) has no line. By reflection, because lists of Scala's have other types in
 * Scala 2.13, and Dataset's methods are in another class since Spark 4.0.
 */
final class PlanText {
    private final PrintWriter out;
    private final List<String> reads = new ArrayList<>();

    private PlanText(PrintWriter out) {
        this.out = out;
    }

    /** Writes the plan; then a line {@code reads} with the partitions of each read that joins some of them. */
    static void write(Dataset<?> query, PrintWriter out) throws ReflectiveOperationException {
        PlanText text = new PlanText(out);
        text.node(call(call(query, "queryExecution"), "executedPlan"), "");
        out.println("reads " + String.join(" ", text.reads));
    }

    private void node(Object node, String indent) throws ReflectiveOperationException {
        switch (node.getClass().getSimpleName()) {
            case "AdaptiveSparkPlanExec":
                node(call(node, "executedPlan"), indent);
                return;
            case "ShuffleQueryStageExec":
            case "BroadcastQueryStageExec":
            case "TableCacheQueryStageExec":
            case "ResultQueryStageExec":
                node(call(node, "plan"), indent);
                return;
            case "WholeStageCodegenExec":
            case "InputAdapter":
                nodes(call(node, "children"), indent);
                return;
            case "AQEShuffleReadExec":
                String kind = simple(node);
                boolean joins = kind.contains("coalesced");
                if (joins) {
                    reads.add(call(call(node, "partitionSpecs"), "size").toString());
                }
                boolean more = kind.contains("skewed") || kind.contains("local");
                if (more) {
                    out.println(indent + kind.replace("coalesced and ", ""));
                }
                nodes(call(node, "children"), more ? indent + " " : indent);
                return;
            case "ReusedExchangeExec":
                out.println(indent + "ReusedExchange of " + simple(call(node, "child")));
                return;
            default:
                out.println(indent + simple(node));
                nodes(call(node, "subqueries"), indent + " ? ");
                nodes(call(node, "children"), indent + " ");
        }
    }

    private void nodes(Object list, String indent) throws ReflectiveOperationException {
        int size = (Integer) call(list, "size");
        Method element = list.getClass().getMethod("apply", int.class);
        element.setAccessible(true);
        for (int i = 0; i < size; i++) {
            node(element.invoke(list, i), indent);
        }
    }

    private static String simple(Object node) throws ReflectiveOperationException {
        Method simple = node.getClass().getMethod("simpleString", int.class);
        simple.setAccessible(true);
        return ((String) simple.invoke(node, 1_000)).replace('\n', ' ');
    }

    private static Object call(Object on, String name) throws ReflectiveOperationException {
        Method method = on.getClass().getMethod(name);
        method.setAccessible(true);
        return method.invoke(on);
    }
}
