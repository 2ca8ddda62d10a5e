package io.faro.e2e;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import scala.Tuple2;

/** What the running application shows of Faro over HTTP: the tab, and the metrics that Prometheus reads. */
final class UiCases {
    private static final Pattern ROW =
        Pattern.compile("<tr data-executor=\"([^\"]*)\" data-remote-bytes=\"(\\d+)\"");
    private static final Pattern QUERY = Pattern.compile(
        "<tr data-query=\"(\\d+)\" data-remote-bytes=\"(\\d+)\"><td[^>]*><a href=\"([^\"]*)\">");
    private static final Pattern METRIC =
        Pattern.compile("metrics_\\w+_driver_faro_remoteBytes_(?:tcp|shm|verbs)_Value\\{[^}]*} (\\d+)");

    private static final Pattern SERVICE =
        Pattern.compile("<tr data-service=\"[^\"]+\" data-outputs=\"[1-9]\\d*\" data-blocks=\"[1-9]\\d*\">");

    private UiCases() {}

    static void register(Map<String, Jobs.Case> known) {
        known.put("faroTab", UiCases::tab);
    }

    private static void tab(Jobs.Context context) throws Exception {
        List<Integer> numbers = new ArrayList<>();
        for (int i = 0; i < 200_000; i++) {
            numbers.add(i);
        }
        for (int round = 0; round < 3; round++) {
            long groups = context.jsc.parallelize(numbers, 8)
                .mapToPair(i -> new Tuple2<>(i % 1_000, Check.mix(i))).groupByKey(8).count();
            Check.equal("groups", 1_000L, groups);
        }
        SqlCases.facts(context.spark);
        Check.equal("groups of the query", SqlCases.GROUPS,
            context.spark.sql("select g, count(*), max(s) from facts group by g").collectAsList().size());
        TreeMap<String, Long> counted = new TreeMap<>();
        long sum = 0;
        for (Map.Entry<String, TreeMap<String, Double>> executor
                : FaroCounters.ofExecutors(context.jsc).entrySet()) {
            long bytes = 0;
            for (Map.Entry<String, Double> counter : executor.getValue().entrySet()) {
                if (counter.getKey().startsWith("remoteBytes.")) {
                    bytes += counter.getValue().longValue();
                }
            }
            counted.put(executor.getKey(), bytes);
            sum += bytes;
        }
        long expected = sum;
        Check.that("both executors fetched: " + counted, counted.size() == 2 && sum > 0);
        String ui = context.jsc.sc().uiWebUrl().get();
        Check.await("the tab should show " + counted, () -> rows(get(ui + "/faro/")).equals(counted));
        Check.await("its JSON should have " + counted, () -> ofJson(get(ui + "/faro/json/")).equals(counted));
        query(ui);
        if (context.jsc.getConf().contains("spark.faro.service.directory")) {
            Check.await("the tab should show what the node service has",
                () -> SERVICE.matcher(get(ui + "/faro/")).find());
        }
        Check.await("Prometheus should read " + expected, () -> metric(get(ui + "/metrics/prometheus/")) == expected);
        Files.write(new File(context.scratch, "faro.html").toPath(),
            get(ui + "/faro/").getBytes(StandardCharsets.UTF_8));
        String hold = System.getenv("FARO_UI_HOLD");
        if (hold != null) {
            // For whoever wants to look: the application lives until this file is there.
            System.out.println("FARO TAB " + ui + "/faro/");
            Check.awaitFile(new File(hold));
        }
    }

    /** The query's row has the bytes of its one shuffle, the fourth, and leads to Spark's page of it. */
    private static void query(String ui) throws Exception {
        String page = get(ui + "/faro/");
        Matcher row = QUERY.matcher(page);
        Check.that("there should be a row of a query:\n" + page, row.find());
        Check.that("the query should have remote bytes", Long.parseLong(row.group(2)) > 0);
        String shuffle = "<tr data-shuffle=\"3\" data-remote-bytes=\"" + row.group(2) + "\">";
        Check.that("there should be " + shuffle + ":\n" + page, page.contains(shuffle));
        Check.that("there should be one row of a query:\n" + page, !row.find());
        Matcher first = QUERY.matcher(page);
        Check.that("there should be a link", first.find());
        String linked = get(ui + first.group(3));
        Check.that("the link should lead to the query: " + first.group(3),
            linked.contains("Details for Query " + first.group(1)));
    }

    private static Map<String, Long> rows(String page) {
        Map<String, Long> rows = new TreeMap<>();
        for (Matcher row = ROW.matcher(page); row.find(); ) {
            rows.put(row.group(1), Long.parseLong(row.group(2)));
        }
        return rows;
    }

    /** Remote bytes by executor, of the page's JSON. */
    private static Map<String, Long> ofJson(String json) throws IOException {
        Map<String, Long> rows = new TreeMap<>();
        for (JsonNode executor : new ObjectMapper().readTree(json.isEmpty() ? "{}" : json).path("executors")) {
            long bytes = 0;
            for (String fabric : new String[] {"verbs", "shm", "tcp"}) {
                bytes += executor.path("counters").path("remoteBytes." + fabric).asLong();
            }
            if (!executor.path("executor").asText().equals("driver")) {
                rows.put(executor.path("executor").asText(), bytes);
            }
        }
        return rows;
    }

    private static long metric(String metrics) {
        long sum = 0;
        for (Matcher metric = METRIC.matcher(metrics); metric.find(); ) {
            sum += Long.parseLong(metric.group(1));
        }
        return sum;
    }

    /** Empty where there is no such page yet. */
    private static String get(String address) throws IOException {
        HttpURLConnection connection = (HttpURLConnection) new URL(address).openConnection();
        if (connection.getResponseCode() != 200) {
            return "";
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (InputStream in = connection.getInputStream()) {
            byte[] part = new byte[8_192];
            for (int n = in.read(part); n >= 0; n = in.read(part)) {
                bytes.write(part, 0, n);
            }
        }
        return new String(bytes.toByteArray(), StandardCharsets.UTF_8);
    }
}
