/** The schedule of the exchange in Java, equal to the crate native/exchange; no Spark in it and no native code. */
package io.faro.exchange;
