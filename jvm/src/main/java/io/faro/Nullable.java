package io.faro;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;

/** A field or parameter that may be null, or a method that may return it. For readers: no class file has it. */
@Retention(RetentionPolicy.SOURCE)
public @interface Nullable {}
