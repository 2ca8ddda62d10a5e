-- A table sorted by price over 40 partitions; the answer says whether it is in order.
select sum(n) lines, sum(hashes) hashes, min(low = least and high = most) sorted_inside,
       min(coalesce(before <= least, true)) sorted_over_all
from (
  select *, lag(most) over (order by p) before
  from (
    select p, count(*) n, sum(cast(hash(price, item, ticket, customer, day, paid) as bigint)) hashes,
           first(price) low, last(price) high, min(price) least, max(price) most
    from (
      select *, spark_partition_id() p
      from (
        select /*+ REPARTITION_BY_RANGE(40, price) */ ss_ext_list_price price, ss_item_sk item,
               ss_ticket_number ticket, ss_customer_sk customer, ss_sold_date_sk day,
               ss_net_paid paid
        from store_sales
        where ss_ext_list_price is not null
        sort by price
      ) ordered
    ) placed
    group by p
  ) partitions
) neighbours
