package io.faro.spark.read.groups;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.faro.spark.read.places.Blocks;
import io.faro.spark.read.places.Parts;
import io.faro.spark.read.records.StreamRecords;
import io.netty.buffer.ByteBufInputStream;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.zip.Adler32;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NettyManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.BlockStoreClient;
import org.apache.spark.network.shuffle.DownloadFileManager;
import org.apache.spark.network.shuffle.checksum.Cause;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Corruption is reported in Spark's words, with its diagnosis. */
class PartFailureTest {
  private static final byte[] BYTES = "bytes of a block".getBytes(StandardCharsets.UTF_8);

  private Cause cause;
  private Long asked;
  private final BlockStoreClient client = new BlockStoreClient() {
    @Override
    public Cause diagnoseCorruption(String host, int port, String executor, int shuffle, long map, int reduce,
        long checksum, String algorithm) {
      asked = checksum;
      if (cause == null) {
        throw new IllegalStateException("the owner is gone");
      }
      return cause;
    }

    @Override
    public void fetchBlocks(String host, int port, String executor, String[] blocks, BlockFetchingListener listener,
        DownloadFileManager files) {
      throw new AssertionError("not asked for");
    }

    @Override
    public void close() {}
  };

  private static long sum() {
    Adler32 sum = new Adler32();
    sum.update(BYTES, 0, BYTES.length);
    return sum.getValue();
  }

  private static Parts part(int start, int end) {
    Parts parts = new Parts(7);
    for (int i = start; i < end; i++) {
      parts.add(5, 2, i, i + 1, 100, end > start + 1);
    }
    return parts;
  }

  private String message(String algorithm, Parts parts) {
    ManagedBuffer bytes = new NettyManagedBuffer(Unpooled.wrappedBuffer(BYTES));
    return new PartFailure(client, algorithm).corrupt(Blocks.address("1"), parts, 0, "a bad length", bytes)
        .getMessage();
  }

  /** The words of ShuffleBlockFetcherIterator.diagnoseCorruption. */
  @ParameterizedTest
  @CsvSource({
      "DISK_ISSUE, Block shuffle_7_5_3 is corrupted due to DISK_ISSUE (a bad length)",
      "NETWORK_ISSUE, Block shuffle_7_5_3 is corrupted due to NETWORK_ISSUE (a bad length)",
      "CHECKSUM_VERIFY_PASS, Block shuffle_7_5_3 is corrupted but checksum verification passed (a bad length)",
      "UNKNOWN_ISSUE, Block shuffle_7_5_3 is corrupted but the cause is unknown (a bad length)",
      ", Block shuffle_7_5_3 is corrupted but the cause is unknown (a bad length)",
      "UNSUPPORTED_CHECKSUM_ALGORITHM, Block shuffle_7_5_3 is corrupted but corruption diagnosis failed due to "
          + "unsupported checksum algorithm: ADLER32 (a bad length)"})
  void theDiagnosis(Cause found, String message) {
    cause = found;
    assertEquals(message, message("ADLER32", part(3, 4)));
    assertEquals(sum(), asked);
  }

  @Test
  void withoutADiagnosis() {
    assertEquals("BlockBatch shuffle_7_5_3_6 is corrupted but corruption diagnosis is skipped due to lack of shuffle "
        + "checksum support for ShuffleBlockBatchId (a bad length)", message("ADLER32", part(3, 6)));
    assertEquals("Block shuffle_7_5_3 is corrupted, and map outputs have no checksums "
        + "(spark.shuffle.checksum.enabled) (a bad length)", message(null, part(3, 4)));
    assertNull(asked);
  }

  /** A block that is read once: half of it was read when it turned out to be corrupt. */
  @Test
  void theChecksumOfAStreamIsThatOfAllItsBytes() throws IOException {
    cause = Cause.DISK_ISSUE;
    InputStream bytes = new ByteBufInputStream(Unpooled.wrappedBuffer(BYTES));
    StreamRecords source = new StreamRecords(
        new StreamPart(bytes, Blocks.address("1"), part(3, 4), new PartFailure(client, "ADLER32")));
    try (InputStream opened = source.open()) {
      assertEquals(5, opened.read(new byte[5]));
    }
    String message = null;
    try {
      source.failed(new IOException("a bad length"), true, false);
    } catch (Exception e) {
      message = e.getMessage();
    }
    assertEquals("Block shuffle_7_5_3 is corrupted due to DISK_ISSUE (java.io.IOException: a bad length)", message);
    assertEquals(sum(), asked);
  }
}
