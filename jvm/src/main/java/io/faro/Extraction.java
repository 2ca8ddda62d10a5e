package io.faro;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.SecureDirectoryStream;
import java.nio.file.attribute.PosixFileAttributeView;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A file of the jar, extracted while it is loaded. It lies in a directory that only this user can enter, so that
 * another user cannot replace it, and is deleted by {@link #close} (Linux keeps the bytes of a mapped file). If a
 * process dies before that, a later one deletes its directory, which is named after the process id: the process must
 * not exist, and the directory must be an hour old, because a process of another container may share the directory and
 * is not visible here. All users can write to the directory that it lies in, so a directory is opened before anything
 * in it is deleted: it must be a real one, of this user, that only this user can enter.
 */
final class Extraction implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Extraction.class);

  static final String PREFIX = "faro-native-";
  static final long LEFT_OVER_MILLIS = TimeUnit.HOURS.toMillis(1);
  private static final Set<PosixFilePermission> PRIVATE = PosixFilePermissions.fromString("rwx------");

  private final Path directory;
  private final Path file;

  private Extraction(Path directory, Path file) {
    this.directory = directory;
    this.file = file;
  }

  static Extraction of(InputStream in, File tmpdir, String name) throws IOException {
    Path parent = tmpdir.toPath();
    Path directory = Files.createTempDirectory(
        parent, PREFIX + processId() + "-", PosixFilePermissions.asFileAttribute(PRIVATE));
    removeLeftOvers(parent, name, Files.getOwner(directory, LinkOption.NOFOLLOW_LINKS));
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

  private static void removeLeftOvers(Path parent, String name, UserPrincipal user) {
    long old = System.currentTimeMillis() - LEFT_OVER_MILLIS;
    try (DirectoryStream<Path> found = Files.newDirectoryStream(parent, PREFIX + "*");
        DirectoryStream<Path> opened = Files.newDirectoryStream(parent)) {
      if (!(opened instanceof SecureDirectoryStream)) {
        return;
      }
      SecureDirectoryStream<Path> in = (SecureDirectoryStream<Path>) opened;
      for (Path path : found) {
        Path directory = path.getFileName();
        String process = directory.toString().substring(PREFIX.length()).split("-")[0];
        if (process.matches("[0-9]+") && !Files.exists(Paths.get("/proc", process))) {
          removeLeftOver(in, directory, name, user, old);
        }
      }
    } catch (IOException | DirectoryIteratorException e) {
      LOG.debug("Cannot delete left-overs in {}", parent, e);
    }
  }

  private static void removeLeftOver(
      SecureDirectoryStream<Path> in, Path directory, String name, UserPrincipal user, long old) {
    try (SecureDirectoryStream<Path> left = in.newDirectoryStream(directory, LinkOption.NOFOLLOW_LINKS)) {
      PosixFileAttributes is = left.getFileAttributeView(PosixFileAttributeView.class).readAttributes();
      if (is.owner().equals(user) && is.permissions().equals(PRIVATE) && is.lastModifiedTime().toMillis() < old) {
        removeIn(left, Paths.get(name));
        in.deleteDirectory(directory);
      }
    } catch (IOException e) {
      LOG.debug("Cannot delete {}", directory, e);
    }
  }

  private static void removeIn(SecureDirectoryStream<Path> directory, Path file) throws IOException {
    try {
      directory.deleteFile(file);
    } catch (NoSuchFileException e) {
      LOG.trace("Its process had deleted the file", e);
    }
  }
}
