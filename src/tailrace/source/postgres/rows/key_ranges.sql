-- key_columns: the columns that identify a table's rows, in the order of their index, or else those that are named
with recursive place(attnum, position) as (
  select k.attnum, k.position
  from pg_class c
  join pg_index i on i.indrelid = c.oid and i.indisvalid and i.indimmediate
    and case c.relreplident when 'i' then i.indisreplident when 'n' then false else i.indisprimary end
  cross join lateral unnest(i.indkey::int2[]) with ordinality as k(attnum, position)
  where c.oid = %(relation)s and k.position <= i.indnkeyatts and cardinality(%(order)s::text[]) = 0
  union all
  select a.attnum, named.position
  from unnest(%(order)s::text[]) with ordinality as named(name, position)
  join pg_attribute a on a.attrelid = %(relation)s and a.attname = named.name and a.attnum > 0 and not a.attisdropped
),
typed(attnum, position, type) as (
  select place.attnum, place.position, a.atttypid
  from place
  join pg_attribute a on a.attrelid = %(relation)s and a.attnum = place.attnum
  union all
  select typed.attnum, typed.position, t.typbasetype
  from typed
  join pg_type t on t.oid = typed.type and t.typtype = 'd'
)
select a.attname, array[type_namespace.nspname, t.typname]::text[],
       case when c.oid is not null then array[collation_namespace.nspname, c.collname]::text[] end,
       a.attnotnull and not exists (
         select from pg_constraint n
         where n.conrelid = a.attrelid and n.contype = 'n' and n.conkey = array[a.attnum] and not n.convalidated
       ),
       case when a.attcollation <> 0 then pg_collation_actual_version(a.attcollation) end
from typed
join pg_type t on t.oid = typed.type and t.typtype <> 'd'
join pg_namespace type_namespace on type_namespace.oid = t.typnamespace
join pg_attribute a on a.attrelid = %(relation)s and a.attnum = typed.attnum
left join pg_collation c on c.oid = a.attcollation and c.oid <> t.typcollation
left join pg_namespace collation_namespace on collation_namespace.oid = c.collnamespace
order by typed.position;

-- boundaries: of some rows in the order of their keys, the last one of every so many, and the last of all
select number, {texts}
from (
  select *, row_number() over in_order as number, lead(true) over in_order is null as is_last
  from (select {keys} from {rows} order by {places} limit {limit}) as chosen
  window in_order as (order by {aliases})
) as numbered
where mod(number, {size}) = 0 or is_last
order by number;

-- place: of some rows in an order, the one after so many
select {texts}
from (select {keys} from {rows} order by {places} limit 1 offset {offset}) as chosen;

-- leads_index: whether some columns of a table are the first of an index that has all of its rows, in any order
select exists (
  select
  from pg_index i
  join pg_class c on c.oid = i.indexrelid
  join pg_am m on m.oid = c.relam and m.amname = 'btree'
  where i.indrelid = %(relation)s and i.indisvalid and i.indpred is null
    and (
      select array_agg(a.attname::text order by k.position)
      from unnest(i.indkey::int2[]) with ordinality as k(attnum, position)
      join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
      where k.position <= cardinality(%(order)s::text[])
    ) = %(order)s::text[]
);
