package io.faro.spark.read.records;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.spark.read.groups.BlockListener;
import io.faro.spark.read.groups.PartClient;
import io.faro.spark.read.groups.PartFailure;
import io.faro.spark.read.groups.SecondFetch;
import io.faro.spark.read.places.Blocks;
import io.faro.spark.read.places.Parts;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import org.apache.spark.FetchFailed;
import org.apache.spark.TaskContext;
import org.apache.spark.executor.TempShuffleReadMetrics;
import org.apache.spark.network.buffer.FileSegmentManagedBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.util.MapConfigProvider;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.shuffle.FetchFailedException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.Tuple2;

/** Parts are deserialised as one stream; what fails is named exactly, once more fetched, or the task's own. */
class RecordIteratorTest {
  private static final int PARTS = 100;
  private static final int REDUCE = 5;

  private final TempShuffleReadMetrics metrics = new TempShuffleReadMetrics();
  private final PartFailure failure = new PartFailure(null, null);
  private final TaskContext context = org.apache.spark.TaskContext$.MODULE$.empty();
  private final List<Integer> fetchedAgain = new ArrayList<>();
  /** The buffers that come when a part is fetched once more. */
  private final Deque<ManagedBuffer> answers = new ArrayDeque<>();
  private List<String> leftToTheNetwork;
  private int handlesClosed;
  private Records blocks = new Records("lz4");

  private final class RepeatingClient implements PartClient {
    @Override
    public void fetch(String host, int port, String executor, Parts wanted, BlockListener to) {
      throw new AssertionError("not asked for");
    }

    @Override
    public void fetchAgain(String host, int port, String executor, Parts wanted, BlockListener to) {
      fetchedAgain.add(wanted.mapIndex(0));
      if (answers.isEmpty()) {
        to.left(new int[] {0}, null, new IOException("gone"), true);
      } else {
        to.arrived(0, answers.remove());
      }
    }
  }

  private Parts parts(int count) {
    Parts parts = new Parts(Blocks.SHUFFLE);
    for (int i = 0; i < count; i++) {
      parts.add(1000 + i, i, REDUCE, REDUCE + 1, 100, false);
    }
    return parts;
  }

  private byte[][] bytes(int count) {
    byte[][] all = new byte[count][];
    for (int i = 0; i < count; i++) {
      all[i] = blocks.bytes(i);
    }
    return all;
  }

  private GroupRecords group(byte[][] bytes, Throwable... causes) {
    SecondFetch secondFetch = new SecondFetch(new RepeatingClient(), context, failure);
    return blocks.group(parts(bytes.length), bytes, causes.length == 0 ? null : causes, secondFetch, failure,
        () -> handlesClosed++);
  }

  private RecordIterator records(SerializerInstance serializer, RecordSource... sources) {
    Deque<RecordSource> left = new ArrayDeque<>(Arrays.asList(sources));
    return new RecordIterator(left::poll, serializer, blocks.decompression, context, metrics, () -> { });
  }

  private RecordIterator records(RecordSource... sources) {
    return records(blocks.serializer.newInstance(), sources);
  }

  private static List<String> read(RecordIterator records) {
    List<String> found = new ArrayList<>();
    while (records.hasNext()) {
      Tuple2<Object, Object> record = records.next();
      found.add(record._1() + "=" + record._2());
    }
    assertFalse(records.hasNext());
    return found;
  }

  /** The task's end, which closes all. */
  private void assertFails(int part, RecordIterator records) throws IOException {
    FetchFailed reason =
        (FetchFailed) assertThrows(FetchFailedException.class, () -> read(records)).toTaskFailedReason();
    assertEquals(Blocks.SHUFFLE, reason.shuffleId());
    assertEquals(1000L + part, reason.mapId());
    assertEquals(part, reason.mapIndex());
    assertEquals(REDUCE, reason.reduceId());
    // Never an end that looks like that of the data.
    assertThrows(FetchFailedException.class, records::hasNext);
    records.close();
    assertEquals(0, blocks.held());
  }

