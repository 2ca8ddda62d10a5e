package io.faro.spark.ui;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.faro.spark.metrics.Traffic;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.xml.sax.InputSource;

class PageHtmlTest {
  private static final String FAROS = "io.faro.spark.FaroShuffleManager";
  private static final String QUERIES = "/history/app-1/SQL/execution/?id=";
  private static final String EVIL = "<script>alert('\"x\"')</script>&";

  private static String page(List<ExecutorFigures> executors, List<ShuffleFigures> shuffles) {
    return PageHtml.of(executors, shuffles, Collections.emptyList(), FAROS, 10_000, QUERIES);
  }

  private static String page(ExecutorFigures executor) {
    return page(Collections.singletonList(executor), Collections.emptyList());
  }

  /** Fails where a tag is left open or a text not escaped. */
  private static Document parsed(String page) throws Exception {
    return DocumentBuilderFactory.newInstance().newDocumentBuilder()
        .parse(new InputSource(new StringReader(page)));
  }

  private static List<String> heads(String page) throws Exception {
    List<String> heads = new ArrayList<>();
    org.w3c.dom.NodeList found = parsed(page).getElementsByTagName("th");
    for (int i = 0; i < found.getLength(); i++) {
      heads.add(found.item(i).getTextContent());
    }
    return heads;
  }

  @Test
  void nothingYetIsAPageToo() throws Exception {
    String page = page(Collections.emptyList(), Collections.emptyList());
    parsed(page);
    assertTrue(page.contains("<strong>0 B</strong> in <strong>0</strong> remote blocks"), page);
  }

  @Test
  void sortsThatAreLeftToSparkHaveATableAndTheDriverNoRow() throws Exception {
    ExecutorFigures executor = Figures.executor("1", "sorts", 9, "sparkSorts.memory", 2);
    ExecutorFigures driver = Figures.executor("driver", "sparkSorts.type", 3);
    String page = page(Arrays.asList(executor, driver), Collections.emptyList());
    String text = parsed(page).getDocumentElement().getTextContent();
    assertTrue(text.contains("Why sorts were left to Spark's own"), text);
    assertTrue(text.contains("type3sorts") && text.contains("memory2partitions"), text);
    assertTrue(heads(page).contains("Partitions sorted"), page);
    assertFalse(page.contains("data-executor=\"driver\""), page);
    assertTrue(text.contains("Faro runs on 1 of 1 executor"), text);
  }

  @Test
  void whatComesFromOutsideIsEscaped() throws Exception {
    ExecutorFigures executor = Figures.executor(EVIL, "fallbacks", 1, "fallbackReason." + EVIL, 1);
    executor.host = EVIL;
    executor.peers.add(Figures.peer(EVIL, 5));
    String page = page(executor);
    assertFalse(page.contains("<script"), page);
    Document document = parsed(page);
    assertEquals(0, document.getElementsByTagName("script").getLength());
    assertTrue(document.getDocumentElement().getTextContent().contains(EVIL));
  }

  @Test
  void everyTableAndPlotIsThereAndWellFormed() throws Exception {
    ExecutorFigures executor = Figures.executor("1", "remoteBlocks.tcp", 1_234_567, "remoteBytes.tcp", 5 << 20,
        "fallbacks", 1, "fallbackBlocks", 3, "fallbackReason.timedOut", 1, "pool.limitBytes", 100,
        "pool.leasedBytes", 10, "pool.highWaterBytes", 50);
    executor.peers.add(Figures.peer("executor 2 at h:1", 1_500_000));
    String page = page(Collections.singletonList(executor),
        Collections.singletonList(Figures.shuffle(7, "remoteBytes.tcp", 99, Traffic.SLOWEST, 2_000_000)));
    Document document = parsed(page);
    assertEquals(5, document.getElementsByTagName("table").getLength());
    assertEquals(2, document.getElementsByTagName("svg").getLength());
    assertTrue(page.contains("data-remote-bytes=\"5242880\""), page);
    assertTrue(page.contains(">1,234,567<"), page);
    assertTrue(page.contains(">1.5 ms<"), page);
    assertTrue(page.contains("spark.faro.request.timeout"), "what to do about timedOut");
    assertTrue(page.contains("<tr data-shuffle=\"7\" data-remote-bytes=\"99\">"), page);
  }

