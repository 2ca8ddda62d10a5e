-- TPC-DS-derived: how large the baskets of each store are, and what is in them.
select s_store_name, basket_size, count(*) baskets, sum(spent) spent
from (
  select ss_store_sk, ss_ticket_number, count(*) basket_size, sum(ss_ext_sales_price) spent
  from store_sales
  group by ss_store_sk, ss_ticket_number
) b
join store on s_store_sk = ss_store_sk
group by s_store_name, basket_size
