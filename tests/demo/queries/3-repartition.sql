-- Every row of a table to the partition of its item, all columns; the sums show that all arrived.
select count(*) lines, sum(cast(hash(*) as bigint)) hashes
from (select /*+ REPARTITION(64, ss_item_sk) */ * from store_sales) moved
