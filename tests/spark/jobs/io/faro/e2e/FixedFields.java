package io.faro.e2e;

import java.lang.reflect.ReflectPermission;
import java.security.Permission;
import java.util.Map;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

/** Lets Faro replace no private field of Spark's, as a Java of JEP 500 that denies it. */
public final class FixedFields implements SparkPlugin {
    @Override
    public DriverPlugin driverPlugin() {
        return null;
    }

    @Override
    public ExecutorPlugin executorPlugin() {
        return new ExecutorPlugin() {
            @Override
            @SuppressWarnings("removal")
            public void init(PluginContext context, Map<String, String> fromDriver) {
                System.setSecurityManager(new SecurityManager() {
                    @Override
                    public void checkPermission(Permission permission) {
                        if (permission instanceof ReflectPermission) {
                            for (StackTraceElement caller : new Throwable().getStackTrace()) {
                                if (caller.getMethodName().equals("replaceClient")) {
                                    throw new SecurityException("final fields stay as they are");
                                }
                            }
                        }
                    }
                });
            }
        };
    }
}
