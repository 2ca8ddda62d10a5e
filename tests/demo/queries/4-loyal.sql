-- TPC-DS-derived: customers who bought the same item in a store and from the catalog.
select ca_state, count(distinct c_customer_sk) customers, count(*) pairs,
       sum(ss_net_paid) in_store, sum(cs_net_paid) by_mail
from store_sales
join catalog_sales on ss_customer_sk = cs_bill_customer_sk and ss_item_sk = cs_item_sk
join customer on c_customer_sk = ss_customer_sk
join customer_address on ca_address_sk = c_current_addr_sk
group by ca_state
