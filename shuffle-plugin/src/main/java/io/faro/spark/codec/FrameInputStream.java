package io.faro.spark.codec;

import io.faro.Nullable;
import java.io.IOException;
import java.io.InputStream;
import java.util.function.UnaryOperator;

/** The original bytes of a stream of codec zstd: concatenated frames, between which row blocks may stand. */
public final class FrameInputStream extends PieceInputStream {
  private static final int PIECE_BYTES = 32 << 10;

  private final FrameSource source;
  private final UnaryOperator<InputStream> decompressor;
  private final BlockDecoder decoder = new BlockDecoder();
  private final byte[] piece = new byte[PIECE_BYTES];
  /** Decodes the frames up to the next block; null between frames and blocks. */
  @Nullable private InputStream frames;
  private byte[] made = piece;

  /** {@code decompressor}: makes a stream that decompresses concatenated frames. */
  public FrameInputStream(InputStream in, UnaryOperator<InputStream> decompressor) {
    super(in);
    source = new FrameSource(in);
    this.decompressor = decompressor;
  }

  @Override
  int next() throws IOException {
    if (frames != null) {
      int got = frames.read(piece, 0, piece.length);
      if (got >= 0) {
        decoder.pass(piece, got);
        made = piece;
        return got;
      }
      free();
    }
    switch (source.next()) {
      case BLOCK:
        int bytes = decoder.next(source.blocks(), source.offset());
        made = decoder.block();
        return bytes;
      case FRAME:
        frames = decompressor.apply(source.frames());
        return 0;
      case END:
        return -1;
      default:
        throw new IllegalStateException("neither a frame nor a block");
    }
  }

  @Override
  byte[] made() {
    return made;
  }

  @Override
  void free() throws IOException {
    if (frames != null) {
      InputStream last = frames;
      frames = null;
      last.close();
    }
  }
}
