package io.faro;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.Test;

/** Compares the descriptors with the bytes of tests/golden, which Rust's encoders must produce too. */
class GoldenTest {
  private static ByteBuffer golden(String name) throws Exception {
    return ByteBuffer.wrap(Repository.golden(name)).order(ByteOrder.LITTLE_ENDIAN);
  }

  @Test
  void blockIds() throws Exception {
    ByteBuffer ids = ByteBuffer.allocate(4 * BlockIdDescriptor.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    BlockIdDescriptor.put(ids, 0, 7, 0x0102030405060708L, 3, 4, 0);
    BlockIdDescriptor.put(ids, 24, 0, 0, 0, 1, 0);
    BlockIdDescriptor.put(ids, 48, -1, Long.MAX_VALUE, 0, -1, 0);
    BlockIdDescriptor.put(ids, 72, 1, -1, 199, 200, 0);
    assertArrayEquals(golden("block_ids").array(), ids.array());
  }

  @Test
  void recordOfDeliveredBlocks() throws Exception {
    ByteBuffer record = golden("record_delivered");
    assertEquals(record.capacity(), RecordDescriptor.checkedBytes(record, 0, record.capacity()));
    assertEquals(0, RecordDescriptor.outcome(record, 0));
    assertEquals(0x0123456789abcdefL, RecordDescriptor.request(record, 0));
    assertEquals(2, RecordDescriptor.firstBlock(record, 0));
    assertEquals(6, RecordDescriptor.blockCount(record, 0));
    assertEquals(0x7fff000012345678L, RecordDescriptor.batch(record, 0));
    assertEquals(Fabric.SHM, RecordDescriptor.fabric(record, 0));
    assertTrue(RecordDescriptor.last(record, 0));
    assertEquals("", RecordDescriptor.detail(record, 0));
    assertEquals(2, RecordDescriptor.sliceCount(record, 0));
    int[][] slices = {{0, 0xfc0000, 0x40000}, {3, 4096, 17}};
    for (int i = 0; i < slices.length; i++) {
      int at = RecordDescriptor.slice(0, i);
      assertEquals(slices[i][0], record.getInt(at + RecordDescriptor.SLICE_SLAB));
      assertEquals(slices[i][1], record.getInt(at + RecordDescriptor.SLICE_OFFSET));
      assertEquals(slices[i][2], record.getInt(at + RecordDescriptor.SLICE_LENGTH));
    }
    BlockStatus[] statuses = {
      BlockStatus.OK, BlockStatus.OK, BlockStatus.UNKNOWN_OUTPUT,
      BlockStatus.BAD_RANGE, BlockStatus.BAD_INDEX, BlockStatus.UNREADABLE
    };
    ByteBuffer layout = golden("message_fetch_response");
    int inLayout = layout.capacity() - statuses.length * RecordDescriptor.BLOCK_BYTES;
    for (int i = 0; i < statuses.length; i++) {
      int at = RecordDescriptor.block(record, 0, i);
      assertEquals(statuses[i], BlockStatus.ofCode(record.getInt(at + RecordDescriptor.BLOCK_STATUS)));
      assertEquals(
          layout.getLong(inLayout + i * RecordDescriptor.BLOCK_BYTES + RecordDescriptor.BLOCK_LENGTH),
          record.getLong(at + RecordDescriptor.BLOCK_LENGTH));
    }
  }

  @Test
  void recordOfAnError() throws Exception {
    ByteBuffer record = golden("record_error");
    assertEquals(record.capacity(), RecordDescriptor.checkedBytes(record, 0, record.capacity()));
    assertEquals(3, RecordDescriptor.outcome(record, 0));
    assertEquals(42, RecordDescriptor.request(record, 0));
    assertEquals(10, RecordDescriptor.firstBlock(record, 0));
    assertEquals(990, RecordDescriptor.blockCount(record, 0));
    assertEquals(0, RecordDescriptor.batch(record, 0));
    assertEquals(Fabric.TCP, RecordDescriptor.fabric(record, 0));
    assertEquals("no answer in 30000 ms \u2013 executor-3", RecordDescriptor.detail(record, 0));
  }
}
