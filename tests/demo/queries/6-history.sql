-- TPC-DS-derived: the days between one purchase of a customer and the next.
select gap_weeks, count(*) purchases, sum(paid) paid
from (
  select (ss_sold_date_sk - lag(ss_sold_date_sk) over
           (partition by ss_customer_sk order by ss_sold_date_sk, ss_ticket_number)) div 7 gap_weeks,
         paid
  from (
    select ss_customer_sk, ss_sold_date_sk, ss_ticket_number, sum(ss_net_paid) paid
    from store_sales
    where ss_customer_sk is not null and ss_sold_date_sk is not null
    group by ss_customer_sk, ss_sold_date_sk, ss_ticket_number
  ) visits
) gaps
group by gap_weeks
