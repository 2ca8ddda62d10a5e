import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.SparkConf;
import org.apache.spark.io.CompressionCodec;
import org.apache.spark.io.LZ4CompressionCodec;
import org.apache.spark.io.ZStdCompressionCodec;
import org.apache.spark.serializer.SerializationStream;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.execution.UnsafeRowSerializer;
import scala.reflect.ClassTag;

/**
 * Writes the golden files with Spark's own classes, see README.md. Each has two streams, as of
 * two partitions: 4,000 rows that compress well, in several LZ4 blocks (40 rows in the small files),
 * and 5 rows that do not compress, in a raw LZ4 block. tests/golden.rs makes the same rows again.
 */
public final class Golden {
  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[0]);
    SparkConf conf = new SparkConf(false);
    write(folder.resolve("plain.bin"), null, 40);
    write(folder.resolve("lz4.bin"), new LZ4CompressionCodec(conf), 4000);
    write(folder.resolve("lz4_small.bin"), new LZ4CompressionCodec(conf), 40);
    write(folder.resolve("zstd.bin"), new ZStdCompressionCodec(conf), 4000);
    write(folder.resolve("zstd_small.bin"), new ZStdCompressionCodec(conf), 40);
  }

  private static void write(Path file, CompressionCodec codec, int count) throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    OutputStream first = codec == null ? bytes : codec.compressedOutputStream(bytes);
    SerializationStream rows = new UnsafeRowSerializer(1, null).newInstance().serializeStream(first);
    for (int row = 0; row < count; row++) {
      byte[] body = new byte[row * 7 % 13 * 8];
      for (int at = 0; at < body.length; at++) {
        body[at] = (byte) (row / 64);
      }
      add(rows, body);
    }
    rows.close();
    OutputStream second = codec == null ? bytes : codec.compressedOutputStream(bytes);
    rows = new UnsafeRowSerializer(1, null).newInstance().serializeStream(second);
    int state = 1;
    for (int row = 0; row < 5; row++) {
      byte[] body = new byte[40];
      for (int at = 0; at < body.length; at++) {
        state = state * 1664525 + 1013904223;
        body[at] = (byte) (state >>> 24);
      }
      add(rows, body);
    }
    rows.close();
    Files.write(file, bytes.toByteArray());
  }

  private static void add(SerializationStream rows, byte[] body) {
    UnsafeRow row = new UnsafeRow(1);
    row.pointTo(body, body.length);
    ClassTag<Object> any = ClassTag.apply(Object.class);
    rows.writeKey(0, any);
    rows.writeValue(row, any);
  }
}
