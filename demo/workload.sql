-- highest_order: the newest order number, for picking a random order below it
select coalesce(max(id), 0) from orders;

-- nearest_order: an order at or above a number, with its customer
select id, customer_id from orders where id >= %(from)s order by id limit 1;

-- insert_order: an order without items
insert into orders (customer_id, status, total, shipping, note, placed_at)
values (%(customer)s, 'new', 0, jsonb_build_object('street', %(street)s::text), %(note)s, clock_timestamp())
returning id;

-- insert_item: one line of an order
insert into order_items (order_id, line_number, product, quantity, unit_price, discount)
values (%(order)s, %(line)s, %(product)s, %(quantity)s, %(price)s, %(discount)s);

-- total_order: the order's total, from its items
update orders
set total = (select coalesce(sum(quantity * unit_price), 0) from order_items where order_id = %(order)s)
where id = %(order)s
returning total;

-- insert_payment: the payment of an order
insert into payments (order_id, amount, method, reviewed, fingerprint, paid_on, booked_at)
values (%(order)s, %(amount)s, 'card', null, sha256(%(order)s::text::bytea), current_date, localtimestamp);

-- advance_order: the order's next status
update orders
set status = case status when 'new' then 'paid' when 'paid' then 'shipped' else 'delivered' end::order_status
where id = %(order)s;

-- note_customer: a note about a customer; the biography stays as it is
update customers set note = %(note)s where id = %(customer)s;

-- retell_customer: a new long biography
update customers
set biography = (select string_agg(md5(%(note)s || part), '') from generate_series(1, 150) part)
where id = %(customer)s;

-- cancel_order: the first half of a cancellation
update orders set status = 'cancelled', note = null where id = %(order)s;

-- delete_order: the second half; items and payments go with it
delete from orders where id = %(order)s;

-- renumber_items: changes the key of every line of an order
update order_items set line_number = (line_number + 100) %% 32000 where order_id = %(order)s;

-- replace_payment: changes the key of every payment of an order
update payments set id = gen_random_uuid(), reviewed = true where order_id = %(order)s;