  @Test
  void columnsWithoutACounterAreLeftOut() throws Exception {
    assertFalse(heads(page(Figures.executor("1", "remoteBlocks.tcp", 1))).contains("Major faults"));
    assertFalse(heads(page(Figures.executor("1", "region.majorFaults", 0))).contains("Major faults"));
    assertTrue(heads(page(Figures.executor("1", "region.majorFaults", 1))).contains("Major faults"));
    assertFalse(heads(page(Figures.executor("1", "remoteBlocks.tcp", 1))).contains("Left to Spark because of"));
  }

  @Test
  void thePolicyHasItsName() throws Exception {
    String page = page(Figures.executor("1", "exchange.policy", 2, "exchange.activePeersHighWater", 16));
    assertTrue(heads(page).contains("Most active peers"), page);
    assertTrue(page.contains(">rotated</td>"), page);
  }

  @Test
  void columnsOfAFabricThatWasNeverUsedAreLeftOut() throws Exception {
    ExecutorFigures one = Figures.executor("1", "remoteBlocks.tcp", 1, "remoteBytes.tcp", 9, "remoteBlocks.verbs", 0);
    ExecutorFigures two = Figures.executor("2", "remoteBlocks.tcp", 0, "remoteBlocks.verbs", 0);
    ShuffleFigures shuffle = Figures.shuffle(7, "remoteBlocks.tcp", 1, "remoteBytes.tcp", 9);
    List<String> heads = heads(page(Arrays.asList(one, two), Collections.singletonList(shuffle)));
    assertEquals(2, heads.stream().filter(head -> head.equals("Blocks tcp")).count(), heads.toString());
    assertFalse(heads.contains("Blocks verbs") || heads.contains("Blocks shm"), heads.toString());
  }

  @Test
  void aQueryHasTheSumOfItsShufflesAndALinkToSparksPage() throws Exception {
    ShuffleFigures first = Figures.shuffle(7, "remoteBlocks.tcp", 1, "remoteBytes.tcp", 9);
    ShuffleFigures second =
        Figures.shuffle(8, "remoteBlocks.tcp", 2, "remoteBytes.tcp", 20, Traffic.FALLBACK_BLOCKS, 5);
    first.query = 3;
    second.query = 3;
    ShuffleFigures ofRdds = Figures.shuffle(9, "remoteBlocks.tcp", 4, "remoteBytes.tcp", 40);
    String page = page(Collections.emptyList(), Arrays.asList(first, second, ofRdds));
    Document document = parsed(page);
    assertTrue(page.contains("<tr data-query=\"3\" data-remote-bytes=\"29\">"), page);
    assertEquals(page.indexOf("data-query"), page.lastIndexOf("data-query"), "one row");
    org.w3c.dom.Element link = (org.w3c.dom.Element) document.getElementsByTagName("a").item(0);
    assertEquals(QUERIES + 3, link.getAttribute("href"));
    assertTrue(page.contains("<td>7, 8</td>"), page);
    assertFalse(page(Collections.emptyList(), Collections.singletonList(ofRdds)).contains("Queries of Spark SQL"));
  }

  @Test
  void aShuffleHasTheTasksWaitBesideFarosTimes() throws Exception {
    ShuffleFigures shuffle = Figures.shuffle(
        7, Traffic.TASK_WAIT, 3_000_000, Traffic.REQUEST_NANOS, 2_500_000, Traffic.SLOWEST, 1_000_000);
    String page = page(Collections.emptyList(), Collections.singletonList(shuffle));
    List<String> heads = heads(page);
    assertEquals(Arrays.asList("Shuffle", "Tasks waited", "Requests", "Requests took",
        "Slowest request"), heads);
    assertTrue(page.contains(">3.0 ms<") && page.contains(">2.5 ms<") && page.contains(">1.0 ms<"), page);
  }

