-- TPC-DS-derived: the items that sell best over all three channels, week by week, in one year.
with sales as (
  select ss_item_sk item_sk, ss_sold_date_sk date_sk, ss_quantity quantity, 'store' channel
  from store_sales
  union all
  select cs_item_sk, cs_sold_date_sk, cs_quantity, 'catalog' from catalog_sales
  union all
  select ws_item_sk, ws_sold_date_sk, ws_quantity, 'web' from web_sales
),
weekly as (
  select item_sk, d_week_seq, sum(quantity) sold, count(distinct channel) channels
  from sales join date_dim on d_date_sk = date_sk
  where d_year = 2001
  group by item_sk, d_week_seq
)
select d_week_seq, item_sk, sold, channels
from (
  select *, row_number() over (partition by d_week_seq order by sold desc, item_sk) place
  from weekly
) ranked
where place <= 3
