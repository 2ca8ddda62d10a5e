package io.faro.exchange;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** The Java schedule against the vectors that the Rust crate is held to. */
class ScheduleGoldenTest {
  private static final Path FILE =
      Paths.get(System.getProperty("faro.root", ".."), "native/exchange/tests/golden/exchange.txt");

  @Test
  void everyVectorHolds() throws Exception {
    int checked = 0;
    Iterator<String> lines = Files.readAllLines(FILE, StandardCharsets.UTF_8).iterator();
    while (lines.hasNext()) {
      String line = lines.next();
      if (!line.startsWith("#")) {
        String[] words = line.split(" ");
        if (words[0].equals("schedule")) {
          checked += schedule(words, lines);
        } else {
          assertEquals(line, again(words));
          checked++;
        }
      }
    }
    assertTrue(checked > 100, "only " + checked + " vectors in " + FILE);
  }

  @Test
  void badInputIsNamed() {
    List<Member> twice = Arrays.asList(new Member("a", "h", ""), new Member("a", "g", ""));
    String message = message(() -> new Schedule(twice, 0, Schedule.Policy.GROUPED));
    assertEquals("member \"a\" is listed twice", message);
    assertTrue(message(() -> new Schedule(new ArrayList<>(), 0, Schedule.Policy.RANDOM)).startsWith("0 members"));
    assertTrue(message(() -> new Field(6)).startsWith("6 is not a prime power"));
    assertTrue(message(() -> DsSync.groups(8, 9, 0, 0)).startsWith("group size 9"));
  }

  private static String message(Executable action) {
    return assertThrows(IllegalArgumentException.class, action).getMessage();
  }

  /** The line that the words of {@code w} say the inputs of. */
  private static String again(String[] w) {
    switch (w[0]) {
      case "rng":
        return head(w, 2) + hex(new SplitMix64(Long.parseUnsignedLong(w[1])), w.length - 2);
      case "below":
        SplitMix64 random = new SplitMix64(Long.parseLong(w[1]));
        int[] values = IntStream.range(3, w.length).map(i -> random.below(number(w[2]))).toArray();
        return head(w, 3) + join(values, " ", " ");
      case "stream":
        return head(w, 3) + hex(SplitMix64.stream(number(w[1]), number(w[2])), w.length - 3);
      case "field":
        return head(w, 2) + join(new Field(number(w[1])).elements(), " ", " ");
      case "digest":
        Schedule schedule = new Schedule(numbered(number(w[3])), Long.parseLong(w[2]), policy(w[1]));
        return head(w, 5) + String.format(" %016x", digest(schedule, number(w[4])));
      case "dssync":
        return head(w, 5)
            + Arrays.stream(DsSync.groups(number(w[1]), number(w[2]), number(w[3]), number(w[4])))
                .map(group -> join(group, " ", ","))
                .collect(Collectors.joining());
      default:
        throw new AssertionError("unknown vector " + w[0]);
    }
  }

  private static int schedule(String[] w, Iterator<String> lines) {
    List<Member> members = new ArrayList<>();
    for (int i = 0; i < number(w[3]); i++) {
      String[] m = lines.next().split(" ");
      members.add(new Member(m[1], m[2], m[3].equals("-") ? "" : m[3]));
    }
    Schedule schedule = new Schedule(members, Long.parseUnsignedLong(w[2]), policy(w[1]));
    for (int i = 0; i < members.size(); i++) {
      StringBuilder line = new StringBuilder("visits ").append(i);
      for (int round = 0; round < schedule.rounds(); round++) {
        for (int peer : schedule.sources(round, i)) {
          line.append(' ').append(round).append(':').append(peer);
          assertEquals(round, schedule.roundOf(i, peer));
        }
      }
      assertEquals(lines.next(), line.toString());
    }
    return members.size();
  }

  private static long digest(Schedule schedule, int member) {
    long hash = 0xcbf29ce484222325L;
    for (int round = 0; round < schedule.rounds(); round++) {
      for (int peer : schedule.sources(round, member)) {
        for (int word : new int[] {round, peer}) {
          for (int shift = 0; shift < 32; shift += 8) {
            hash = (hash ^ ((word >>> shift) & 0xff)) * 0x100000001b3L;
          }
        }
      }
    }
    return hash;
  }

  private static List<Member> numbered(int n) {
    return IntStream.range(0, n)
        .mapToObj(i -> new Member("e" + i, "h" + i / 4, "r" + i / 32))
        .collect(Collectors.toList());
  }

  private static Schedule.Policy policy(String name) {
    return Schedule.Policy.valueOf(name.toUpperCase(Locale.ROOT));
  }

  private static int number(String word) {
    return Integer.parseInt(word);
  }

  private static String head(String[] words, int count) {
    return String.join(" ", Arrays.copyOf(words, count));
  }

  private static String hex(SplitMix64 random, int count) {
    return IntStream.range(0, count)
        .mapToObj(i -> String.format(" %016x", random.next()))
        .collect(Collectors.joining());
  }

  private static String join(int[] values, String before, String between) {
    return before + Arrays.stream(values).mapToObj(String::valueOf).collect(Collectors.joining(between));
  }
}