  @Test
  void aBarIsAsLongAsItsBytes() throws Exception {
    ExecutorFigures many = Figures.executor("1", "remoteBlocks.tcp", 900, "remoteBytes.tcp", 50);
    ExecutorFigures large = Figures.executor("2", "remoteBlocks.tcp", 1, "remoteBytes.tcp", 100);
    String page = page(Arrays.asList(many, large), Collections.emptyList());
    assertTrue(page.indexOf(">executor 2<") < page.indexOf(">executor 1<"), page);
    assertTrue(page.contains("width=\"500.0\"") && page.contains("width=\"250.0\""), page);
    // Of a page of 900, Spark's margins take 24 and a scroll bar 15.
    Matcher plot = Pattern.compile("<svg [^>]* width=\"(\\d+)\"").matcher(page);
    assertTrue(plot.find() && Integer.parseInt(plot.group(1)) <= 861, page);
  }

  @Test
  void aQueryWithFaroSwitchedOffSaysSo() throws Exception {
    ShuffleFigures with = Figures.shuffle(7, "remoteBlocks.tcp", 1, "remoteBytes.tcp", 9);
    ShuffleFigures without = Figures.shuffle(8, Traffic.TASK_WAIT, 9);
    without.query = 3;
    without.sparks = true;
    String page = page(Collections.emptyList(), Arrays.asList(with, without));
    String text = parsed(page).getDocumentElement().getTextContent();
    assertTrue(text.contains("1 shuffle was fetched by Spark alone, because Faro was switched off there"), text);
    assertFalse(text.contains("Nothing was left"), text);
    assertEquals(2, page.split(">all: Faro off<", -1).length - 1, page);
  }

  @Test
  void thePageSaysOnHowManyExecutorsFaroRuns() throws Exception {
    ExecutorFigures runs = Figures.executor("1", "requests", 1);
    ExecutorFigures not = Figures.executor("2");
    not.problem = EVIL;
    assertTrue(channel(runs, not).contains("Faro runs on 1 of 2 executors; 1 does not: " + EVIL + "."));
    assertTrue(channel(runs, not.asRemoved()).contains("Faro runs on 1 of 1 executor."));
    assertTrue(channel(runs.asRemoved(), not.asRemoved()).contains("Faro runs on 1 of 2 executors;"));
  }

  @Test
  void aHostWithAServiceHasARow() throws Exception {
    ExecutorFigures ended = Figures.executor("1", "serviceRegistered", 1, "serviceOutputs", 7).asRemoved();
    ExecutorFigures running = Figures.executor("2", "serviceRegistered", 1, "serviceOutputs", 4);
    ExecutorFigures without = Figures.executor("3", "serviceRegistered", 0, "serviceOutputsRefused", 2);
    running.host = ended.host;
    ServiceFigures service = Figures.service(ended.host, 5, 2_048);
    ServiceFigures gone = Figures.service(EVIL, 1, 1);
    String page = PageHtml.of(Arrays.asList(ended, running, without), Collections.emptyList(),
        Arrays.asList(service, gone), FAROS, 10_000, QUERIES);
    parsed(page);
    assertTrue(page.contains("<tr data-service=\"host-1\" data-outputs=\"11\" data-blocks=\"5\">"
        + "<td>host-1</td><td sorttable_customkey=\"2\">2</td><td sorttable_customkey=\"1\">1</td>"), page);
    assertTrue(page.contains("<tr data-service=\"host-3\" data-outputs=\"0\" data-blocks=\"0\">"), page);
    assertTrue(page.contains("2.0 KiB"), page);
    assertEquals(3, page.split("data-service", -1).length - 1);
    // A column that is 0 for all hosts is not shown, nor explained.
    assertTrue(page.contains("<th>Map outputs not kept</th>") && page.contains("Not kept: "), page);
    for (String absent : Arrays.asList("lent files", "Lent files", "Copies behind", "copies elsewhere")) {
      assertFalse(page.contains(absent), absent);
    }
    String none = page(Figures.executor("1", "serviceRegistered", 0, "serviceOutputs", 0));
    assertFalse(none.contains("Node services"), none);
  }

