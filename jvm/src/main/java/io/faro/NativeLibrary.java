package io.faro;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.util.Locale;
import java.util.Properties;

/**
 * Finds, loads and checks {@code libfaro_jni.so}.
 *
 * <p>The library is in the jar ({@code META-INF/native/<os>-<arch>/}), so that users install one jar only, or at
 * {@code -Dfaro.library.path} (the file, or its directory). A library of another version is refused, because the JNI
 * boundary differs between versions and a wrong one would crash.
 */
final class NativeLibrary {
  static final String PATH_PROPERTY = "faro.library.path";
  static final String TMPDIR_PROPERTY = "faro.tmpdir";
  static final String FILE = "libfaro_jni.so";

  private final String path;
  private final File tmpdir;
  private final String platform;
  private final ClassLoader resources;
  private final String version;

  /**
   * A way to load. {@code path}: file or directory, or null for the jar's; {@code tmpdir}: where the jar's is
   * extracted; {@code resources}: the jar; {@code version}: what the library must be.
   */
  NativeLibrary(String path, File tmpdir, String platform, ClassLoader resources, String version) {
    this.path = path;
    this.tmpdir = tmpdir;
    this.platform = platform;
    this.resources = resources;
    this.version = version;
  }

  static NativeLibrary ofThisProcess() {
    return new NativeLibrary(
        System.getProperty(PATH_PROPERTY),
        new File(System.getProperty(TMPDIR_PROPERTY, System.getProperty("java.io.tmpdir"))),
        platform(System.getProperty("os.name"), System.getProperty("os.arch")),
        NativeLibrary.class.getClassLoader(),
        jarVersion());
  }

  static String jarVersion() {
    Properties properties = new Properties();
    try (InputStream in = NativeLibrary.class.getResourceAsStream("/META-INF/faro.properties")) {
      if (in != null) {
        properties.load(in);
      }
    } catch (IOException e) {
      throw new IllegalStateException("META-INF/faro.properties cannot be read", e);
    }
    return properties.getProperty("version", "unknown");
  }

  /** {@code <os>-<arch>} as in the jar. Unknown names stay unchanged, for the error message. */
  static String platform(String os, String arch) {
    String system = os.toLowerCase(Locale.ROOT);
    String machine = arch.toLowerCase(Locale.ROOT);
    if (machine.equals("amd64") || machine.equals("x64") || machine.equals("x86-64")) {
      machine = "x86_64";
    } else if (machine.equals("arm64")) {
      machine = "aarch64";
    }
    return (system.startsWith("linux") ? "linux" : system.replace(' ', '_')) + "-" + machine;
  }

  void load() throws FaroUnavailableException {
    if (path != null && !path.isEmpty()) {
      loadFromPath();
    } else {
      loadFromJar();
    }
    checkVersion();
  }

  private void loadFromPath() throws FaroUnavailableException {
    File given = new File(path);
    File file = (given.isDirectory() ? new File(given, FILE) : given).getAbsoluteFile();
    if (!file.isFile()) {
      throw new FaroUnavailableException("-D" + PATH_PROPERTY + "=" + path + ": there is no file " + file);
    }
    try {
      System.load(file.getPath());
    } catch (UnsatisfiedLinkError e) {
      throw unloadable(file, e);
    }
  }

  private void loadFromJar() throws FaroUnavailableException {
    String name = "META-INF/native/" + platform + "/" + FILE;
    try (InputStream in = resources.getResourceAsStream(name)) {
      if (in == null) {
        throw new FaroUnavailableException(
            "this jar has no native library for " + platform + " (" + name + "); give one with -D" + PATH_PROPERTY);
      }
      try (Extraction extraction = Extraction.of(in, tmpdir, FILE)) {
        try {
          System.load(extraction.file().getPath());
        } catch (UnsatisfiedLinkError e) {
          throw unloadable(extraction.file(), e);
        }
      }
    } catch (IOException e) {
      throw new FaroUnavailableException(
          "the native library cannot be extracted to " + tmpdir + " (" + e + "); give another directory with -D"
              + TMPDIR_PROPERTY,
          e);
    }
  }

  private static FaroUnavailableException unloadable(File file, UnsatisfiedLinkError error) {
    String text = String.valueOf(error.getMessage()).replace(file.getPath() + ": ", "");
    String advice = "";
    if (text.contains("already loaded in another classloader")) {
      advice = ". The JVM loads a library file in one class loader only: another copy of Faro's jar in this process has"
          + " it. Put the jar on one class path only (spark.jars or spark.executor.extraClassPath, not both)";
    } else if (text.contains("failed to map segment") || text.contains("Operation not permitted")) {
      advice = ". " + file.getParentFile().getParent() + " is probably mounted noexec: give a directory on another file"
          + " system with -D" + TMPDIR_PROPERTY;
    }
    return new FaroUnavailableException("cannot load " + file + ": " + text + advice, error);
  }

  private void checkVersion() throws FaroUnavailableException {
    String found;
    try {
      found = Native.version();
    } catch (UnsatisfiedLinkError e) {
      throw new FaroUnavailableException(
          (path == null ? "the jar's library" : path) + " is not Faro's: it has no io.faro.Native.version", e);
    }
    if (!found.equals(version)) {
      throw new FaroUnavailableException(
          (path == null ? "the jar's library" : path) + " has version " + found + ", the jar has " + version);
    }
  }
}
