package io.faro.advise;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.io.CompressionCodec;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import scala.Tuple2;

/**
 * Runs three small jobs whose event log tests/advise.rs reads, then shortens the log and writes it again with the
 * codec of Spark that wrote it. Arguments: the folder of the event logs, the folder of the shortened logs.
 */
public final class Recorded {
  private static final Set<String> DROPPED = new HashSet<>(Arrays.asList("JVM Information", "Hadoop Properties",
      "System Properties", "Metrics Properties", "Classpath Entries", "Task Executor Metrics", "Accumulables",
      "Executor Resource Requests", "physicalPlanDescription", "sparkPlanInfo", "Details", "details", "callSite",
      "Callsite"));
  private static final ObjectMapper JSON = new ObjectMapper();

  private Recorded() {}

  public static void main(String[] args) throws Exception {
    SparkSession spark = SparkSession.builder().getOrCreate();
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    context.setJobDescription("rows");
    spark.range(0, 20_000, 1, 6).selectExpr("id", "hash(id) h").repartition(4, functions.col("h")).write()
        .format("noop").mode("overwrite").save();
    context.setJobDescription("groups");
    spark.range(0, 5_000, 1, 3).selectExpr("id % 7 k").groupBy("k").count().collectAsList();
    context.setJobDescription("objects");
    List<Integer> numbers = IntStream.range(0, 3_000).boxed().collect(Collectors.toList());
    context.parallelize(numbers, 3).mapToPair(i -> new Tuple2<>(i % 10, i)).reduceByKey(Integer::sum, 3).collect();
    SparkConf conf = context.getConf();
    spark.stop();
    shorten(Paths.get(args[0]), Paths.get(args[1]), conf);
  }

  private static void shorten(Path from, Path to, SparkConf conf) throws Exception {
    List<Path> files = new ArrayList<>();
    try (Stream<Path> all = Files.walk(from)) {
      all.filter(Files::isRegularFile).filter(f -> !f.getFileName().toString().endsWith(".crc")).forEach(files::add);
    }
    for (Path file : files) {
      Path target = to.resolve(from.relativize(file).toString());
      Files.createDirectories(target.getParent());
      String name = file.getFileName().toString();
      String codec = name.substring(name.lastIndexOf('.') + 1);
      boolean compressed = Arrays.asList("lz4", "zstd", "snappy").contains(codec);
      InputStream in = new FileInputStream(file.toFile());
      OutputStream out = new FileOutputStream(target.toFile());
      if (compressed) {
        CompressionCodec by = CompressionCodec.createCodec(conf, codec);
        in = by.compressedInputStream(in);
        out = by.compressedOutputStream(out);
      }
      try (BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
          JsonNode event = JSON.readTree(line);
          drop(event);
          out.write((event + "\n").getBytes(StandardCharsets.UTF_8));
        }
      }
      out.close();
    }
  }

  private static void drop(JsonNode node) {
    if (node.isObject()) {
      ((ObjectNode) node).remove(DROPPED);
    }
    node.forEach(Recorded::drop);
  }
}
