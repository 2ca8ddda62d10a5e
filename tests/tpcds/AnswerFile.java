package io.faro.tpcds;

import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.List;
import org.apache.spark.sql.Row;

/** An answer as a file, which answers.py compares: a row a line, cells between tabs. */
public final class AnswerFile {
    private AnswerFile() {}

    public static void write(List<Row> rows, File output) throws IOException {
        try (PrintWriter out = new PrintWriter(output, "UTF-8")) {
            for (Row row : rows) {
                out.println(cells(row));
            }
        }
    }

    /** Doubles are marked: sums of them depend on the order in which blocks arrive. */
    private static String cells(Row row) {
        StringBuilder line = new StringBuilder();
        for (int i = 0; i < row.size(); i++) {
            Object value = row.get(i);
            boolean approximate = value instanceof Double || value instanceof Float;
            line.append(i == 0 ? "" : "\t").append(approximate ? "~" : "=").append(value);
        }
        return line.toString();
    }
}
