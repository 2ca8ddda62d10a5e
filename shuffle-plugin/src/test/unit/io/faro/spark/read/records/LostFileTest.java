package io.faro.spark.read.records;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.spark.read.groups.PartFailure;
import io.faro.spark.read.groups.SecondFetch;
import io.faro.spark.read.places.Blocks;
import io.faro.spark.read.places.Parts;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import org.apache.spark.FetchFailed;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.TempShuffleReadMetrics;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.Tuple2;

/** A lent file is lost while its part is read: the rest comes over the network, and no record comes twice. */
class LostFileTest {
  /** Spark's blocks in the large part, which are one stream. */
  private static final int BLOCKS = 6_000;
  private static final int LOST = 1;

  private final TempShuffleReadMetrics metrics = new TempShuffleReadMetrics();
  private final PartFailure failure = new PartFailure(null, null);
  private final TaskContext context = org.apache.spark.TaskContext$.MODULE$.empty();
  private final List<Integer> fetched = new ArrayList<>();
  private Records blocks = new Records("lz4");
  /** The bytes that the network returns for the part; {@code null}: the fetch fails. */
  private byte[] answer;
  private boolean isLent = true;
  private GivenFiles files;
  private RecordIterator records;

  /** Two small parts, and a large one between them. */
  private byte[][] bytes() throws IOException {
    ByteArrayOutputStream large = new ByteArrayOutputStream();
    for (int block = 1; block <= BLOCKS; block++) {
      large.write(blocks.bytes(block));
    }
    return new byte[][] {blocks.bytes(0), large.toByteArray(), blocks.bytes(BLOCKS + 1)};
  }

  private static Parts parts(int count) {
    Parts parts = new Parts(Blocks.SHUFFLE);
    for (int i = 0; i < count; i++) {
      parts.add(1_000 + i, i, 5, 6, 100, false);
    }
    return parts;
  }

  private RecordSource fetch(BlockManagerId address, Parts part) {
    fetched.add(part.mapIndex(0));
    Throwable[] causes = {answer == null ? new IOException("gone") : null};
    return blocks.group(
        part, new byte[][] {answer}, causes, new SecondFetch(null, null, failure), failure, () -> { });
  }

  /** Reads parts of which number {@link #LOST} ends at {@code end}. */
  private List<String> read(byte[][] bytes, int end) {
    files = new GivenFiles(isLent, i -> new LostPart(bytes[i], i == LOST ? end : bytes[i].length));
    Deque<RecordSource> sources = new ArrayDeque<>(Collections.singletonList(new FileRecords(
        parts(bytes.length), 0, bytes.length, files, null, blocks.decompression, failure, this::fetch, metrics)));
    records = new RecordIterator(
        sources::poll, blocks.serializer.newInstance(), blocks.decompression, context, metrics, () -> { });
    List<String> found = new ArrayList<>();
    while (records.hasNext()) {
      Tuple2<Object, Object> record = records.next();
      found.add(record._1() + "=" + record._2());
    }
    return found;
  }

  private void assertFails(byte[][] bytes, int end) throws IOException {
    FetchFailed reason = (FetchFailed) assertThrows(
        FetchFailedException.class, () -> read(bytes, end)).toTaskFailedReason();
    assertEquals(1_000L + LOST, reason.mapId());
    assertThrows(FetchFailedException.class, records::hasNext);
    records.close();
    assertEquals(0, blocks.held());
  }

  @ParameterizedTest
  @ValueSource(strings = {"lz4", "zstd", "snappy", "lzf", "none"})
  void theRestOfItIsFetched(String codec) throws IOException {
    blocks = new Records(codec);
    byte[][] bytes = bytes();
    answer = bytes[LOST];
    int size = answer.length;
    for (int end : new int[] {0, 1, size / 3, size / 2, size - 1}) {
      fetched.clear();
      assertEquals(Records.expected(BLOCKS + 2), read(bytes, end), codec + " from " + end);
      assertEquals(Collections.singletonList(LOST), fetched);
      assertEquals(Collections.emptyList(), files.left);
      assertEquals(0, blocks.held());
    }
  }

  @Test
  void aTaskThatStopsReleasesWhatWasFetched() throws IOException {
    byte[][] bytes = bytes();
    answer = Records.damaged(bytes[LOST]);
    assertThrows(FetchFailedException.class, () -> read(bytes, answer.length / 2));
    records.close();
    records.close();
    assertEquals(0, blocks.held());
  }

  @Test
  void whatIsNotFetchedNamesThePart() throws IOException {
    byte[][] bytes = bytes();
    assertFails(bytes, bytes[LOST].length / 2);
    answer = new byte[0];
    assertFails(bytes, bytes[LOST].length / 2);
    assertEquals(Arrays.asList(LOST, LOST), fetched);
  }

  /** Less than was read of the file, and less than it had. */
  @Test
  void whatIsShorterThanTheFileNamesThePart() throws IOException {
    byte[][] bytes = bytes();
    int half = bytes[LOST].length / 2;
    answer = Arrays.copyOf(bytes[LOST], half - 1);
    assertFails(bytes, half);
    answer = Arrays.copyOf(bytes[LOST], half + 1);
    assertFails(bytes, half);
    assertEquals(Arrays.asList(LOST, LOST), fetched);
  }

  /** The task has records of it, so it must not begin anew. */
  @Test
  void whatIsDamagedAfterRecordsNamesThePart() throws IOException {
    byte[][] bytes = bytes();
    answer = Records.damaged(bytes[LOST]);
    assertFails(new byte[][] {bytes[0], bytes[LOST]}, bytes[LOST].length / 2);
    assertTrue(metrics.recordsRead() > 0);
    assertEquals(Collections.singletonList(LOST), fetched);
  }

  @Test
  void anExecutorsOwnFileHasNoOtherWay() throws IOException {
    isLent = false;
    byte[][] bytes = bytes();
    answer = bytes[LOST];
    assertFails(bytes, bytes[LOST].length / 2);
    assertEquals(Collections.emptyList(), fetched);
  }
}
