package io.faro.spark.codec;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The test vectors of the format, which native code's decoder reads too. */
class RowBlockVectorsTest {
  private static List<String[]> vectors(String name) throws IOException {
    Path file = Paths.get(System.getProperty("faro.root"), "native", "rows", "tests", "vectors", name);
    return Files.readAllLines(file).stream().filter(line -> !line.startsWith("#")).map(line -> line.split(" "))
        .collect(Collectors.toList());
  }

  private static byte[] bytes(String digits) {
    byte[] bytes = new byte[digits.length() / 2];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) Integer.parseInt(digits.substring(2 * i, 2 * i + 2), 16);
    }
    return bytes;
  }

  @Test
  void goodBlocksBecomeTheirRows() throws IOException {
    List<String[]> good = vectors("good.txt");
    assertTrue(good.size() >= 29);
    for (String[] vector : good) {
      assertArrayEquals(bytes(vector[1]), Streams.decoded(bytes(vector[2]), 1 << 20), vector[0]);
      assertArrayEquals(bytes(vector[1]), Streams.decodedZstd(bytes(vector[2]), 1 << 20), vector[0]);
    }
  }

  @Test
  void goodBlocksInOneStream() throws IOException {
    List<String[]> good = vectors("good.txt");
    byte[] stream = Streams.joined(good.stream().map(vector -> bytes(vector[2])).toArray(byte[][]::new));
    byte[] rows = Streams.joined(good.stream().map(vector -> bytes(vector[1])).toArray(byte[][]::new));
    assertArrayEquals(rows, Streams.decoded(stream, 7));
  }

  @Test
  void badBlocksAreRefusedForTheirReason() throws IOException {
    List<String[]> bad = vectors("bad.txt");
    assertTrue(bad.size() >= 38);
    for (String[] vector : bad) {
      CorruptBlockException e = assertThrows(
          CorruptBlockException.class, () -> Streams.decoded(bytes(vector[1]), 1 << 20), vector[0] + vector[1]);
      assertTrue(e.getMessage().startsWith("Stream is corrupted: block 0 at byte 0, method 0x"), e.getMessage());
      assertEquals(e.getMessage(), assertThrows(
          CorruptBlockException.class, () -> Streams.decodedZstd(bytes(vector[1]), 1 << 20)).getMessage());
      boolean named = Arrays.stream(reason(vector[0]).split("\\|")).anyMatch(e.getMessage()::contains);
      assertTrue(named, vector[0] + ": " + e.getMessage());
    }
  }

  /** A piece of the message, or one of several, for the fault of that name in native code. */
  private static String reason(String fault) {
    switch (fault) {
      case "Rows":
        return " are not possible in ";
      case "Tail":
        return "its tail is stored in ";
      case "BodyTooShort":
        return "too short";
      case "RowLength":
        return "are packed";
      case "Original":
        return "its rows have ";
      case "Mode":
        return "has the mode";
      case "Width":
        return "allowed are 0 to 56 and 64";
      case "ShortColumn":
        return "its columns end inside a value";
      case "Dictionary":
        return "the dictionary at byte";
      case "Runs":
        return " runs of ";
      case "Text":
        return "ends behind its row's end";
      case "BytesBehindColumns":
        return "follow its last column";
      case "Padding":
        return "are not zeros";
      case "TailCodec":
      case "TailLength":
        // Some of the libraries' decompressors give both one message.
        return "compress|zstd frame";
      default:
        throw new IllegalArgumentException("the fault " + fault + " has no message here");
    }
  }
}
