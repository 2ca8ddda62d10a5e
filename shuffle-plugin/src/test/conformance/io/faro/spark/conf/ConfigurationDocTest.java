package io.faro.spark.conf;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * docs/user/configuration.md between its two markers is what {@link FaroKeys} says.
 * {@code mvn -pl jvm,shuffle-plugin test -Dtest=ConfigurationDocTest -Dsurefire.failIfNoSpecifiedTests=false
 * -Dfaro.docs.write=true} writes it.
 */
class ConfigurationDocTest {
  private static final String BEGIN = "<!-- keys: begin; generated, see ConfigurationDocTest -->";
  private static final String END = "<!-- keys: end -->";
  private static final String COMMAND = "mvn -pl jvm,shuffle-plugin test -Dtest=ConfigurationDocTest "
      + "-Dsurefire.failIfNoSpecifiedTests=false -Dfaro.docs.write=true";

  private static String keys() {
    List<String> lines = new ArrayList<>();
    lines.add("| Key | Type | Default | Allowed |");
    lines.add("|---|---|---|---|");
    for (Key<?> key : FaroKeys.ALL) {
      lines.add("| `" + key.name + "` | " + key.type + " | `" + key.defaultText + "` | " + key.allowed + " |");
    }
    for (Key<?> key : FaroKeys.ALL) {
      lines.add("");
      lines.add("**`" + key.name + "`** " + key.doc);
    }
    return String.join("\n", lines);
  }

  @Test
  void theManualSaysWhatTheCodeSays() throws IOException {
    Path manual = Paths.get(System.getProperty("faro.root"), "docs", "user", "configuration.md");
    String text = new String(Files.readAllBytes(manual), StandardCharsets.UTF_8);
    int begin = text.indexOf(BEGIN) + BEGIN.length();
    int end = text.indexOf(END);
    String expected = text.substring(0, begin) + "\n" + keys() + "\n" + text.substring(end);
    if (Boolean.getBoolean("faro.docs.write")) {
      Files.write(manual, expected.getBytes(StandardCharsets.UTF_8));
      text = expected;
    }
    assertEquals(expected, text, "docs/user/configuration.md and FaroKeys differ; write it anew with: " + COMMAND);
  }
}
