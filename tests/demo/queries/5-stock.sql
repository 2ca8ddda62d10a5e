-- TPC-DS-derived: how steady the stock of each warehouse was in one year, by month.
select w_warehouse_name, d_moy, count(*) items, avg(spread) spread
from (
  select inv_warehouse_sk, inv_item_sk, d_moy,
         stddev_samp(inv_quantity_on_hand) / nullif(avg(inv_quantity_on_hand), 0) spread
  from inventory join date_dim on d_date_sk = inv_date_sk
  where d_year = 2000
  group by inv_warehouse_sk, inv_item_sk, d_moy
) m
join warehouse on w_warehouse_sk = inv_warehouse_sk
group by w_warehouse_name, d_moy
