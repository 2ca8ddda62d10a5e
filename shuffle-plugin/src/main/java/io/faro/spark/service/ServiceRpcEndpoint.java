package io.faro.spark.service;

import io.faro.spark.rpc.BytesFunction;
import java.io.IOException;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpoint;
import org.apache.spark.rpc.RpcEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.PartialFunction;
import scala.runtime.BoxedUnit;

/** The driver's side of the messages, in Spark's RPC, which is authenticated and encrypted as the user configured. */
final class ServiceRpcEndpoint implements RpcEndpoint {
  static final String NAME = "faro-services";
  private static final Logger LOG = LoggerFactory.getLogger(ServiceRpcEndpoint.class);

  private final RpcEnv rpcEnv;
  private final NodeServices services;

  ServiceRpcEndpoint(RpcEnv rpcEnv, NodeServices services) {
    this.rpcEnv = rpcEnv;
    this.services = services;
  }

  @Override
  public RpcEnv rpcEnv() {
    return rpcEnv;
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receive() {
    return new BytesFunction(bytes -> take(bytes, null));
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receiveAndReply(RpcCallContext context) {
    return new BytesFunction(bytes -> take(bytes, context));
  }

  private void take(byte[] bytes, RpcCallContext context) {
    try {
      services.take(Message.decode(bytes), answer -> {
        if (context != null) {
          context.reply(answer);
        }
      });
    } catch (IOException e) {
      LOG.debug("Faro: the driver refused a message about services", e);
      if (context != null) {
        context.sendFailure(e);
      }
    }
  }
}
