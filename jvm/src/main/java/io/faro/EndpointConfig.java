package io.faro;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * The settings of an endpoint. A setting has the name of its key in Spark's configuration without {@code spark.faro.};
 * durations are in milliseconds and sizes in bytes. Native code checks names and values, and has the defaults: they
 * suit tests (this host only, any port, 256 MiB, nothing encrypted). A secret is not a setting, because errors show
 * values: {@link Endpoint#start(EndpointConfig, byte[], OutputResolver)} takes it.
 */
public final class EndpointConfig {
  static final int MAX_COMPLETION_THREADS = 8;

  private final Map<String, String> settings;
  private final int completionThreads;

  private EndpointConfig(Map<String, String> settings, int completionThreads) {
    this.settings = new LinkedHashMap<>(settings);
    this.completionThreads = completionThreads;
  }

  int completionThreads() {
    return completionThreads;
  }

  /** Returns the settings in the form that native code reads: {@code name=value}, one per line. */
  String settings() {
    StringBuilder lines = new StringBuilder();
    settings.forEach((name, value) -> lines.append(name).append('=').append(value).append('\n'));
    return lines.toString();
  }

  public static Builder builder() {
    return new Builder();
  }

  /** Collects settings; the last value of a setting counts. */
  public static final class Builder {
    private final Map<String, String> settings = new LinkedHashMap<>();
    private int completionThreads = 1;

    private Builder() {}

    /**
     * Sets the number of threads that call listeners, 1 (the default) to {@value
     * EndpointConfig#MAX_COMPLETION_THREADS}.
     */
    public Builder completionThreads(int value) {
      if (value < 1 || value > MAX_COMPLETION_THREADS) {
        throw new IllegalArgumentException(value + " threads, allowed: 1 to " + MAX_COMPLETION_THREADS);
      }
      completionThreads = value;
      return this;
    }

    /** Sets any setting by name, for example {@code memory.idleRelease} to {@code 60000}. */
    public Builder set(String name, String value) {
      Objects.requireNonNull(name, "name");
      Objects.requireNonNull(value, name);
      if ((name + value).indexOf('\n') >= 0 || name.indexOf('=') >= 0) {
        throw new IllegalArgumentException(
            "setting '" + name + "' is '" + value + "', allowed: no line break, and no '=' in the name");
      }
      settings.put(name, value);
      return this;
    }

    /** Sets all of these settings. */
    public Builder set(Map<String, String> all) {
      all.forEach(this::set);
      return this;
    }

    /** Sets the executor's id, for logs and cards. */
    public Builder name(String value) {
      return set("name", value);
    }

    public Builder fabric(FabricChoice value) {
      return set("fabric", value.code);
    }

    /** Sets the address to listen on, an IP literal; {@code 0.0.0.0} needs an {@link #advertisedAddress}. */
    public Builder bindAddress(String value) {
      return set("bindAddress", value);
    }

    /** Sets the address that peers get, an IP literal; by default the bind address. */
    public Builder advertisedAddress(String value) {
      return set("advertisedAddress", value);
    }

    /** Sets the port to listen on; 0 takes any free port. */
    public Builder port(int value) {
      return set("port", String.valueOf(value));
    }

    /** Sets the hard cap of the arena, in bytes. */
    public Builder memoryLimitBytes(long value) {
      return set("memory.limit", String.valueOf(value));
    }

    /** Sets the application's id; endpoints of another application cannot connect. */
    public Builder application(String value) {
      return set("application", value);
    }

    /** Sets whether bytes between endpoints are encrypted; endpoints with the other choice cannot connect. */
    public Builder sealed(boolean value) {
      return set("protection", value ? "sealed" : "clear");
    }

    public EndpointConfig build() {
      return new EndpointConfig(settings, completionThreads);
    }
  }
}
