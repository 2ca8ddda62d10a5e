package io.faro.service;

import io.faro.FaroException;

/** The node service did not do what was asked. */
public class ServiceException extends FaroException {
  private static final long serialVersionUID = 1L;

  public ServiceException(String message) {
    super(message);
  }

  /** There is no connection to the service (any more). */
  public static final class Lost extends ServiceException {
    private static final long serialVersionUID = 1L;

    public Lost(String message) {
      super(message);
    }
  }
}
