package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** Tests the names of the loggers that native lines go to. */
class LogBridgeTest {
  @Test
  void targetsBecomeLoggerNames() {
    assertEquals("io.faro.native.fabric.tcp.hub", LogBridge.nameOf("faro_fabric::tcp::hub"));
    assertEquals("io.faro.native.endpoint", LogBridge.nameOf("faro_endpoint"));
    assertEquals("io.faro.native.mio.poll", LogBridge.nameOf("mio::poll"));
  }
}
