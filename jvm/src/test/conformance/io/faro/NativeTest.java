package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Tests the JNI boundary: every wrong argument of Java must raise an exception, and the process must continue. */
class NativeTest {
  private static final String SETTINGS = "name=n\nfabric=tcp\nmemory.limit=67108864\nrequest.timeout=1000\n";

  private static final long[] BOGUS = {0, 1, -1, 7, 1L << 32, Long.MAX_VALUE, Long.MIN_VALUE, 0x7fff_0000_1234_5678L};

  @BeforeAll
  static void library() throws FaroException {
    Repository.loadNative();
  }

  @Test
  void unknownHandlesAreExceptions() {
    ByteBuffer direct = ByteBuffer.allocateDirect(64);
    for (long handle : BOGUS) {
      assertThrows(EndpointException.Closed.class, () -> Native.card(handle));
      assertThrows(EndpointException.Closed.class, () -> Native.addPeer(handle, new byte[0], ""));
      assertThrows(EndpointException.Closed.class, () -> Native.fetch(handle, 1, direct, 1, 1, false));
      assertThrows(EndpointException.Closed.class, () -> Native.cancel(handle, 1));
      assertThrows(EndpointException.Closed.class, () -> Native.isBackedOff(handle, 1));
      assertThrows(EndpointException.Closed.class, () -> Native.blame(handle, 1));
      assertThrows(EndpointException.Closed.class, () -> Native.completions(handle, 0, direct, 1));
      assertThrows(EndpointException.Closed.class, () -> Native.unresolved(handle, new long[2], 1));
      assertThrows(EndpointException.Closed.class, () -> Native.resolve(handle, 1, 1, null, null));
      assertThrows(EndpointException.Closed.class, () -> Native.forgetShuffle(handle, 1));
      assertThrows(EndpointException.Closed.class, () -> Native.counters(handle));
      assertThrows(EndpointException.Closed.class, () -> Native.close(handle));
      assertThrows(EndpointException.Closed.class, () -> Native.free(handle));
      assertThrows(EndpointException.Closed.class, () -> Native.referenceSlab(handle, 0));
      assertThrows(IllegalStateException.class, () -> Native.releaseSlices(handle, 0, 1));
      assertThrows(IllegalStateException.class, () -> Native.slabBytes(handle));
      assertThrows(IllegalStateException.class, () -> Native.releaseSlab(handle));
    }
  }

  @Test
  void argumentsAreCheckedBeforeUse() throws FaroException {
    long endpoint = Native.start(SETTINGS, null, 1);
    try {
      ByteBuffer direct = ByteBuffer.allocateDirect(64);
      ByteBuffer heap = ByteBuffer.allocate(64);
      assertThrows(IllegalArgumentException.class, () -> Native.fetch(endpoint, 1, heap, 1, 1, false));
      assertThrows(IllegalArgumentException.class, () -> Native.fetch(endpoint, 1, null, 1, 1, false));
      assertThrows(IllegalArgumentException.class, () -> Native.fetch(endpoint, 1, direct, 3, 1, false));
      assertThrows(IllegalArgumentException.class, () -> Native.fetch(endpoint, 1, direct, -1, 1, false));
      assertThrows(IllegalArgumentException.class,
          () -> Native.fetch(endpoint, 1, direct, Integer.MAX_VALUE, 1, false));
      assertThrows(IllegalArgumentException.class, () -> Native.fetch(endpoint, 1, direct, 0, 1, false));
      assertThrows(IllegalArgumentException.class, () -> Native.completions(endpoint, 0, heap, 1));
      assertThrows(IllegalArgumentException.class, () -> Native.completions(endpoint, 0, null, 1));
      assertThrows(IllegalArgumentException.class, () -> Native.addPeer(endpoint, null, ""));
      assertThrows(IllegalArgumentException.class, () -> Native.unresolved(endpoint, null, 1));
      assertThrows(IllegalArgumentException.class, () -> Native.resolve(endpoint, 1, 1, "x", null));
      assertThrows(IllegalArgumentException.class, () -> Native.referenceSlab(endpoint, 4_096));
      assertThrows(IllegalArgumentException.class, () -> Native.referenceSlab(endpoint, -1));
      assertThrows(IllegalArgumentException.class, () -> Native.completions(endpoint, 1, direct, 1));
      assertThrows(IllegalArgumentException.class, () -> Native.completions(endpoint, -1, direct, 1));
      assertThrows(IllegalArgumentException.class, () -> Native.start(SETTINGS, null, 0));
      assertThrows(IllegalArgumentException.class, () -> Native.start(SETTINGS, null, 9));
      assertThrows(IllegalArgumentException.class, () -> Native.start(null, null, 1));
      assertThrows(IllegalArgumentException.class, () -> Native.start(SETTINGS, new byte[0], 1));
      assertThrows(IllegalArgumentException.class, () -> Native.start(SETTINGS + "colour=red", null, 1));
      assertThrows(IllegalArgumentException.class, () -> Native.start(SETTINGS + "port", null, 1));
      assertThrows(BadConfigurationException.class, () -> Native.start(SETTINGS + "port=65536", null, 1));
      assertThrows(BadConfigurationException.class, () -> Native.start(SETTINGS + "fabric=9", null, 1));
      assertEquals(0, Native.completions(endpoint, 0, direct, 0));
      assertEquals(0, Native.unresolved(endpoint, new long[2], 0));
    } finally {
      Native.close(endpoint);
      assertEquals(-1, Native.completions(endpoint, 0, ByteBuffer.allocateDirect(64), 60_000));
      assertEquals(-1, Native.unresolved(endpoint, new long[2], 60_000));
      Native.free(endpoint);
    }
    assertThrows(EndpointException.Closed.class, () -> Native.free(endpoint));
  }

  @Test
  void textSurvivesTheBoundary() throws FaroException {
    String name = "ex\u00e4cutor \u2013 \ud83c\udccf";
    long endpoint = Native.start(SETTINGS + "name=" + name, null, 1);
    try {
      String card = new String(Native.card(endpoint), java.nio.charset.StandardCharsets.UTF_8);
      assertTrue(card.contains("name=" + name + "\n"), card);
    } finally {
      Native.close(endpoint);
      Native.free(endpoint);
    }
  }

  @Test
  void theVersionIsTheJars() {
    assertEquals(Faro.version(), Native.version());
    assertEquals(NativeLibrary.jarVersion(), Faro.version());
  }
}
