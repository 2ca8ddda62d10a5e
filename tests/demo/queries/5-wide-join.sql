-- Two halves of a table's columns, joined again by their key: both sides are shuffled, wide rows.
select /*+ SHUFFLE_HASH(money) */ count(*) lines,
       sum(cast(hash(keys.*, money.*) as bigint)) hashes
from (
  select ss_item_sk item, ss_ticket_number ticket, ss_sold_date_sk, ss_sold_time_sk, ss_customer_sk,
         ss_cdemo_sk, ss_hdemo_sk, ss_addr_sk, ss_store_sk, ss_promo_sk, ss_quantity
  from store_sales
) keys
join (
  select ss_item_sk item, ss_ticket_number ticket, ss_wholesale_cost, ss_list_price, ss_sales_price,
         ss_ext_discount_amt, ss_ext_sales_price, ss_ext_list_price, ss_coupon_amt, ss_net_paid,
         ss_net_profit
  from store_sales
) money
on keys.item = money.item and keys.ticket = money.ticket
