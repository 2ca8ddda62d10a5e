package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Collections;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Endpoints that agree on application, protection and secret exchange blocks; all others do not. Shared memory works in
 * the same way with both kinds of protection.
 */
class SecureEndpointTest {
  private static final int LENGTH = 300_000;

  @TempDir
  Path directory;

  @BeforeAll
  static void library() throws FaroException {
    Repository.loadNative();
  }

  private static Endpoint start(
      FabricChoice fabric, String application, boolean sealed, String secret, OutputResolver outputs)
      throws FaroException {
    EndpointConfig config = EndpointConfig.builder().name("secure").fabric(fabric).memoryLimitBytes(64L << 20)
        .set("request.timeout", "5000").application(application).sealed(sealed).build();
    byte[] bytes = secret.equals("-") ? null : secret.getBytes(StandardCharsets.UTF_8);
    return Endpoint.start(config, bytes, outputs);
  }

  private CollectedBlocks fetch(FabricChoice fabric, String application, boolean sealed, String secret)
      throws Exception {
    MapOutputs outputs = new MapOutputs(directory).write(1, 2, LENGTH);
    try (Endpoint server = start(fabric, "app-1", true, "correct", outputs);
        Endpoint client = start(fabric, application, sealed, secret, (shuffle, map) -> null)) {
      String card = new String(server.card(), StandardCharsets.UTF_8);
      assertFalse(card.contains("correct"), card);
      CollectedBlocks got = new CollectedBlocks(1);
      client.fetch(client.addPeer(server.card()), new BlockIds().add(1, 2, 0, 1), 0, got);
      got.await();
      if (got.errors.isEmpty()) {
        assertArrayEquals(MapOutputs.partition(2, 0, LENGTH), got.bytes(0));
      }
      got.releaseAll();
      return got;
    }
  }

  @ParameterizedTest
  @CsvSource({"TCP", "SHM"})
  void membersOfAnApplicationExchangeBlocks(FabricChoice fabric) throws Exception {
    assertEquals(Collections.emptyList(), fetch(fabric, "app-1", true, "correct").errors);
  }

  @ParameterizedTest
  @CsvSource({
    "TCP, app-1, true, guessed", "TCP, app-1, true, -", "TCP, app-2, true, correct", "TCP, app-1, false, correct",
    "SHM, app-1, true, guessed", "SHM, app-1, true, -", "SHM, app-2, true, correct",
  })
  void othersAreRefused(FabricChoice fabric, String application, boolean sealed, String secret) throws Exception {
    CollectedBlocks got = fetch(fabric, application, sealed, secret);
    assertEquals(1, got.errors.size());
    String error = got.errors.get(0).getMessage();
    assertFalse(error.contains("correct") || error.contains("guessed"), error);
  }
}
