/** An executor's connection to the node service of its host ({@code faro serve}). */
package io.faro.service;
