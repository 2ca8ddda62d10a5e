package io.faro.service;

import io.faro.FaroException;

/** A request to the node service failed. */
public class ServiceException extends FaroException {
  private static final long serialVersionUID = 1L;

  public ServiceException(String message) {
    super(message);
  }

  /** The connection to the service was lost, or there was none. */
  public static final class Lost extends ServiceException {
    private static final long serialVersionUID = 1L;

    public Lost(String message) {
      super(message);
    }
  }
}
