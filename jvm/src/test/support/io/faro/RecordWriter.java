package io.faro;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Writes records of finished blocks as native code does. */
final class RecordWriter {
  private final List<int[]> slices = new ArrayList<>();
  private final List<long[]> blocks = new ArrayList<>();
  private long request = 1;
  private int firstBlock;
  private long batch;
  private boolean last = true;
  private boolean scarce;
  private int outcome;
  private int failedBlocks;
  private String detail = "";

  RecordWriter request(long value) {
    request = value;
    return this;
  }

  RecordWriter firstBlock(int value) {
    firstBlock = value;
    return this;
  }

  RecordWriter batch(long value) {
    batch = value;
    return this;
  }

  RecordWriter more() {
    last = false;
    return this;
  }

  RecordWriter scarce() {
    scarce = true;
    return this;
  }

  RecordWriter slice(int slab, int offset, int length) {
    slices.add(new int[] {slab, offset, length});
    return this;
  }

  RecordWriter block(long length) {
    return block(BlockStatus.OK, length);
  }

  RecordWriter block(BlockStatus status, long length) {
    blocks.add(new long[] {status.code(), length});
    return this;
  }

  RecordWriter error(int code, int count, String text) {
    outcome = code;
    failedBlocks = count;
    detail = text;
    return this;
  }

  byte[] bytes() {
    byte[] text = detail.getBytes(StandardCharsets.UTF_8);
    int size = RecordDescriptor.HEAD_BYTES
        + slices.size() * RecordDescriptor.SLICE_BYTES
        + blocks.size() * RecordDescriptor.BLOCK_BYTES
        + (text.length + 7) / 8 * 8;
    ByteBuffer out = ByteBuffer.allocate(size).order(ByteOrder.LITTLE_ENDIAN);
    out.putInt(size).putInt(outcome).putLong(request).putInt(firstBlock);
    out.putInt(outcome == 0 ? blocks.size() : failedBlocks).putLong(batch);
    out.putInt(slices.size()).putInt(Fabric.TCP.code()).putInt((last ? 1 : 0) | (scarce ? 2 : 0)).putInt(text.length);
    for (int[] slice : slices) {
      out.putInt(slice[0]).putInt(slice[1]).putInt(slice[2]).putInt(0);
    }
    for (long[] block : blocks) {
      out.putInt((int) block[0]).putInt(0).putLong(block[1]);
    }
    out.put(text);
    return out.array();
  }

  /** Returns the records, one after the other, as native code hands them over. */
  static ByteBuffer direct(byte[]... records) {
    int size = 0;
    for (byte[] record : records) {
      size += record.length;
    }
    ByteBuffer out = ByteBuffer.allocateDirect(size).order(ByteOrder.LITTLE_ENDIAN);
    for (byte[] record : records) {
      out.put(record);
    }
    return out;
  }
}
