package io.faro.spark.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.codahale.metrics.MetricRegistry;
import io.faro.BlockBytes;
import io.faro.SliceSink;
import io.faro.spark.metrics.FaroSource;
import io.faro.spark.metrics.Summary;
import io.faro.spark.peers.Addresses;
import io.faro.spark.peers.Steps;
import io.faro.spark.transport.FaroManagedBuffer;
import io.netty.buffer.ByteBuf;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class SmallPartsTest {
  private static final byte[] BYTES = "eleven bits".getBytes(StandardCharsets.UTF_8);

  @Test
  void bufferReadsItsMemoryInEveryWay() throws Exception {
    FakeMemory memory = new FakeMemory(BYTES);
    FaroManagedBuffer buffer = new FaroManagedBuffer(memory);
    assertEquals(11, buffer.size());
    assertEquals("eleven bits", FakeListener.read(buffer));
    assertEquals(ByteBuffer.wrap(BYTES), buffer.nioByteBuffer());
    for (Object converted : new Object[] {buffer.convertToNetty(), buffer.convertToNettyForSsl()}) {
      assertEquals("eleven bits", ((ByteBuf) converted).toString(StandardCharsets.UTF_8));
    }
    assertEquals(1, memory.references, "reading changes no count");
  }

  @Test
  void bufferCountsOnItsMemory() throws Exception {
    FakeMemory memory = new FakeMemory(BYTES);
    FaroManagedBuffer buffer = new FaroManagedBuffer(memory);
    assertSame(buffer, buffer.retain());
    assertEquals(2, memory.references);
    assertSame(buffer, buffer.release());
    try (InputStream in = buffer.createInputStream()) {
      assertEquals('e', in.read());
    }
    assertEquals(1, memory.references, "a stream has no reference of its own");
    buffer.release();
    assertEquals(0, memory.references);
    assertThrows(IllegalStateException.class, buffer::release);
    assertThrows(IllegalStateException.class, buffer::createInputStream);
  }

  @Test
  void bufferBeyondOneByteBufferSaysSo() {
    BlockBytes huge = new BlockBytes() {
      @Override
      public long length() {
        return 1L << 31;
      }

      @Override
      public BlockBytes retain() {
        return this;
      }

      @Override
      public void release() {}

      @Override
      public InputStream inputStream() {
        return null;
      }

      @Override
      public ByteBuffer nioByteBuffer() {
        throw new AssertionError("must not be asked");
      }

      @Override
      public void addTo(SliceSink slices) {
        throw new AssertionError("must not be asked");
      }

      @Override
      public void copyTo(ByteBuffer target) {
        throw new AssertionError("must not be asked");
      }
    };
    String message = assertThrows(
        UnsupportedOperationException.class, () -> new FaroManagedBuffer(huge).nioByteBuffer()).getMessage();
    assertTrue(message.contains("2147483648"), message);
  }

  @Test
  void sourceShowsEveryCounterAsItIsNow() {
    Map<String, Long> counters = new LinkedHashMap<>();
    counters.put("remoteBlocks.tcp", 1L);
    counters.put("a.counter.of.tomorrow", 0L);
    FaroSource source = new FaroSource(() -> counters);
    MetricRegistry registry = source.metricRegistry();
    assertEquals("faro", source.sourceName());
    assertEquals(counters.keySet(), registry.getGauges().keySet());
    counters.put("remoteBlocks.tcp", 5L);
    assertEquals(5L, registry.getGauges().get("remoteBlocks.tcp").getValue());
    counters.clear();
    assertEquals(0L, registry.getGauges().get("remoteBlocks.tcp").getValue(), "also after the close");
  }

  @Test
  void summaryIsSaidOnceWithWhatMattersFirst() {
    Map<String, Long> counters = new LinkedHashMap<>();
    counters.put("requests", 3L);
    counters.put("retries", 0L);
    counters.put("crcErrors", 0L);
    counters.put("remoteBytes.tcp", 77L);
    List<String> said = new ArrayList<>();
    Summary summary = new Summary(() -> counters, said::add);
    summary.log();
    summary.log();
    assertEquals(1, said.size());
    assertEquals("Faro summary: remoteBlocks.verbs=0 remoteBytes.verbs=0 remoteBlocks.tcp=0 remoteBytes.tcp=77 "
        + "remoteBlocks.shm=0 remoteBytes.shm=0 fallbacks=0 fallbackBlocks=0 crcErrors=0 pool.highWaterBytes=0 "
        + "memory.tasksHighWaterBytes=0 memory.totalHighWaterBytes=0 "
        + "requests=3", said.get(0));
  }

  @Test
  void oneLinePerTopicAndTimeAndABoundedNumberPerMinute() {
    Steps steps = new Steps();
    List<String> said = new ArrayList<>();
    RateLimitedLog log = new RateLimitedLog(said::add, steps);
    for (int i = 0; i < 5; i++) {
      log.warn("a", "a happens");
    }
    assertEquals(1, said.size());
    steps.pass(RateLimitedLog.REPEAT_NANOS, TimeUnit.NANOSECONDS);
    log.warn("a", "a happens");
    assertEquals("a happens (4 more since this was last logged)", said.get(1));
    for (int i = 0; i < 1_000; i++) {
      log.warn("peer " + i, "peer " + i);
    }
    assertEquals(1 + RateLimitedLog.PER_MINUTE, said.size());
    steps.pass(1, TimeUnit.MINUTES);
    log.warn("peer 999", "peer 999");
    assertEquals("peer 999 (1 more since this was last logged)", said.get(said.size() - 1));
  }

  @Test
  void addresses() throws Exception {
    Addresses own = Addresses.of("127.0.0.1", null, null);
    assertEquals("127.0.0.1", own.bind);
    assertEquals("127.0.0.1", own.advertise);
    // TEST-NET-3 belongs to no machine, like an address behind address translation.
    Addresses translated = Addresses.of("203.0.113.9", null, null);
    assertEquals("0.0.0.0", translated.bind);
    assertEquals("203.0.113.9", translated.advertise);
    Addresses chosen = Addresses.of("[::1]", "0.0.0.0", null);
    assertEquals("0.0.0.0", chosen.bind);
    assertEquals("0:0:0:0:0:0:0:1", chosen.advertise);
    String message = assertThrows(
        UnknownHostException.class, () -> Addresses.of("127.0.0.1", "no-such-host.invalid", null)).getMessage();
    assertTrue(message.contains("spark.faro.bindAddress") && message.contains("no-such-host.invalid"), message);
    Addresses pod = Addresses.of("203.0.113.9", null, "127.0.0.1");
    assertEquals("127.0.0.1", pod.bind, "where Spark listens");
    assertEquals("203.0.113.9", pod.advertise);
    Addresses everywhere = Addresses.of("127.0.0.1", null, "0.0.0.0");
    assertEquals("0.0.0.0", everywhere.bind);
    Addresses nameOfOthers = Addresses.of("no-such-host.invalid", null, "127.0.0.1");
    assertEquals("127.0.0.1", nameOfOthers.advertise);
    assertThrows(UnknownHostException.class, () -> Addresses.of("no-such-host.invalid", null, "0.0.0.0"));
  }

  @Test
  void addressesThatSparkAndItsPeersKnow() throws Exception {
    assertEquals("10.0.0.7", Addresses.sparksBindAddress("X --hostname h --bind-address 10.0.0.7 --cores 1"));
    assertNull(Addresses.sparksBindAddress("X --hostname h"));
    assertNull(Addresses.sparksBindAddress("X --bind-address"));
    assertEquals(InetAddress.getByName("127.0.0.1"), Addresses.known("127.0.0.1").get(0));
    assertTrue(Addresses.known("no-such-host.invalid").isEmpty());
  }
}
