package io.faro;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests every way to find the library, and every error with its message. */
class LoaderTest {
  private static final String PLATFORM = NativeLibrary.platform("Linux", System.getProperty("os.arch"));

  @TempDir
  Path temp;

  @BeforeAll
  static void library() throws FaroException {
    Repository.loadNative();
  }

  private NativeLibrary fromPath(String path, String version) {
    return new NativeLibrary(path, places(temp), PLATFORM, getClass().getClassLoader(), version);
  }

  private static List<File> places(Path only) {
    return Collections.singletonList(only.toFile());
  }

  private String refused(NativeLibrary library) {
    return assertThrows(FaroUnavailableException.class, library::load).getMessage();
  }

  @Test
  void itIsAvailable() throws FaroException {
    assertTrue(Faro.isAvailable());
    assertNull(Faro.unavailabilityCause());
    Faro.ensureAvailability();
  }

  @Test
  void platformsHaveOneName() {
    assertEquals("linux-x86_64", NativeLibrary.platform("Linux", "amd64"));
    assertEquals("linux-x86_64", NativeLibrary.platform("linux", "x86_64"));
    assertEquals("linux-aarch64", NativeLibrary.platform("Linux", "aarch64"));
    assertEquals("linux-aarch64", NativeLibrary.platform("Linux", "arm64"));
    assertEquals("mac_os_x-aarch64", NativeLibrary.platform("Mac OS X", "aarch64"));
  }

  @Test
  void anOverrideIsAFileOrADirectory() throws Exception {
    File file = Repository.library().getAbsoluteFile();
    fromPath(file.getPath(), Faro.version()).load();
    fromPath(file.getParent(), Faro.version()).load();
  }

  @Test
  void aMissingOverrideIsNamed() {
    String message = refused(fromPath(temp.toString(), "1"));
    assertTrue(message.contains("faro.library.path") && message.contains(temp.toString()), message);
  }

  @Test
  void aFileThatIsNoLibraryIsNamed() throws Exception {
    Path file = Files.write(temp.resolve("text.so"), new byte[] {1, 2, 3});
    String message = refused(fromPath(file.toString(), "1"));
    assertTrue(message.contains("text.so"), message);
  }

  @Test
  void anotherVersionIsRefused() {
    String message = refused(fromPath(Repository.library().getPath(), "9.9.9"));
    assertTrue(message.contains(Faro.version()) && message.contains("9.9.9"), message);
  }

  @Test
  void aJarWithoutThisPlatformSaysSo() {
    NativeLibrary library =
        new NativeLibrary(null, places(temp), "linux-riscv64", getClass().getClassLoader(), "1");
    String message = refused(library);
    assertTrue(message.contains("linux-riscv64") && message.contains("faro.library.path"), message);
  }

  /** Returns a class loader of a jar with this machine's library. */
  private URLClassLoader jar() throws Exception {
    return jar(Files.readAllBytes(Repository.library().toPath()));
  }

  private URLClassLoader jar(byte[] library) throws Exception {
    Path jar = temp.resolve("jar");
    Path inJar = jar.resolve("META-INF/native/" + PLATFORM);
    Files.createDirectories(inJar);
    Files.write(inJar.resolve(NativeLibrary.FILE), library);
    return new URLClassLoader(new URL[] {jar.toUri().toURL()}, null);
  }

  @Test
  void theJarsLibraryIsExtractedLoadedAndGone() throws Exception {
    Path tmpdir = Files.createDirectory(temp.resolve("tmp"));
    try (URLClassLoader resources = jar()) {
      new NativeLibrary(null, places(tmpdir), PLATFORM, resources, Faro.version()).load();
    }
    assertEquals(0, tmpdir.toFile().list().length);
  }

  @Test
  void placesThatDoNotTakeItArePassedOver() throws Exception {
    File missing = temp.resolve("not-there").toFile();
    File good = Files.createDirectory(temp.resolve("local")).toFile();
    try (URLClassLoader resources = jar()) {
      new NativeLibrary(null, Arrays.asList(missing, good), PLATFORM, resources, Faro.version()).load();
    }
    assertEquals(0, good.list().length);
  }

  @Test
  void placesThatCannotBeUsedAreNamedWithTheWayOut() throws Exception {
    File missing = temp.resolve("not-there").toFile();
    File neither = temp.resolve("nor-there").toFile();
    try (URLClassLoader resources = jar()) {
      String message = refused(new NativeLibrary(null, Arrays.asList(missing, neither), PLATFORM, resources, "1"));
      assertTrue(message.contains("not-there") && message.contains("nor-there"), message);
      assertTrue(message.contains("-Dfaro.tmpdir"), message);
    }
  }

  /** Each executor has directories of its own, and the driver counts the executors that have one reason. */
  @Test
  void executorsOfOneApplicationHaveOneReason() throws Exception {
    try (URLClassLoader resources = jar()) {
      Set<String> messages = new HashSet<>();
      for (int i = 0; i < 2; i++) {
        File own = temp.resolve("spark-" + UUID.randomUUID()).toFile();
        messages.add(refused(
            new NativeLibrary(null, Arrays.asList(temp.resolve("tmp").toFile(), own), PLATFORM, resources, "1")));
      }
      assertEquals(1, messages.size(), messages.toString());
      assertTrue(messages.toString().contains("spark-* does not take it (NoSuchFileException)"), messages.toString());
    }
    try (URLClassLoader resources = jar(new byte[] {1, 2, 3})) {
      String message = refused(new NativeLibrary(null, places(temp), PLATFORM, resources, "1"));
      assertFalse(message.contains(Extraction.PREFIX), message);
    }
  }

