package io.faro.spark;

import io.faro.Endpoint;
import io.faro.EndpointConfig;
import io.faro.EndpointException;
import io.faro.Faro;
import io.faro.spark.conf.FaroConf;
import io.faro.spark.conf.FaroKeys;
import io.faro.spark.peers.Addresses;
import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.SparkEnv;
import org.slf4j.Logger;

/** Starts an executor's endpoint: library, threads, addresses, the first free port. */
final class EndpointStart {
  private static final int MAX_COMPLETION_THREADS = 4;

  private EndpointStart() {}

  static Endpoint start(Logger log, FaroConf conf, SparkEnv env, MapOutputs outputs) throws Exception {
    Faro.extractAlsoTo(localDirectories(env));
    Faro.ensureAvailability();
    Addresses addresses = Addresses.of(env.blockManager().blockManagerId().host(), conf.bindAddress,
        Addresses.sparksBindAddress(System.getProperty("sun.java.command", "")));
    EndpointConfig.Builder config = EndpointConfig.builder()
        .name("executor-" + env.executorId())
        .completionThreads(Math.max(1, Math.min(MAX_COMPLETION_THREADS, conf.cores / 4)))
        .set(conf.settings)
        .application(env.conf().getAppId())
        .sealed(conf.security.sealed)
        .bindAddress(addresses.bind)
        .advertisedAddress(addresses.advertise);
    byte[] secret = conf.security.secret(env.securityManager());
    try {
      return startOnAnyPort(log, conf, addresses, config, secret, outputs);
    } finally {
      if (secret != null) {
        Arrays.fill(secret, (byte) 0);
      }
    }
  }

  private static Endpoint startOnAnyPort(Logger log, FaroConf conf, Addresses addresses, EndpointConfig.Builder config,
      byte[] secret, MapOutputs outputs) throws Exception {
    int tries = conf.port == 0 ? 1 : 1 + Math.min(conf.portRetries, 65_535 - conf.port);
    for (int i = 0; ; i++) {
      try {
        return Endpoint.start(config.port(conf.port == 0 ? 0 : conf.port + i).build(), secret, outputs);
      } catch (EndpointException e) {
        // The exception does not say whether the port is taken or something else is wrong: try the next port anyway.
        if (conf.bindAddress != null && !addresses.bindsHere()) {
          throw new EndpointException(
              FaroKeys.BIND_ADDRESS.name + "=" + conf.bindAddress + " is not an address of this host");
        }
        if (i + 1 >= tries) {
          throw tries == 1 ? e : new EndpointException(e.getMessage() + " (the last of " + tries + " ports tried, "
              + FaroKeys.PORT.name + "=" + conf.port + ", spark.port.maxRetries=" + conf.portRetries + ")");
        }
        log.info("Faro: cannot listen on port {} ({}), trying the next port", conf.port + i, e.getMessage());
      }
    }
  }

  /** Spark's local directories, to which each executor can write. */
  private static List<File> localDirectories(SparkEnv env) {
    List<File> directories = new ArrayList<>();
    for (File ofBlocks : env.blockManager().diskBlockManager().localDirs()) {
      directories.add(ofBlocks.getParentFile());
    }
    return directories;
  }
}
