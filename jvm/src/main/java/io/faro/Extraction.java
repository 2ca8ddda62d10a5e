package io.faro;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A file of the jar, extracted while it is loaded. It lies in a directory that only this user can enter, so that
 * another user cannot replace it, and is deleted by {@link #close} (Linux keeps the bytes of a mapped file). If a
 * process dies before that, a later one deletes its directory, which is named after the process id: the process must
 * not exist, and the directory must be an hour old, because a process of another container may share the directory and
 * is not visible here.
 */
final class Extraction implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Extraction.class);

  static final String PREFIX = "faro-native-";
  static final long LEFT_OVER_MILLIS = TimeUnit.HOURS.toMillis(1);

  private final Path directory;
  private final Path file;

  private Extraction(Path directory, Path file) {
    this.directory = directory;
    this.file = file;
  }

  static Extraction of(InputStream in, File tmpdir, String name) throws IOException {
    Path parent = tmpdir.toPath();
    removeLeftOvers(parent, name);
    Path directory = Files.createTempDirectory(
        parent,
        PREFIX + processId() + "-",
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    Extraction extraction = new Extraction(directory, directory.resolve(name));
    try {
      Files.copy(in, extraction.file);
      return extraction;
    } catch (IOException e) {
      extraction.close();
      throw e;
    }
  }

  File file() {
    return file.toFile();
  }

  @Override
  public void close() {
    remove(directory, file);
  }

  private static void remove(Path directory, Path file) {
    try {
      Files.deleteIfExists(file);
      Files.deleteIfExists(directory);
    } catch (IOException e) {
      LOG.debug("Cannot delete {}", directory, e);
    }
  }

  private static String processId() throws IOException {
    return Files.readSymbolicLink(Paths.get("/proc/self")).toString();
  }

  private static void removeLeftOvers(Path parent, String name) {
    try (DirectoryStream<Path> found = Files.newDirectoryStream(parent, PREFIX + "*")) {
      long old = System.currentTimeMillis() - LEFT_OVER_MILLIS;
      for (Path directory : found) {
        String[] parts = directory.getFileName().toString().substring(PREFIX.length()).split("-");
        boolean dead = parts[0].matches("[0-9]+") && !Files.exists(Paths.get("/proc", parts[0]));
        if (dead && Files.getLastModifiedTime(directory).toMillis() < old) {
          remove(directory, directory.resolve(name));
        }
      }
    } catch (IOException e) {
      LOG.debug("Cannot delete left-overs in {}", parent, e);
    }
  }
}