  /** The bytes were not checked on their way: see {@code ReaderConf.partsHaveChecksums}. */
  @Test
  void everyFlippedBitGivesTheSameRecordsOrAnError() throws IOException {
    byte[] good = blocks.bytes(0);
    List<String> expected = read(records(group(new byte[][] {good})));
    int errors = 0;
    for (int bit = 0; bit < good.length * 8; bit++) {
      byte[] flipped = good.clone();
      flipped[bit / 8] ^= (byte) (1 << bit % 8);
      RecordIterator records = records(group(new byte[][] {flipped}));
      List<String> found = null;
      try {
        found = read(records);
      } catch (Exception e) {
        assertTrue(e instanceof FetchFailedException, e.toString());
        errors++;
      }
      assertTrue(found == null || found.equals(expected), "bit " + bit);
      records.close();
    }
    assertTrue(errors > good.length, errors + " errors");
    assertEquals(0, blocks.held());
  }

  @ParameterizedTest
  @ValueSource(strings = {"lz4", "zstd", "snappy", "lzf", "none"})
  void aGroupIsOneStream(String codec) throws IOException {
    blocks = new Records(codec);
    RecordIterator records = records(group(bytes(PARTS)), group(bytes(1)), group(bytes(3)));
    List<String> expected = Records.expected(PARTS);
    expected.addAll(Records.expected(1));
    expected.addAll(Records.expected(3));
    assertEquals(expected, read(records));
    assertEquals(expected.size(), metrics.recordsRead());
    assertEquals(3, handlesClosed);
    records.close();
    assertEquals(0, blocks.held());
  }

  @Test
  void aCorruptPartIsNamed() throws IOException {
    byte[][] bytes = bytes(PARTS);
    bytes[57] = Records.damaged(bytes[57]);
    assertFails(57, records(group(bytes)));
    assertEquals(Collections.emptyList(), fetchedAgain);
  }

  /** Kryo takes that for the end of its stream. */
  @Test
  void aTruncatedPartIsNamed() throws IOException {
    byte[][] bytes = bytes(PARTS);
    bytes[PARTS - 1] = Arrays.copyOf(bytes[PARTS - 1], 40);
    assertFails(PARTS - 1, records(group(bytes)));
  }

  @Test
  void aCorruptPartIsFetchedAgainWhileTheTaskHasNoRecord() throws IOException {
    byte[][] bytes = bytes(3);
    bytes[0] = Records.damaged(bytes[0]);
    answers.add(blocks.buffer(blocks.bytes(0)));
    RecordIterator records = records(group(bytes));
    assertEquals(Records.expected(3), read(records));
    assertEquals(Collections.singletonList(0), fetchedAgain);
    assertEquals(0, blocks.held());
    assertEquals(6, metrics.recordsRead());
  }

  @Test
  void aPartThatIsCorruptTwiceIsNamed() throws IOException {
    byte[][] bytes = bytes(3);
    bytes[0] = Records.damaged(bytes[0]);
    answers.add(blocks.buffer(bytes[0]));
    assertFails(0, records(group(bytes)));
    assertEquals(Collections.singletonList(0), fetchedAgain);
    assertFails(0, records(group(bytes)));
  }

  @Test
  void aMissingPartIsNamedBeforeARecordIsHandedOut() throws IOException {
    byte[][] bytes = bytes(3);
    bytes[2] = null;
    assertFails(2, records(group(bytes, null, null, new IOException("gone"))));
    assertEquals(0, metrics.recordsRead());
    bytes[2] = new byte[0];
    assertFails(2, records(group(bytes)));
  }

  /** Bytes that Kryo does not know, in a part that is as it was written. */
  @Test
  void whatTheDeserialiserThrowsIsTheTasksOwn() throws IOException {
    blocks = new Records("none");
    byte[][] bytes = bytes(3);
    bytes[1] = new byte[] {126, 1, 2, 3};
    RecordIterator records = records(group(bytes));
    assertEquals(0, records.next()._1());
    records.next();
    RuntimeException thrown = assertThrows(RuntimeException.class, () -> read(records));
    assertSame(thrown, assertThrows(RuntimeException.class, records::hasNext));
    records.close();
    assertEquals(0, blocks.held());
  }

  @Test
  void aTaskThatStopsEarlyReleasesAll() throws IOException {
    RecordIterator records = records(group(bytes(PARTS)), group(bytes(0)));
    records.next();
    records.close();
    records.close();
    assertEquals(0, blocks.held());
    assertEquals(1, handlesClosed);
    assertThrows(Exception.class, () -> read(records));
  }

  // Files.

  private FileRecords files(Path directory, byte[][] bytes, int cut) throws IOException {
    return files(directory, bytes, cut, null);
  }

