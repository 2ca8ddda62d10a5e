package io.faro;

/** A setting has a value that is not allowed. */
public final class BadConfigurationException extends FaroException {
  private static final long serialVersionUID = 1L;

  private final String key;
  private final String value;
  private final String allowed;

  public BadConfigurationException(String key, String value, String allowed) {
    super(key + " is '" + value + "', allowed: " + allowed);
    this.key = key;
    this.value = value;
    this.allowed = allowed;
  }

  public String key() {
    return key;
  }

  public String value() {
    return value;
  }

  public String allowed() {
    return allowed;
  }
}
