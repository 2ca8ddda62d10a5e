package io.faro;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileSystemException;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.regex.Pattern;

/**
 * Finds, loads and checks {@code libfaro_jni.so}.
 *
 * <p>The library is in the jar ({@code META-INF/native/<os>-<arch>/}), so that users install one jar only, or at
 * {@code -Dfaro.library.path} (the file, or its directory). A library of another version is refused, because the JNI
 * boundary differs between versions and a wrong one would crash.
 *
 * <p>The jar's library is extracted to the first place that takes it and lets it be mapped. In a container {@code /tmp}
 * may be mounted noexec, be full, or be part of a root file system that is read-only.
 */
final class NativeLibrary {
  static final String PATH_PROPERTY = "faro.library.path";
  static final String TMPDIR_PROPERTY = "faro.tmpdir";
  static final String FILE = "libfaro_jni.so";
  private static final Pattern RANDOM_PART = Pattern.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}");

  private final String path;
  private final List<File> places;
  private final String platform;
  private final ClassLoader resources;
  private final String version;

  /**
   * A way to load the library. {@code path} is a file or directory, or null for the jar's library; {@code places} are
   * the directories to extract it to, in this order; {@code resources} is the jar; {@code version} is the required
   * version.
   */
  NativeLibrary(String path, List<File> places, String platform, ClassLoader resources, String version) {
    this.path = path;
    this.places = places;
    this.platform = platform;
    this.resources = resources;
    this.version = version;
  }

  /** Returns the way to load it in this process. {@code others} are places to use besides {@code java.io.tmpdir}. */
  static NativeLibrary ofThisProcess(List<File> others) {
    return new NativeLibrary(
        System.getProperty(PATH_PROPERTY),
        places(System.getProperty(TMPDIR_PROPERTY), System.getProperty("java.io.tmpdir"), others),
        platform(System.getProperty("os.name"), System.getProperty("os.arch")),
        NativeLibrary.class.getClassLoader(),
        jarVersion());
  }

  /**
   * Returns the places to extract to. {@code chosen}, the user's choice, is the only place unless it is {@code null}.
   */
  static List<File> places(String chosen, String tmpdir, List<File> others) {
    if (chosen != null && !chosen.isEmpty()) {
      return Collections.singletonList(new File(chosen));
    }
    List<File> places = new ArrayList<>();
    places.add(new File(tmpdir));
    places.addAll(others);
    return places;
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

  /** Returns {@code <os>-<arch>} as in the jar. Unknown names stay unchanged, for the error message. */
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
      throw unloadable(file.getPath(), file, e);
    }
  }

  private void loadFromJar() throws FaroUnavailableException {
    String name = "META-INF/native/" + platform + "/" + FILE;
    List<String> refusals = new ArrayList<>();
    for (File place : places) {
      String refusal = loadAt(place, name);
      if (refusal == null) {
        return;
      }
      refusals.add(refusal);
    }
    throw new FaroUnavailableException("the native library cannot be extracted and loaded: "
        + String.join("; ", refusals) + "; give a directory that is writable and not mounted noexec with -D"
        + TMPDIR_PROPERTY);
  }

  /**
   * Loads the library from a place. Returns null, or the reason that the library cannot be used there; another
   * place may work.
   */
  @Nullable private String loadAt(File place, String name) throws FaroUnavailableException {
    try (InputStream in = resources.getResourceAsStream(name)) {
      if (in == null) {
        throw new FaroUnavailableException(
            "this jar has no native library for " + platform + " (" + name + "); give one with -D" + PATH_PROPERTY);
      }
      try (Extraction extraction = Extraction.of(in, place, FILE)) {
        try {
          System.load(extraction.file().getPath());
          return null;
        } catch (UnsatisfiedLinkError e) {
          String text = textOf(extraction.file(), e);
          // This is dlopen's message if the file system is mounted noexec.
          if (text.contains("failed to map segment") || text.contains("Operation not permitted")) {
            return nameOf(place) + " is probably mounted noexec (" + text + ")";
          }
          throw unloadable(FILE + " in " + nameOf(place), extraction.file(), e);
        }
      }
    } catch (FileSystemException e) {
      // Its file has a random name, and is the same for no two executors.
      String reason = e.getReason() == null ? "" : ": " + e.getReason();
      return nameOf(place) + " does not take it (" + e.getClass().getSimpleName() + reason + ")";
    } catch (IOException e) {
      return nameOf(place) + " does not take it (" + e.getMessage() + ")";
    }
  }

  /** The place as it is for all executors: the names of their own directories have random parts. */
  private static String nameOf(File place) {
    boolean isChosen = place.getPath().equals(System.getProperty(TMPDIR_PROPERTY));
    return isChosen ? "-D" + TMPDIR_PROPERTY + "=" + place : RANDOM_PART.matcher(place.getPath()).replaceAll("*");
  }

  private static String textOf(File file, UnsatisfiedLinkError error) {
    String text = String.valueOf(error.getMessage());
    return text.replace(file.getPath() + ": ", "").replace(file.getPath(), file.getName());
  }

  /** {@code name}: of the file, as it is for all executors. */
  private static FaroUnavailableException unloadable(String name, File file, UnsatisfiedLinkError error) {
    String text = textOf(file, error);
    String musl = Musl.loader(Paths.get("/proc/self/maps"));
    if (musl != null) {
      return new FaroUnavailableException("this Java runs on musl (" + musl + "; Alpine Linux has it), and the native "
          + "library needs glibc: take an image with glibc (cannot load " + name + ": " + text + ")", error);
    }
    String advice = "";
    if (text.contains("already loaded in another classloader")) {
      advice = ". The JVM loads a library file in one class loader only: another copy of Faro's jar in this process has"
          + " it. Put the jar on one class path only (spark.jars or spark.executor.extraClassPath, not both)";
    }
    return new FaroUnavailableException("cannot load " + name + ": " + text + advice, error);
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
