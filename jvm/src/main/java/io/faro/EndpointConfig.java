package io.faro;

import java.util.Objects;

/** What an endpoint is started with. */
public final class EndpointConfig {
  final String name;
  final FabricChoice fabric;
  final String bindAddress;
  final String advertisedAddress;
  final int port;
  final long memoryLimitBytes;
  final long idleReleaseMillis;
  final long requestTimeoutMillis;
  final VerbsOptions verbs;
  final Staging staging;
  final RegionMode regions;
  final ExchangePolicy exchange;
  final long exchangeSliceMillis;

  private EndpointConfig(Builder from) {
    name = from.name;
    fabric = from.fabric;
    bindAddress = from.bindAddress;
    advertisedAddress = from.advertisedAddress == null ? from.bindAddress : from.advertisedAddress;
    port = from.port;
    memoryLimitBytes = from.memoryLimitBytes;
    idleReleaseMillis = from.idleReleaseMillis;
    requestTimeoutMillis = from.requestTimeoutMillis;
    verbs = from.verbs;
    staging = from.staging;
    regions = from.regions;
    exchange = from.exchange;
    exchangeSliceMillis = from.exchangeSliceMillis;
  }

  /** What has a default in native code, a {@code name=value} for each line. */
  String settings() {
    return "memory.idleRelease=" + idleReleaseMillis + "\nstaging=" + staging.code + "\nregions=" + regions.code
        + "\nexchange=" + exchange.code + "\nexchange.slice=" + exchangeSliceMillis;
  }

  public static Builder builder() {
    return new Builder();
  }

  /** Every value has a default that suits tests: this host only, any port, 256 MiB (60 s when idle), 30 s. */
  public static final class Builder {
    private String name = "faro";
    private FabricChoice fabric = FabricChoice.AUTO;
    private String bindAddress = "127.0.0.1";
    private String advertisedAddress;
    private int port;
    private long memoryLimitBytes = 256L << 20;
    private long idleReleaseMillis = 60_000;
    private long requestTimeoutMillis = 30_000;
    private VerbsOptions verbs = new VerbsOptions();
    private Staging staging = Staging.ON_DEMAND;
    private RegionMode regions = RegionMode.UNPINNED;
    private ExchangePolicy exchange = ExchangePolicy.RANDOM;
    private long exchangeSliceMillis = 20;

    private Builder() {}

    /** Executor id, for people. */
    public Builder name(String value) {
      name = Objects.requireNonNull(value, "name");
      return this;
    }

    public Builder fabric(FabricChoice value) {
      fabric = Objects.requireNonNull(value, "fabric");
      return this;
    }

    /** Address to listen on, an IP literal; {@code 0.0.0.0} needs an {@link #advertisedAddress}. */
    public Builder bindAddress(String value) {
      bindAddress = Objects.requireNonNull(value, "bindAddress");
      return this;
    }

    /** Address that peers are told, an IP literal; the bind address unless given. */
    public Builder advertisedAddress(String value) {
      advertisedAddress = value;
      return this;
    }

    /** Port to listen on; 0: any. */
    public Builder port(int value) {
      port = value;
      return this;
    }

    /** Hard cap of the arena, in bytes. */
    public Builder memoryLimitBytes(long value) {
      memoryLimitBytes = value;
      return this;
    }

    /**
     * How long a slab of the arena (16 MiB) goes unused before it is de-registered and its memory given back to the
     * system; 0: never. Its address range stays, and it is used again when there is need.
     */
    public Builder idleReleaseMillis(long value) {
      idleReleaseMillis = value;
      return this;
    }

    /** How long a request may go without progress, unless it says otherwise. */
    public Builder requestTimeoutMillis(long value) {
      requestTimeoutMillis = value;
      return this;
    }

    /** RDMA's device, port and retries, where the choice is not to be Faro's. */
    public Builder verbs(VerbsOptions value) {
      verbs = Objects.requireNonNull(value, "verbs");
      return this;
    }

    /** When bytes of map outputs are brought into frames. */
    public Builder staging(Staging value) {
      staging = Objects.requireNonNull(value, "staging");
      return this;
    }

    /** How map outputs are made readable for RDMA devices. */
    public Builder regions(RegionMode value) {
      regions = Objects.requireNonNull(value, "regions");
      return this;
    }

    /** Whom to read from and to serve first, and how many at once. */
    public Builder exchange(ExchangePolicy value) {
      exchange = Objects.requireNonNull(value, "exchange");
      return this;
    }

    /** How long a round of the exchange is preferred while others wait, in milliseconds. */
    public Builder exchangeSliceMillis(long value) {
      exchangeSliceMillis = value;
      return this;
    }

    /** Throws {@link BadConfigurationException} for what can be seen to be wrong without opening anything. */
    public EndpointConfig build() throws BadConfigurationException {
      if (port < 0 || port > 65_535) {
        throw new BadConfigurationException("port", String.valueOf(port), "0 (any) to 65535");
      }
      if (memoryLimitBytes <= 0) {
        throw new BadConfigurationException("memoryLimitBytes", String.valueOf(memoryLimitBytes), "more than 0");
      }
      if (idleReleaseMillis < 0) {
        throw new BadConfigurationException(
            "idleReleaseMillis", String.valueOf(idleReleaseMillis), "0 (never) or more");
      }
      if (requestTimeoutMillis <= 0) {
        throw new BadConfigurationException(
            "requestTimeoutMillis", String.valueOf(requestTimeoutMillis), "more than 0");
      }
      if (exchangeSliceMillis <= 0) {
        throw new BadConfigurationException(
            "exchangeSliceMillis", String.valueOf(exchangeSliceMillis), "more than 0");
      }
      verbs.check();
      return new EndpointConfig(this);
    }
  }
}
