package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Collections;
import org.junit.jupiter.api.Test;

/** Tests the text form of settings; native code checks their values (native/jni/src/settings.rs, EndpointTest). */
class EndpointConfigTest {
  @Test
  void settingsAreOneLineEach() {
    EndpointConfig config = EndpointConfig.builder()
        .name("executor-1")
        .fabric(FabricChoice.SHM)
        .bindAddress("0.0.0.0")
        .advertisedAddress("10.0.0.8")
        .port(7_400)
        .memoryLimitBytes(64L << 20)
        .set("memory.idleRelease", "1500")
        .set(Collections.singletonMap("exchange", "grouped"))
        .build();
    assertEquals(
        "name=executor-1\nfabric=shm\nbindAddress=0.0.0.0\nadvertisedAddress=10.0.0.8\nport=7400\n"
            + "memory.limit=67108864\nmemory.idleRelease=1500\nexchange=grouped\n",
        config.settings());
  }

  @Test
  void theLastValueCounts() {
    EndpointConfig.Builder builder = EndpointConfig.builder().port(1).name("a");
    EndpointConfig first = builder.build();
    assertEquals("port=2\nname=a\n", builder.port(2).build().settings());
    assertEquals("port=1\nname=a\n", first.settings(), "a configuration does not change with its builder");
  }

  @Test
  void whatIsNotOneLineIsRefused() {
    EndpointConfig.Builder builder = EndpointConfig.builder();
    assertThrows(IllegalArgumentException.class, () -> builder.name("a\nport=1"));
    assertThrows(IllegalArgumentException.class, () -> builder.set("port\n", "1"));
    assertThrows(IllegalArgumentException.class, () -> builder.set("port=", "1"));
    assertThrows(NullPointerException.class, () -> builder.bindAddress(null));
  }
}
