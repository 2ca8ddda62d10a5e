package io.faro.spark.fetch;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.shuffle.BlockFetchingListener;

/** Spark's fetch iterator as far as a client can tell: keeps what it is given, or, when its task is over, does not. */
class FakeListener implements BlockFetchingListener {
  final Map<String, ManagedBuffer> kept = new LinkedHashMap<>();
  final Map<String, Throwable> failed = new LinkedHashMap<>();
  boolean taskIsOver;
  RuntimeException throwsOnSuccess;
  RuntimeException throwsOnFailure;

  @Override
  public void onBlockFetchSuccess(String blockId, ManagedBuffer data) {
    if (throwsOnSuccess != null) {
      throw throwsOnSuccess;
    }
    if (!taskIsOver) {
      data.retain();
      if (kept.put(blockId, data) != null) {
        throw new AssertionError(blockId + " came twice");
      }
    }
  }

  @Override
  public void onBlockFetchFailure(String blockId, Throwable exception) {
    if (failed.put(blockId, exception) != null) {
      throw new AssertionError(blockId + " failed twice");
    }
    if (throwsOnFailure != null) {
      throw throwsOnFailure;
    }
  }

  String content(String block) throws IOException {
    return read(kept.get(block));
  }

  static String read(ManagedBuffer buffer) throws IOException {
    try (InputStream in = buffer.createInputStream()) {
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      for (int b = in.read(); b >= 0; b = in.read()) {
        out.write(b);
      }
      return new String(out.toByteArray(), StandardCharsets.UTF_8);
    }
  }

  void releaseAll() {
    kept.values().forEach(ManagedBuffer::release);
    kept.clear();
  }
}
