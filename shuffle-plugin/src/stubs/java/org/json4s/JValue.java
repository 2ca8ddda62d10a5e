package org.json4s;

/** The class of Spark 4's json4s as the compiler sees it, and in no jar: in Spark 3's it is {@code JsonAST.JValue}. */
public abstract class JValue {}
