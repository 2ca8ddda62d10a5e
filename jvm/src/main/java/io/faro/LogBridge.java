package io.faro;

import java.util.HashMap;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Body of {@code faro-log}, one daemon thread per process: copies native log lines to SLF4J loggers named
 * {@code io.faro.native.<target>}. Native threads put lines into a bounded queue and never wait or attach to the JVM: a
 * slow appender costs lines (their number is logged), not throughput. Once a second the thread sets the native level to
 * that of the loggers and releases slabs that are unreachable.
 */
final class LogBridge implements Runnable {
  private static final Logger LOG = LoggerFactory.getLogger(LogBridge.class);

  static final String ROOT = "io.faro.native";
  /** The native crates; each can have its own level. */
  private static final String[] CRATES = {"wire", "pool", "exchange", "fabric", "region", "endpoint", "jni"};

  private static final long WAIT_MILLIS = 1_000;
  private static final int MAX_CACHED_LOGGERS = 1_024;

  private final Map<String, Logger> loggers = new HashMap<>();
  private int level = -1;

  private LogBridge() {}

  /** Starts the thread. Called once, after the library is loaded. */
  static void start() {
    LogBridge bridge = new LogBridge();
    bridge.followLevel();
    Thread thread = new Thread(bridge, "faro-log");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void run() {
    while (true) {
      try {
        String lines = Native.drainLog(WAIT_MILLIS);
        if (lines != null) {
          emit(lines);
        }
        followLevel();
        Slabs.releaseUnreachable();
      } catch (Throwable t) {
        LOG.error("Native log lines were lost", t);
      }
    }
  }

  private void emit(String lines) {
    for (String line : lines.split("\n")) {
      int first = line.indexOf('\t');
      int second = line.indexOf('\t', first + 1);
      if (first == 1 && second > 0) {
        write(line.charAt(0) - '0', logger(line.substring(first + 1, second)), line.substring(second + 1));
      }
    }
  }

  private Logger logger(String target) {
    if (loggers.size() > MAX_CACHED_LOGGERS) {
      loggers.clear();
    }
    return loggers.computeIfAbsent(target, key -> LoggerFactory.getLogger(nameOf(key)));
  }

  /** Returns the logger of a native target: {@code faro_fabric::tcp} becomes {@code io.faro.native.fabric.tcp}. */
  static String nameOf(String target) {
    String crate = target.startsWith("faro_") ? target.substring("faro_".length()) : target;
    return ROOT + "." + crate.replace("::", ".");
  }

  private static void write(int level, Logger logger, String text) {
    switch (level) {
      case 1:
        logger.error("{}", text);
        break;
      case 2:
        logger.warn("{}", text);
        break;
      case 3:
        logger.info("{}", text);
        break;
      case 4:
        logger.debug("{}", text);
        break;
      default:
        logger.trace("{}", text);
        break;
    }
  }

  private void followLevel() {
    int now = levelOf(LoggerFactory.getLogger(ROOT));
    for (String crate : CRATES) {
      now = Math.max(now, levelOf(LoggerFactory.getLogger(ROOT + "." + crate)));
    }
    if (now != level) {
      Native.logLevel(now);
      level = now;
    }
  }

  private static int levelOf(Logger logger) {
    if (logger.isTraceEnabled()) {
      return 5;
    } else if (logger.isDebugEnabled()) {
      return 4;
    } else if (logger.isInfoEnabled()) {
      return 3;
    } else if (logger.isWarnEnabled()) {
      return 2;
    }
    return logger.isErrorEnabled() ? 1 : 0;
  }
}
