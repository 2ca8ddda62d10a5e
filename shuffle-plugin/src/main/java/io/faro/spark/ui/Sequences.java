package io.faro.spark.ui;

import java.lang.reflect.Method;
import scala.collection.Iterable;
import scala.collection.Iterator;

/** Spark's methods that return a {@code Seq}: its type is another one in Scala 2.13 than in 2.12. */
final class Sequences {
  private Sequences() {}

  /** The elements that {@code method} of {@code target} returns; it has no parameters. */
  static Iterator<?> elements(Object target, String method) throws ReflectiveOperationException {
    Method found = target.getClass().getMethod(method);
    return ((Iterable<?>) found.invoke(target)).iterator();
  }
}
