package io.faro.spark.sort;

import io.faro.sort.RowSort;
import org.apache.spark.unsafe.Platform;

/** Goes through pages in the order in which their rows came. */
final class PageCursor extends RowCursor {
  private final PagedRows rows;
  private int number = -1;
  private long end;

  PageCursor(PagedRows rows) {
    super(true);
    this.rows = rows;
  }

  @Override
  void next() {
    offset += RowSort.ROW_HEAD_BYTES + bytes;
    while (number < 0 || offset >= end) {
      rows.checkInterrupt();
      page = rows.page(++number);
      base = page.getBaseObject();
      offset = page.getBaseOffset();
      end = offset + rows.usedOf(number);
    }
    bytes = (int) Platform.getLong(base, offset);
  }

  @Override
  RowCursor copy() {
    PageCursor copy = new PageCursor(rows);
    copy.page = page;
    copy.base = base;
    copy.offset = offset;
    copy.bytes = bytes;
    copy.number = number;
    copy.end = end;
    return copy;
  }
}
