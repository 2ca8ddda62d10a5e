package io.faro.spark.ui;

import io.faro.spark.rpc.BytesFunction;
import java.io.IOException;
import java.util.function.Consumer;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpoint;
import org.apache.spark.rpc.RpcEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.PartialFunction;
import scala.runtime.BoxedUnit;

/**
 * Receives executors' reports in Spark's RPC, which is authenticated and encrypted as the user configured and needs no
 * port of Faro's. Messages and answers have types that every class loader has.
 */
final class DriverRpcEndpoint implements RpcEndpoint {
  private static final Logger LOG = LoggerFactory.getLogger(DriverRpcEndpoint.class);

  /** Takes a report; {@code answer} is null if the sender does not wait. */
  interface Taker {
    void take(byte[] report, Runnable answer) throws Exception;
  }

  private final RpcEnv rpcEnv;
  private final Taker taker;

  DriverRpcEndpoint(RpcEnv rpcEnv, Taker taker) {
    this.rpcEnv = rpcEnv;
    this.taker = taker;
  }

  @Override
  public RpcEnv rpcEnv() {
    return rpcEnv;
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receive() {
    return new BytesFunction(report -> take(report, null, problem -> { }));
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receiveAndReply(RpcCallContext context) {
    return new BytesFunction(report -> take(report, () -> context.reply(true), context::sendFailure));
  }

  private void take(byte[] report, Runnable answer, Consumer<Throwable> refuse) {
    try {
      taker.take(report, answer);
    } catch (Exception e) {
      LOG.debug("Faro: the driver refused a report", e);
      refuse.accept(new IOException("the driver refused the report: " + e));
    }
  }
}
