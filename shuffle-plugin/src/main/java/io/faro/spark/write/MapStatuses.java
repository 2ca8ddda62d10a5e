package io.faro.spark.write;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.storage.BlockManagerId;

/** Makes map statuses, which have an argument more from Spark 4.1 on. */
final class MapStatuses {
  private static final Method APPLY = applyMethod();

  private MapStatuses() {}

  private static Method applyMethod() {
    for (Method method : MapStatus.class.getMethods()) {
      Class<?>[] types = method.getParameterTypes();
      boolean known = types.length == 3 || types.length == 4 && types[3] == long.class;
      if (method.getName().equals("apply") && known && types[0] == BlockManagerId.class && types[1] == long[].class
          && types[2] == long.class) {
        return method;
      }
    }
    return null;
  }

  /** Returns whether this Spark has the methods that are known here. */
  static boolean available() {
    return APPLY != null;
  }

  /** A status; {@code checksum} is ignored where a status has none. */
  static MapStatus of(BlockManagerId where, long[] lengths, long mapId, long checksum) {
    Object status = APPLY.getParameterCount() == 3
        ? call(APPLY, null, where, lengths, mapId) : call(APPLY, null, where, lengths, mapId, checksum);
    return (MapStatus) status;
  }

  /** Calls a method of Spark's that throws nothing that is checked. */
  static Object call(Method method, Object on, Object... arguments) {
    try {
      return method.invoke(on, arguments);
    } catch (InvocationTargetException e) {
      throw new IllegalStateException(method + " threw", e.getCause());
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(method + " cannot be called", e);
    }
  }
}
