package io.faro.rows;

import io.faro.TestLibrary;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The golden files of native/rows, which Spark wrote, and the rows that its Golden.java put into them. */
public final class GoldenRows {
  /** {@code compressible} is the number of rows of the first stream. */
  enum File {
    PLAIN("plain", RowCodec.NONE, 40),
    LZ4("lz4", RowCodec.LZ4, 4000),
    LZ4_SMALL("lz4_small", RowCodec.LZ4, 40),
    ZSTD("zstd", RowCodec.ZSTD, 4000),
    ZSTD_SMALL("zstd_small", RowCodec.ZSTD, 40);

    private final String name;
    final RowCodec codec;
    private final int compressible;

    File(String name, RowCodec codec, int compressible) {
      this.name = name;
      this.codec = codec;
      this.compressible = compressible;
    }

    byte[] bytes() throws IOException {
      return Files.readAllBytes(TestLibrary.file("native/rows/tests/golden/" + name + ".bin"));
    }

    /** Returns the rows of the file, repeated {@code times} times. */
    List<ByteBuffer> rows(int times) {
      List<ByteBuffer> rows = new ArrayList<>();
      for (int i = 0; i < times; i++) {
        rows.addAll(GoldenRows.rows(compressible));
      }
      return rows;
    }
  }

  private GoldenRows() {}

  static List<ByteBuffer> rows(int compressible) {
    List<ByteBuffer> rows = new ArrayList<>();
    for (int row = 0; row < compressible; row++) {
      byte[] body = new byte[row * 7 % 13 * 8];
      Arrays.fill(body, (byte) (row / 64));
      rows.add(ByteBuffer.wrap(body));
    }
    int state = 1;
    for (int row = 0; row < 5; row++) {
      byte[] body = new byte[40];
      for (int at = 0; at < body.length; at++) {
        state = state * 1_664_525 + 1_013_904_223;
        body[at] = (byte) (state >>> 24);
      }
      rows.add(ByteBuffer.wrap(body));
    }
    return rows;
  }

  /** Returns the uncompressed row stream of these rows. */
  static byte[] stream(List<ByteBuffer> rows) {
    int bytes = 0;
    for (ByteBuffer row : rows) {
      bytes += 4 + row.remaining();
    }
    ByteBuffer stream = ByteBuffer.allocate(bytes);
    for (ByteBuffer row : rows) {
      stream.putInt(row.remaining()).put(row.duplicate());
    }
    return stream.array();
  }
}
