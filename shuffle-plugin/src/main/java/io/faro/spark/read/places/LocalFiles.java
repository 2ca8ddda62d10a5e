package io.faro.spark.read.places;

import io.faro.Endpoint;
import io.faro.Nullable;
import io.faro.OutputFiles;
import java.io.IOException;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import scala.Option;

/** Files of one executor's map outputs, on this host. */
public interface LocalFiles {
  BlockManagerId address();

  /** Makes the files of a part's map output known to the endpoint; false: there are none. */
  boolean resolve(Parts parts, int i) throws Exception;

  /**
   * Returns how often {@link #resolve} may be called for one part before the part is given up: more than once where the
   * endpoint may close the files again before they are read.
   */
  default int tries() {
    return 1;
  }

  /** A part as Spark reads it. */
  ManagedBuffer bySpark(Parts parts, int i) throws Exception;

  /**
   * Leaves a part to be fetched over the network when all files were read; false: there is no other way to it than
   * these files. {@code corrupt}: they have other bytes than were written.
   */
  default boolean leave(Parts parts, int i, String problem, boolean corrupt) {
    return false;
  }

  /** A part's file was lost while it was read. True: the part can be fetched over the network. */
  default boolean lost(Parts parts, int i, String problem) {
    return false;
  }

  /** Counts parts, and bytes of parts, that were read from the files. */
  default void count(ShuffleReadMetricsReporter metrics, long parts, long bytes) {
    metrics.incLocalBlocksFetched(parts);
    metrics.incLocalBytesRead(bytes);
  }

  /** Finds Spark's files of a map output. */
  interface OutputFinder {
    /** The files in an executor's local directories; without any, in this executor's. Null if there are none. */
    @Nullable OutputFiles find(int shuffle, long map, Option<String[]> directories);
  }

  /** This executor's own. */
  final class OwnFiles implements LocalFiles {
    private final BlockManager blocks;
    private final OutputFinder outputs;
    private final Endpoint endpoint;

    public OwnFiles(BlockManager blocks, OutputFinder outputs, Endpoint endpoint) {
      this.blocks = blocks;
      this.outputs = outputs;
      this.endpoint = endpoint;
    }

    @Override
    public BlockManagerId address() {
      return blocks.blockManagerId();
    }

    @Override
    public boolean resolve(Parts parts, int i) {
      OutputFiles found = outputs.find(parts.shuffle, parts.map(i), Option.empty());
      if (found == null) {
        return false;
      }
      endpoint.resolve(parts.shuffle, parts.map(i), found);
      return true;
    }

    /** Also from the fall-back storage. */
    @Override
    public ManagedBuffer bySpark(Parts parts, int i) {
      return blocks.getLocalBlockData(parts.id(i));
    }
  }

  /** Another executor's on this host ({@code spark.shuffle.readHostLocalDisk}). */
  final class HostFiles implements LocalFiles {
    private final BlockManagerId address;
    private final BlockManager blocks;
    private final OutputFinder outputs;
    private final Endpoint endpoint;
    private final String[] directories;

    /** {@code directories}: the executor's local ones. */
    public HostFiles(BlockManagerId address, BlockManager blocks, OutputFinder outputs, Endpoint endpoint,
        String[] directories) {
      this.address = address;
      this.blocks = blocks;
      this.outputs = outputs;
      this.endpoint = endpoint;
      this.directories = directories;
    }

    @Override
    public BlockManagerId address() {
      return address;
    }

    @Override
    public boolean resolve(Parts parts, int i) {
      OutputFiles found = outputs.find(parts.shuffle, parts.map(i), Option.apply(directories));
      if (found == null) {
        return false;
      }
      endpoint.resolve(parts.shuffle, parts.map(i), found);
      return true;
    }

    @Override
    public ManagedBuffer bySpark(Parts parts, int i) throws IOException {
      return blocks.getHostLocalShuffleData(parts.id(i), directories);
    }
  }
}
