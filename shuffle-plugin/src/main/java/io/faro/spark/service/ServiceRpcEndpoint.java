package io.faro.spark.service;

import java.io.IOException;
import java.util.function.BiConsumer;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpoint;
import org.apache.spark.rpc.RpcEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.PartialFunction;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/** The driver's side of the messages, in Spark's RPC, which is authenticated and encrypted as the user configured. */
final class ServiceRpcEndpoint implements RpcEndpoint {
  static final String NAME = "faro-services";
  private static final Logger LOG = LoggerFactory.getLogger(ServiceRpcEndpoint.class);

  private final RpcEnv rpcEnv;
  private final DriverServices services;

  ServiceRpcEndpoint(RpcEnv rpcEnv, DriverServices services) {
    this.rpcEnv = rpcEnv;
    this.services = services;
  }

  @Override
  public RpcEnv rpcEnv() {
    return rpcEnv;
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receive() {
    return new OfBytes((bytes, context) -> take(bytes, null), null);
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receiveAndReply(RpcCallContext context) {
    return new OfBytes(this::take, context);
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

  private static final class OfBytes extends AbstractPartialFunction<Object, BoxedUnit> {
    private final BiConsumer<byte[], RpcCallContext> body;
    private final RpcCallContext context;

    OfBytes(BiConsumer<byte[], RpcCallContext> body, RpcCallContext context) {
      this.body = body;
      this.context = context;
    }

    @Override
    public boolean isDefinedAt(Object message) {
      return message instanceof byte[];
    }

    @Override
    public <A extends Object, B> B applyOrElse(A message, Function1<A, B> other) {
      if (!isDefinedAt(message)) {
        return other.apply(message);
      }
      body.accept((byte[]) message, context);
      @SuppressWarnings("unchecked")
      B unit = (B) BoxedUnit.UNIT;
      return unit;
    }
  }
}
