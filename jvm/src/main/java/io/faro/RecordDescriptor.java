package io.faro;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Layout of the record in which finished blocks cross from native code (native/jni, record.rs). Little-endian.
 *
 * <pre>
 *   0 u32 record_bytes     whole record, a multiple of 8
 *   4 u32 outcome          0: delivered; else a FetchErrorCode
 *   8 u64 request
 *  16 u32 first_block      position of the first block in the request
 *  20 u32 block_count      blocks in this record (on an error: all that will not come)
 *  24 u64 batch            handle of the slices' memory; 0: none; released once
 *  32 u32 slice_count
 *  36 u32 fabric           FabricCode
 *  40 u32 flags            bit 0: nothing follows for this request; bit 1: memory is scarce
 *  44 u32 detail_bytes     length of the text, without padding
 *  48 slices: slice_count x { u32 slab, u32 offset, u32 length, u32 0 }
 *     blocks:   block_count   x { u32 status, u32 0, u64 length }   (none on an error)
 *     detail:   UTF-8, zero-padded to a multiple of 8
 * </pre>
 */
final class RecordDescriptor {
  static final int RECORD_BYTES = 0;
  static final int OUTCOME = 4;
  static final int REQUEST = 8;
  static final int FIRST_BLOCK = 16;
  static final int BLOCK_COUNT = 20;
  static final int BATCH = 24;
  static final int SLICE_COUNT = 32;
  static final int FABRIC = 36;
  static final int FLAGS = 40;
  static final int FLAG_LAST = 1;
  static final int FLAG_SCARCE = 2;
  static final int DETAIL_BYTES = 44;
  static final int HEAD_BYTES = 48;

  static final int SLICE_SLAB = 0;
  static final int SLICE_OFFSET = 4;
  static final int SLICE_LENGTH = 8;
  static final int SLICE_BYTES = 16;

  static final int BLOCK_STATUS = 0;
  static final int BLOCK_LENGTH = 8;
  static final int BLOCK_BYTES = 16;

  private RecordDescriptor() {}

  /**
   * Returns the size in bytes of the record at {@code at}, of which {@code available} bytes were written. Throws {@link
   * IllegalStateException} if its counts do not add up, so that no read is out of bounds.
   */
  static int checkedBytes(ByteBuffer records, int at, int available) {
    int bytes = available < HEAD_BYTES ? 0 : records.getInt(at + RECORD_BYTES);
    long needed = HEAD_BYTES;
    if (bytes >= HEAD_BYTES) {
      needed += Integer.toUnsignedLong(records.getInt(at + SLICE_COUNT)) * SLICE_BYTES
          + blockEntries(records, at) * BLOCK_BYTES
          + ((Integer.toUnsignedLong(records.getInt(at + DETAIL_BYTES)) + 7) & ~7L);
    }
    if (bytes != needed || bytes > available) {
      throw new IllegalStateException(
          "record of " + bytes + " bytes at " + at + " needs " + needed + ", there are " + available);
    }
    return bytes;
  }

  private static long blockEntries(ByteBuffer records, int at) {
    return outcome(records, at) == 0 ? Integer.toUnsignedLong(records.getInt(at + BLOCK_COUNT)) : 0;
  }

  static int outcome(ByteBuffer records, int at) {
    return records.getInt(at + OUTCOME);
  }

  static long request(ByteBuffer records, int at) {
    return records.getLong(at + REQUEST);
  }

  static int firstBlock(ByteBuffer records, int at) {
    return records.getInt(at + FIRST_BLOCK);
  }

  static int blockCount(ByteBuffer records, int at) {
    return records.getInt(at + BLOCK_COUNT);
  }

  static long batch(ByteBuffer records, int at) {
    return records.getLong(at + BATCH);
  }

  static int sliceCount(ByteBuffer records, int at) {
    return records.getInt(at + SLICE_COUNT);
  }

  static Fabric fabric(ByteBuffer records, int at) {
    return Fabric.ofCode(records.getInt(at + FABRIC));
  }

  static boolean last(ByteBuffer records, int at) {
    return (records.getInt(at + FLAGS) & FLAG_LAST) != 0;
  }

  static boolean scarce(ByteBuffer records, int at) {
    return (records.getInt(at + FLAGS) & FLAG_SCARCE) != 0;
  }

  static int slice(int at, int index) {
    return at + HEAD_BYTES + index * SLICE_BYTES;
  }

  /** Returns the offset of the entry of block {@code index}. */
  static int block(ByteBuffer records, int at, int index) {
    return slice(at, sliceCount(records, at)) + index * BLOCK_BYTES;
  }

  static String detail(ByteBuffer records, int at) {
    byte[] text = new byte[records.getInt(at + DETAIL_BYTES)];
    int start = block(records, at, (int) blockEntries(records, at));
    for (int i = 0; i < text.length; i++) {
      text[i] = records.get(start + i);
    }
    return new String(text, StandardCharsets.UTF_8);
  }
}
