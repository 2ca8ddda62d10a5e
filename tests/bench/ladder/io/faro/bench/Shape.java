package io.faro.bench;

import java.util.ArrayList;
import java.util.List;

/** One shuffle of the ladder: the number of map outputs, of blocks in each, and of bytes in each block. */
final class Shape {
  final int shuffle;
  final int maps;
  final int reducers;
  final int blockBytes;
  final int blocksPerRequest;

  /** Parses {@code shuffle:maps:reducers:blockBytes:blocksPerRequest}. */
  Shape(String text) {
    String[] parts = text.split(":");
    shuffle = Integer.parseInt(parts[0]);
    maps = Integer.parseInt(parts[1]);
    reducers = Integer.parseInt(parts[2]);
    blockBytes = Integer.parseInt(parts[3]);
    blocksPerRequest = Integer.parseInt(parts[4]);
  }

  /**
   * Returns requests as Spark's fetch iterator shapes them: one reduce partition's blocks of consecutive map outputs.
   * The ids are made once, because making them is Spark's cost and not the transport's.
   */
  List<String[]> requests() {
    List<String[]> requests = new ArrayList<>();
    for (int reduce = 0; reduce < reducers; reduce++) {
      for (int from = 0; from < maps; from += blocksPerRequest) {
        String[] ids = new String[Math.min(blocksPerRequest, maps - from)];
        for (int i = 0; i < ids.length; i++) {
          ids[i] = "shuffle_" + shuffle + "_" + (from + i) + "_" + reduce;
        }
        requests.add(ids);
      }
    }
    return requests;
  }
}
