package io.faro.spark.ui;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.helpers.MessageFormatter;

/** What a logger was given, each line with its level. */
final class LogLines {
  private final List<String> lines = new ArrayList<>();

  Logger logger() {
    return (Logger) Proxy.newProxyInstance(LogLines.class.getClassLoader(), new Class<?>[] {Logger.class},
        (proxy, method, arguments) -> {
          Object[] values = arguments.length == 2 && arguments[1] instanceof Object[]
              ? (Object[]) arguments[1] : Arrays.copyOfRange(arguments, 1, arguments.length);
          lines.add(method.getName().toUpperCase(Locale.ROOT) + " "
              + MessageFormatter.arrayFormat((String) arguments[0], values).getMessage());
          return null;
        });
  }

  List<String> all() {
    return lines;
  }

  List<String> with(String text) {
    return lines.stream().filter(line -> line.contains(text)).collect(Collectors.toList());
  }
}
