package io.faro.spark.service;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.OutputFiles;
import io.faro.service.ServiceException;
import java.io.File;
import org.junit.jupiter.api.Test;

class ServiceConnectionTest {
  /** No output waits for it, and the reason is the one that the user has to read. */
  @Test
  void aServiceThatWasNeverThereIsNotWaitedFor() throws InterruptedException {
    ServiceConnection connection = new ServiceConnection();
    Exception none = new ServiceException.Lost("/run/faro/faro.sock: No such file or directory");
    connection.begin();
    connection.absent(none, false);
    assertFalse(connection.isAwaited());
    assertTrue(connection.isReturning(), "it is looked for again soon");
    assertNull(connection.await());
    OutputFiles files = new OutputFiles(new File("data"), new File("index"));
    assertSame(none, assertThrows(Exception.class, () -> connection.handOver(1, 2, files, true)));
  }

  @Test
  void aServiceThatHasLeftItsSocketIsWaitedFor() {
    ServiceConnection connection = new ServiceConnection();
    connection.begin();
    connection.absent(new ServiceException.Lost("Connection refused"), true);
    assertTrue(connection.isAwaited());
    connection.absent(new ServiceException("the service refused (Quota)"), true);
    assertFalse(connection.isAwaited());
  }
}
