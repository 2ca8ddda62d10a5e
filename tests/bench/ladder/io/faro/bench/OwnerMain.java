package io.faro.bench;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.spark.network.netty.NettyBlockTransferService;

/**
 * The process that owns the map outputs: writes the shapes that it is given, serves them on every side, prints how it
 * is reached, and ends when its input ends. usage: OwnerMain DIRECTORY SIDES SHAPE...
 */
public final class OwnerMain {
  private OwnerMain() {}

  public static void main(String[] args) throws Exception {
    ShuffleFiles files = new ShuffleFiles(new File(args[0]));
    for (int i = 2; i < args.length; i++) {
      files.write(new Shape(args[i]));
    }
    for (String side : args[1].split(",")) {
      if (side.startsWith("netty")) {
        NettyBlockTransferService netty = StockNetty.start(side, files);
        System.out.println(side + " " + netty.port());
      } else {
        LadderEndpoint endpoint = LadderEndpoint.start(side, files::data, files::index);
        System.out.println(side + " " + Base64.getEncoder().encodeToString(endpoint.card()));
      }
    }
    System.out.println("ready");
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    while (in.readLine() != null) {
      // The input carries no requests; its end ends the process.
    }
    System.exit(0);
  }
}
