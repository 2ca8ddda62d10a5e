package io.faro;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Map outputs in real files, as Spark writes them, with the resolver that finds them. */
public final class MapOutputs implements OutputResolver {
  private final Path directory;
  private final Map<String, OutputFiles> files = new ConcurrentHashMap<>();

  public MapOutputs(Path directory) {
    this.directory = directory;
  }

  /** Writes an output with partitions of these lengths and {@link #partition}'s bytes. */
  MapOutputs write(int shuffleId, long mapId, int... lengths) throws IOException {
    byte[][] partitions = new byte[lengths.length][];
    for (int reduce = 0; reduce < lengths.length; reduce++) {
      partitions[reduce] = partition(mapId, reduce, lengths[reduce]);
    }
    return writeBytes(shuffleId, mapId, partitions);
  }

  /** Writes an output of these partitions. */
  public MapOutputs writeBytes(int shuffleId, long mapId, byte[]... partitions) throws IOException {
    String name = "shuffle_" + shuffleId + "_" + mapId;
    File data = directory.resolve(name + ".data").toFile();
    File index = directory.resolve(name + ".index").toFile();
    long offset = 0;
    try (OutputStream bytes = new BufferedOutputStream(new FileOutputStream(data));
        DataOutputStream offsets = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(index)))) {
      offsets.writeLong(0);
      for (byte[] partition : partitions) {
        bytes.write(partition);
        offset += partition.length;
        offsets.writeLong(offset);
      }
    }
    files.put(name, new OutputFiles(data, index));
    return this;
  }

  static byte[] partition(long mapId, int reduce, int length) {
    byte[] bytes = new byte[length];
    int state = (int) (mapId * 31 + reduce * 17 + 1);
    for (int i = 0; i < length; i++) {
      state = state * 1_103_515_245 + 12_345;
      bytes[i] = (byte) (state >>> 16);
    }
    return bytes;
  }

  static int[] lengths(int count, int each) {
    int[] lengths = new int[count];
    Arrays.fill(lengths, each);
    return lengths;
  }

  @Override
  public OutputFiles resolve(int shuffleId, long mapId) {
    return files.get("shuffle_" + shuffleId + "_" + mapId);
  }
}