  /** {@code gone}: parts of lent files that are not there; {@code null}: the files are this executor's own. */
  private FileRecords files(Path directory, byte[][] bytes, int cut, List<Integer> gone) throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    long[] starts = new long[bytes.length + 1];
    for (int i = 0; i < bytes.length; i++) {
      all.write(bytes[i]);
      starts[i + 1] = all.size();
    }
    Path file = directory.resolve("data");
    Files.write(file, Arrays.copyOf(all.toByteArray(), all.size() - cut));
    TransportConf conf = new TransportConf("shuffle", new MapConfigProvider(Collections.emptyMap()));
    GivenFiles local = new GivenFiles(gone != null, i -> {
      if (gone != null && gone.contains(i)) {
        throw new IOException("lent no more");
      }
      return new FileSegmentManagedBuffer(conf, new File(file.toString()), starts[i], starts[i + 1] - starts[i]);
    });
    leftToTheNetwork = local.left;
    return new FileRecords(
        parts(bytes.length), 0, bytes.length, local, null, blocks.decompression, failure, null, metrics);
  }

  @Test
  void filesAreOneStreamAndCountedByPart(@TempDir Path directory) throws IOException {
    assertEquals(Records.expected(PARTS), read(records(files(directory, bytes(PARTS), 0))));
    assertEquals(PARTS, metrics.localBlocksFetched());
    assertEquals(Files.size(directory.resolve("data")), metrics.localBytesRead());
  }

  @Test
  void aCorruptPartOfALentFileIsLeftToTheNetwork(@TempDir Path directory) throws IOException {
    byte[][] bytes = bytes(PARTS);
    bytes[0] = Records.damaged(bytes[0]);
    List<String> expected = Records.expected(PARTS);
    List<String> others = expected.subList(2, expected.size());
    assertEquals(others, read(records(files(directory, bytes, 0, Collections.emptyList()))));
    assertEquals(Collections.singletonList("corrupt 0"), leftToTheNetwork);
  }

  /** Its records are in the task already, in part. */
  @Test
  void aCorruptPartAfterOthersOfItsStreamEndsTheTask(@TempDir Path directory) throws IOException {
    byte[][] bytes = bytes(PARTS);
    bytes[57] = Records.damaged(bytes[57]);
    assertFails(57, records(files(directory, bytes, 0, Collections.emptyList())));
    assertEquals(Collections.emptyList(), leftToTheNetwork);
  }

  @ParameterizedTest
  @ValueSource(strings = {"lz4", "zstd", "snappy", "lzf", "none"})
  void partsThatAreNotLentAnyMoreAreLeftOut(String codec, @TempDir Path directory) throws IOException {
    blocks = new Records(codec);
    List<String> all = Records.expected(4);
    List<String> others = new ArrayList<>(all.subList(2, 4));
    others.addAll(all.subList(6, 8));
    assertEquals(others, read(records(files(directory, bytes(4), 0, Arrays.asList(0, 2)))));
    assertEquals(Arrays.asList("gone 0", "gone 2"), leftToTheNetwork);
    assertEquals(2, metrics.localBlocksFetched());
    RecordSource none = files(directory, bytes(2), 0, Arrays.asList(0, 1));
    assertEquals(Records.expected(1), read(records(none, group(bytes(1)))));
    assertEquals(2, metrics.localBlocksFetched());
  }

  @Test
  void aPartThatWasLeftAndArrivesDamagedIsFetchedOnceMore(@TempDir Path directory) throws IOException {
    RecordSource file = files(directory, bytes(1), 0, Collections.singletonList(0));
    answers.add(blocks.buffer(blocks.bytes(0)));
    byte[][] damaged = {Records.damaged(blocks.bytes(0))};
    assertEquals(Records.expected(1), read(records(file, group(damaged))));
    assertEquals(Collections.singletonList(0), fetchedAgain);
    assertEquals(0, blocks.held());
  }

  @Test
  void aCorruptFileIsNotReadAgain(@TempDir Path directory) throws IOException {
    byte[][] bytes = bytes(PARTS);
    bytes[0] = Records.damaged(bytes[0]);
    assertFails(0, records(files(directory, bytes, 0)));
    assertTrue(metrics.localBlocksFetched() <= PARTS);
  }

  @Test
  void aFileThatEndsEarlyFailsItsPart(@TempDir Path directory) throws IOException {
    blocks = new Records("none");
    assertFails(PARTS - 1, records(files(directory, bytes(PARTS), 1)));
  }
}
