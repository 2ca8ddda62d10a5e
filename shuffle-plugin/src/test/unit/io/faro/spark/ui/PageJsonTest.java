package io.faro.spark.ui;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collections;
import org.json4s.JsonAST;
import org.json4s.jackson.JsonMethods$;
import org.junit.jupiter.api.Test;

class PageJsonTest {
  @Test
  void aProgramReadsTheFiguresOfThePage() throws Exception {
    ExecutorFigures executor = Figures.executor("1", "remoteBytes.tcp", Long.MAX_VALUE, "retries", 2);
    executor.time = 4_000;
    executor.peers.add(Figures.peer("executor 2 at \"h\":1", 5));
    ShuffleFigures shuffle = Figures.shuffle(7, "remoteBlocks.tcp", 3);
    shuffle.query = 3;
    ObjectNode page = PageJson.of(Collections.singletonList(executor), Collections.singletonList(shuffle),
        Collections.singletonList(Figures.service("host-1", 5, 6)), "sort");

    // As Spark's web server gets it.
    String text = JsonMethods$.MODULE$.compact((JsonAST.JValue) PageJson.asJson4s(page));
    assertEquals(page.toString(), text);
    JsonNode read = new ObjectMapper().readTree(text);
    assertEquals("sort", read.path("manager").asText());
    JsonNode first = read.path("executors").path(0);
    assertEquals("host-1", first.path("host").asText());
    assertEquals(4_000, first.path("time").asLong());
    assertFalse(first.path("removed").asBoolean());
    assertEquals(Long.MAX_VALUE, first.path("counters").path("remoteBytes.tcp").asLong());
    assertEquals("executor 2 at \"h\":1", first.path("peers").path(0).path("peer").asText());
    assertFalse(first.has("Event"), "the name of the class");
    assertEquals(3, read.path("shuffles").path(0).path("query").asInt());
    assertEquals(7, read.path("shuffles").path(0).path("shuffle").asInt());
    assertEquals("host-1", read.path("services").path(0).path("host").asText());
  }

  @Test
  void nothingYetIsJsonToo() {
    ObjectNode page =
        PageJson.of(Collections.emptyList(), Collections.emptyList(), Collections.emptyList(), "sort");
    assertEquals("{\"manager\":\"sort\",\"executors\":[],\"shuffles\":[],\"services\":[]}", page.toString());
  }
}