  @Test
  void thePageNamesAShuffleManagerThatIsNotFaros() throws Exception {
    String other = "org.example." + EVIL;
    String page = PageHtml.of(
        Collections.emptyList(), Collections.emptyList(), Collections.emptyList(), other, 10_000, QUERIES);
    assertTrue(parsed(page).getDocumentElement().getTextContent().contains("behind the shuffle manager " + other));
    assertFalse(page(Collections.emptyList(), Collections.emptyList()).contains("behind"));
  }

  @Test
  void thePageSaysHowTheChannelIsProtected() throws Exception {
    ExecutorFigures sealed = Figures.executor("1", "sealedChannel", 1);
    ExecutorFigures clear = Figures.executor("2", "sealedChannel", 0);
    ExecutorFigures unknown = Figures.executor("3", "requests", 1);
    assertTrue(channel(sealed, unknown).contains("channel is sealed (AES-256-GCM)."));
    assertTrue(channel(clear, unknown).contains("channel is in the clear, its members proven."));
    assertTrue(channel(sealed, clear).contains("in 1 of 2 executors."));
    assertFalse(channel(unknown).contains("channel"));
  }

  private static String channel(ExecutorFigures... executors) throws Exception {
    return parsed(page(Arrays.asList(executors), Collections.emptyList())).getDocumentElement().getTextContent();
  }

  @Test
  void anEndedExecutorSaysSo() {
    assertTrue(page(Figures.executor("1", "requests", 1).asRemoved()).contains("1 (ended)"));
  }

  @Test
  void aLivePageHasAgesAndAPastOneTimes() {
    List<ExecutorFigures> one = Collections.singletonList(Figures.executor("1", "requests", 1));
    one.get(0).time = 4_000;
    assertTrue(page(one, Collections.emptyList()).contains(">6 s ago<"));
    String past = PageHtml.of(
        one, Collections.emptyList(), Collections.emptyList(), FAROS, PageHtml.PAST, QUERIES);
    assertTrue(past.contains(">1970-01-01T00:00:04Z<"));
  }

  @Test
  void aPlotHasABoundAndSaysWhatItLeavesOut() throws Exception {
    List<ExecutorFigures> many = new ArrayList<>();
    for (int i = 0; i < Bars.MAX_ROWS + 5; i++) {
      many.add(Figures.executor("" + i, "remoteBlocks.tcp", i));
    }
    String page = page(many, Collections.emptyList());
    assertTrue(page.contains("and 5 more, in the table"), page);
    parsed(page);
  }

  @Test
  void aLegendNamesWhatIsDrawn() {
    String page = page(Figures.executor("1", "remoteBytes.shm", 3, "pool.leasedBytes", 2, "pool.mappedBytes", 2,
        "pool.limitBytes", 2));
    assertTrue(page.contains(Bars.Part.SHM.label) && page.contains(Bars.Part.IN_USE.label), page);
    for (Bars.Part none : new Bars.Part[] {Bars.Part.VERBS, Bars.Part.TAKEN, Bars.Part.CAP}) {
      assertFalse(page.contains(none.label), none.label);
    }
  }

  @Test
  void sizesAreReadable() {
    assertEquals("1023 B", Html.bytes(1_023));
    assertEquals("1.0 KiB", Html.bytes(1_024));
    assertEquals("1.0 MiB", Html.bytes((1 << 20) - 1));
    assertEquals("8192.0 PiB", Html.bytes(Long.MAX_VALUE));
  }
}
