package io.faro.spark.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.spark.ui.Figures;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

class ReportTest {
  private static Report full() {
    Report report = Figures.report("3", 9, "requests", 4, "remoteBytes.tcp", Long.MAX_VALUE);
    report.problem = "größer";
    report.shuffles.put(5, Figures.counters("requests", 2));
    report.services.put("höst", Figures.counters(Traffic.SERVICE_BLOCKS, 6));
    report.peers.add(Figures.peer("executor 1 at höst:7", 77));
    return report;
  }

  @Test
  void whatIsWrittenIsRead() throws IOException {
    Report read = Report.decode(full().encode());
    assertEquals("3", read.executor);
    assertEquals("host-3", read.host);
    assertEquals(9, read.number);
    assertEquals("größer", read.problem);
    assertEquals(full().counters, read.counters);
    assertEquals(full().shuffles, read.shuffles);
    assertEquals(full().services, read.services);
    assertEquals("executor 1 at höst:7", read.peers.get(0).peer);
    assertEquals(77, read.peers.get(0).slowestNanos);
  }

  @Test
  void anotherVersionIsNamed() throws IOException {
    byte[] bytes = full().encode();
    bytes[0] = 9;
    assertTrue(assertThrows(IOException.class, () -> Report.decode(bytes)).getMessage().contains("version 9"));
  }

  @Test
  void aCountThatIsTooLargeIsNamedAndNothingIsMadeOfThatSize() throws IOException {
    byte[] bytes = Figures.report("1", 1).encode();
    // The count of the counters follows "1", "host-1", the number and no problem.
    ByteBuffer.wrap(bytes).putInt(1 + 3 + 8 + 8 + 2, 2_000_000_000);
    String message = assertThrows(IOException.class, () -> Report.decode(bytes)).getMessage();
    assertTrue(message.contains("2000000000 counters"), message);
  }

  @Test
  void noTruncationAndNoNoiseDoesMoreThanThrow() throws IOException {
    byte[] bytes = full().encode();
    for (int length = 0; length < bytes.length; length++) {
      byte[] part = Arrays.copyOf(bytes, length);
      assertThrows(IOException.class, () -> Report.decode(part));
    }
    Random random = new Random(42);
    for (int i = 0; i < 10_000; i++) {
      byte[] noise = bytes.clone();
      noise[random.nextInt(noise.length)] = (byte) random.nextInt();
      try {
        Report.decode(noise);
      } catch (IOException e) {
        // The only exception that is allowed.
      }
    }
  }
}
