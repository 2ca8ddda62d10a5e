package io.faro.spark.read.groups;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.spark.read.groups.GroupFetch.GroupBuffer;
import io.faro.spark.read.places.Blocks;
import io.faro.spark.read.places.Parts;
import io.faro.spark.read.places.ReadPlan;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.buffer.NettyManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;
import org.apache.spark.network.shuffle.BlockStoreClient;
import org.apache.spark.network.shuffle.DownloadFile;
import org.apache.spark.network.shuffle.DownloadFileManager;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.storage.BlockId;
import org.junit.jupiter.api.Test;
import scala.Tuple3;

/** A group arrives once, when all its parts have arrived or failed, and nothing of it leaks. */
class GroupFetchTest {
  private final List<ByteBuf> made = new ArrayList<>();
  private final Map<String, ManagedBuffer> kept = new HashMap<>();
  private final Map<String, Throwable> failed = new HashMap<>();
  private boolean taskIsOver;
  private final List<String> plain = new ArrayList<>();
  private String host;
  private Parts asked;
  private BlockListener parts;
  private final ReadPlan plan =
      new Blocks().of("1", 0, 3, 5, 6, 100).of("2", 3, 2, 5, 6, 100_000)
          .plan(new ReadPlan.Limits(1 << 20, 1 << 20, 1 << 20), false);
  private final GroupFetch fetch = new GroupFetch(new PlainClient(), new RecordingClient(), plan.groups, true);
  private final BlockFetchingListener listener = new BlockFetchingListener() {
    @Override
    public void onBlockFetchSuccess(String block, ManagedBuffer data) {
      if (!taskIsOver) {
        data.retain();
        assertNull(kept.put(block, data), "twice");
      }
    }

    @Override
    public void onBlockFetchFailure(String block, Throwable cause) {
      assertNull(failed.put(block, cause), "twice");
    }
  };

  private final class PlainClient extends BlockStoreClient {
    @Override
    public void fetchBlocks(String at, int port, String executor, String[] blocks, BlockFetchingListener to,
        DownloadFileManager files) {
      host = at;
      plain.addAll(Arrays.asList(blocks));
    }

    @Override
    public void close() {}
  }

  private final class RecordingClient implements PartClient {
    @Override
    public void fetch(String at, int port, String executor, Parts wanted, BlockListener to) {
      host = at;
      asked = wanted;
      parts = to;
    }

    @Override
    public void fetchAgain(String host, int port, String executor, Parts wanted, BlockListener to) {
      throw new AssertionError("not asked for");
    }
  }

  private void failed(int part, Throwable cause) {
    parts.left(new int[] {part}, null, cause, false);
  }

  private ManagedBuffer bytes(int count) {
    ByteBuf buffer = Unpooled.directBuffer(Math.max(1, count)).writeZero(count);
    made.add(buffer);
    return new NettyManagedBuffer(buffer);
  }

  /** The names that Spark's iterator asks for: a group of three, and two parts of their own. */
  private String[] names() {
    List<String> names = new ArrayList<>();
    plan.fetched.forEach(of -> {
      scala.collection.Iterator<Tuple3<BlockId, Object, Object>> all = of._2().iterator();
      while (all.hasNext()) {
        names.add(all.next()._1().name());
      }
    });
    return names.toArray(new String[0]);
  }

  private void assertNothingLeaks() {
    kept.values().forEach(ManagedBuffer::release);
    for (ByteBuf buffer : made) {
      assertEquals(0, buffer.refCnt());
    }
  }

  @Test
  void aGroupArrivesWithItsLastPart() {
    String[] names = names();
    assertEquals(3, names.length);
    fetch.fetchBlocks("h", 1, "1", names, listener, null);
    assertEquals(5, asked.count());
    parts.arrived(1, bytes(10));
    parts.arrived(0, bytes(20));
    assertEquals(0, kept.size());
    parts.arrived(3, bytes(7));
    assertEquals(7, kept.get(names[1]).size());
    parts.arrived(2, bytes(30));
    assertEquals(60, kept.get(names[0]).size());
    parts.arrived(4, bytes(1));
    parts.arrived(2, bytes(9));
    assertEquals(3, kept.size());
    assertEquals(20, ((GroupBuffer) kept.get(names[0])).part(0).size());
    assertNothingLeaks();
  }

  @Test
  void aGroupWithAFailedPartArrivesAndNamesIt() {
    String[] names = names();
    fetch.fetchBlocks("h", 1, "1", names, listener, null);
    IOException cause = new IOException("gone");
    failed(1, cause);
    parts.arrived(0, bytes(20));
    parts.arrived(2, bytes(30));
    GroupBuffer group = (GroupBuffer) kept.get(names[0]);
    assertNull(group.part(1));
    assertSame(cause, group.cause(1));
    assertNotNull(group.part(2));
    // One of its own has its own name.
    failed(3, cause);
    assertSame(cause, failed.get(names[1]));
    assertNothingLeaks();
  }

  @Test
  void withoutNettysMemoryTheIteratorAsksAgain() {
    String[] names = names();
    fetch.fetchBlocks("h", 1, "1", names, listener, null);
    parts.arrived(0, bytes(20));
    failed(1, new OutOfMemoryError("direct"));
    parts.arrived(2, bytes(30));
    assertTrue(failed.get(names[0]) instanceof OutOfMemoryError);
    fetch.fetchBlocks("h", 1, "1", new String[] {names[0]}, listener, null);
    for (int i = 0; i < 3; i++) {
      parts.arrived(i, bytes(10));
    }
    assertEquals(30, kept.get(names[0]).size());
    assertNothingLeaks();
  }

  @Test
  void anIncompleteGroupIsReleasedWithItsTask() {
    fetch.fetchBlocks("h", 1, "1", names(), listener, null);
    parts.arrived(0, bytes(20));
    fetch.close();
    parts.arrived(1, bytes(20));
    parts.arrived(2, bytes(20));
    assertEquals(0, kept.size());
    taskIsOver = true;
    fetch.fetchBlocks("h", 1, "1", names(), listener, null);
    parts.arrived(3, bytes(20));
    assertNothingLeaks();
  }

  /** The iterator may have been given another name of the host. */
  @Test
  void theGroupsHostIsAsked() {
    fetch.fetchBlocks("host-1.", 1, "1", new String[] {names()[0]}, listener, null);
    assertEquals("host-1", host);
    fetch.fetchBlocks("host-2.", 1, "2", new String[] {names()[1]}, listener, new NoFiles());
    assertEquals("host-2", host);
    assertEquals(Arrays.asList(names()[1]), plain);
  }

  private static final class NoFiles implements DownloadFileManager {
    @Override
    public DownloadFile createTempFile(TransportConf conf) {
      throw new AssertionError("not asked for");
    }

    @Override
    public boolean registerTempFileToClean(DownloadFile file) {
      throw new AssertionError("not asked for");
    }
  }

  @Test
  void whatIsNoGroupGoesOnAsItIs() {
    fetch.fetchBlocks("h", 1, "1", new String[] {"shuffle_7_1_1"}, listener, null);
    assertEquals(Arrays.asList("shuffle_7_1_1"), plain);
    assertNull(asked);
  }
}