  @Test
  void aPlaceThatWasChosenIsNamedWithItsKey() throws Exception {
    String chosen = temp.resolve("not-there").toString();
    System.setProperty(NativeLibrary.TMPDIR_PROPERTY, chosen);
    try (URLClassLoader resources = jar()) {
      List<File> places = NativeLibrary.places(chosen, "/tmp", Collections.emptyList());
      String message = refused(new NativeLibrary(null, places, PLATFORM, resources, "1"));
      assertTrue(message.contains("-Dfaro.tmpdir=" + chosen + " does not take it"), message);
    } finally {
      System.clearProperty(NativeLibrary.TMPDIR_PROPERTY);
    }
  }

  @Test
  void aLibraryThatNoPlaceCouldMendIsTriedOnce() throws Exception {
    File first = Files.createDirectory(temp.resolve("first")).toFile();
    File second = Files.createDirectory(temp.resolve("second")).toFile();
    try (URLClassLoader resources = jar(new byte[] {1, 2, 3})) {
      String message = refused(new NativeLibrary(null, Arrays.asList(first, second), PLATFORM, resources, "1"));
      assertTrue(message.contains("first") && !message.contains("second"), message);
    }
  }

  @Test
  void aChosenPlaceIsTheOnlyOne() {
    List<File> others = Collections.singletonList(new File("/local"));
    assertEquals(Arrays.asList(new File("/tmp"), new File("/local")), NativeLibrary.places(null, "/tmp", others));
    assertEquals(Collections.singletonList(new File("/mine")), NativeLibrary.places("/mine", "/tmp", others));
  }

  @Test
  void muslIsRecognised() throws Exception {
    Path maps = temp.resolve("maps");
    Files.write(maps, Arrays.asList(
        "55d0c1c9d000-55d0c1c9e000 r-xp 00001000 fe:00 131 /opt/java/bin/java",
        "7f2f1d3f4000-7f2f1d408000 r--p 00000000 fe:00 262 /lib/ld-musl-x86_64.so.1"));
    assertEquals("/lib/ld-musl-x86_64.so.1", Musl.loader(maps));
    Files.write(maps, Collections.singletonList(
        "7f2f1d3f4000-7f2f1d408000 r--p 00000000 fe:00 262 /lib64/ld-linux-x86-64.so.2"));
    assertNull(Musl.loader(maps));
    assertNull(Musl.loader(temp.resolve("no-proc")));
  }

  @Test
  void leftOversOfDeadProcessesAreRemoved() throws Exception {
    long noProcess = 4_194_305;
    Path old = leftOver(noProcess + "-1", true);
    Path young = leftOver(noProcess + "-2", false);
    Path own = leftOver(Files.readSymbolicLink(new File("/proc/self").toPath()) + "-3", true);
    Path others = leftOver("something", true);
    Path open = leftOver(noProcess + "-4", true);
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxr-x---"));
    Path behind = leftOver("behind", true);
    Path link = Files.createSymbolicLink(temp.resolve(Extraction.PREFIX + noProcess + "-5"), behind);
    Extraction.of(new java.io.ByteArrayInputStream(new byte[1]), temp.toFile(), NativeLibrary.FILE).close();
    assertFalse(Files.exists(old));
    assertTrue(Files.exists(young));
    assertTrue(Files.exists(own));
    assertTrue(Files.exists(others));
    assertTrue(Files.exists(open.resolve(NativeLibrary.FILE)), "what others may enter is not Faro's");
    assertTrue(Files.exists(behind.resolve(NativeLibrary.FILE)), "no link is followed");
    assertTrue(Files.isSymbolicLink(link));
  }

  private Path leftOver(String name, boolean old) throws Exception {
    Path directory = Files.createDirectory(
        temp.resolve(Extraction.PREFIX + name),
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    Files.write(directory.resolve(NativeLibrary.FILE), new byte[1]);
    if (old) {
      long time = System.currentTimeMillis() - 2 * Extraction.LEFT_OVER_MILLIS;
      Files.setLastModifiedTime(directory, FileTime.fromMillis(time));
    }
    return directory;
  }

  @Test
  void anExtractionIsPrivate() throws Exception {
    try (Extraction extraction =
        Extraction.of(new java.io.ByteArrayInputStream(new byte[1]), temp.toFile(), NativeLibrary.FILE)) {
      assertEquals(
          "rwx------",
          PosixFilePermissions.toString(
              Files.getPosixFilePermissions(extraction.file().getParentFile().toPath())));
    }
  }

  @Test
  void anotherClassLoaderIsToldWhyItCannot() throws Exception {
    URL classes = Faro.class.getProtectionDomain().getCodeSource().getLocation();
    URL slf4j = org.slf4j.Logger.class.getProtectionDomain().getCodeSource().getLocation();
    try (URLClassLoader other =
        new URLClassLoader(new URL[] {classes, slf4j}, ClassLoader.getSystemClassLoader().getParent())) {
      Object cause = other.loadClass("io.faro.Faro").getMethod("unavailabilityCause").invoke(null);
      assertEquals("io.faro.FaroUnavailableException", cause.getClass().getName());
      assertTrue(cause.toString().contains("another copy of Faro's jar"), cause.toString());
    }
  }
}
