package io.faro.spark.service;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

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
    connection.absent(none);
    assertFalse(connection.isReturning());
    assertNull(connection.await());
    OutputFiles files = new OutputFiles(new File("data"), new File("index"));
    assertSame(none, assertThrows(Exception.class, () -> connection.handOver(1, 2, files, true)));
  }
}
