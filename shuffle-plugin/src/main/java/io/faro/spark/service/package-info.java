/** Map outputs that outlive their executors: what driver and executors say to each other about node services. */
package io.faro.spark.service;
