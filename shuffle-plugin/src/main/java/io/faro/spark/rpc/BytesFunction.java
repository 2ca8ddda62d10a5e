package io.faro.spark.rpc;

import java.util.function.Consumer;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/** Takes the messages of one of Spark's RPC endpoints that are bytes, and no others. */
public final class BytesFunction extends AbstractPartialFunction<Object, BoxedUnit> {
  private final Consumer<byte[]> body;

  public BytesFunction(Consumer<byte[]> body) {
    this.body = body;
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
    body.accept((byte[]) message);
    @SuppressWarnings("unchecked")
    B unit = (B) BoxedUnit.UNIT;
    return unit;
  }
}
