-- TPC-DS-derived: what is left of sales after returns, by item category.
select i_category, count(*) lines, count(sr_item_sk) returned,
       sum(ss_quantity - coalesce(sr_return_quantity, 0)) kept,
       sum(ss_ext_sales_price - coalesce(sr_return_amt, 0)) earned
from store_sales
left join store_returns on ss_item_sk = sr_item_sk and ss_ticket_number = sr_ticket_number
join item on i_item_sk = ss_item_sk
group by i_category
