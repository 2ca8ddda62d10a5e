/** Other executors: their cards, whether a request to one may begin, and how long a peer that failed is avoided. */
package io.faro.spark.peers;
