-- attributes: every column that some tables ever had
select a.attrelid::bigint, a.attnum, a.attname, a.atttypid::bigint, a.atttypmod, format_type(a.atttypid, a.atttypmod),
       a.attisdropped, a.attgenerated::text, a.xmin::text
from pg_attribute a
where a.attrelid = any(%(oids)s::oid[]) and a.attnum > 0
order by a.attrelid, a.attnum;

-- missing: columns for which rows older than the column show a default, in a table or in one of its partitions
with tree
select distinct tree.root::bigint, a.attname
from tree
join pg_attribute a on a.attrelid = tree.part
where a.atthasmissing and a.attnum > 0 and not a.attisdropped;

-- files: where the rows of some tables are stored now
with tree
select tree.root::bigint, c.oid::bigint, c.relfilenode::bigint, c.reltoastrelid::bigint
from tree
join pg_class c on c.oid = tree.part and c.relkind = 'r'
order by tree.root, c.oid;

-- partitions: the partitions of some tables; when each was attached and made, and whether both by one statement
with tree
select tree.root::bigint, tree.part::bigint, i.xmin::text, made.xmin::text, c.relkind <> 'p',
       exists (
         select from pg_attribute a
         where a.attrelid = tree.part and a.attnum > 0 and a.xmin = made.xmin and a.cmin = made.cmin
       )
from tree
join pg_class c on c.oid = tree.part
join pg_inherits i on i.inhrelid = tree.part
join pg_attribute made on made.attrelid = tree.part and made.attname = 'tableoid'
where tree.part <> tree.root
order by tree.root, tree.part;

-- made: which transaction made a partition, or which part of one, and the first that it cannot have been
select a.xmin::text::bigint, txid_snapshot_xmax(txid_current_snapshot())
from pg_attribute a
where a.attrelid = %(oid)s and a.attname = 'tableoid';

-- has_rows: whether a partition has any rows now
select exists (select from only {});

-- label_and_attribute: enum labels and composite types' attributes that the text of some tables' values depends on
with recursive used(relation, type) as (
  select attrelid, atttypid
  from pg_attribute
  where attrelid = any(%(oids)s::oid[]) and attnum > 0 and not attisdropped
  union
  select used.relation, part.type
  from used
  join pg_type t on t.oid = used.type
  cross join lateral (
    select t.typelem where t.typelem <> 0 and t.typcategory = 'A'
    union all
    select t.typbasetype where t.typbasetype <> 0
    union all
    select a.atttypid from pg_attribute a where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
    union all
    select r.rngsubtype from pg_range r where t.oid in (r.rngtypid, coalesce((to_jsonb(r) ->> 'rngmultitypid')::oid, 0))
  ) part(type)
)
select used.relation::bigint, 'label ' || e.oid, e.enumlabel || ' ' || e.xmin
from used
join pg_enum e on e.enumtypid = used.type
union all
select used.relation::bigint, 'type ' || used.type,
       string_agg(a.attnum || ':' || a.atttypid || ':' || a.attisdropped, ' ' order by a.attnum)
from used
join pg_type t on t.oid = used.type and t.typtype = 'c'
join pg_attribute a on a.attrelid = t.typrelid and a.attnum > 0
group by used.relation, used.type;

-- sent: the catalog rows by which a publication sends some tables
select t.oid::bigint,
       concat_ws(
         ' ', 'publication', p.oid, p.xmin,
         -- Of a partition that is sent by its own name, also the rows by which it is sent as part of another table.
         (select string_agg(concat_ws(' ', i.inhparent::oid, i.xmin, r.oid, r.xmin), ', ' order by i.inhparent, r.oid)
          from pg_partition_ancestors(t.oid) as ancestor(oid)
          join pg_inherits i on i.inhrelid = ancestor.oid
          left join pg_publication_rel r on r.prpubid = p.oid and r.prrelid = i.inhparent)
       ),
       (select string_agg(r.oid || ' ' || r.xmin, ', ' order by r.oid)
        from pg_publication_rel r
        where r.prpubid = p.oid and r.prrelid = t.oid)
from unnest(%(oids)s::oid[]) as t(oid)
join pg_publication p on p.pubname = %(publication)s;

-- sent_namespaces: the catalog rows by which a publication sends all tables of some tables' namespaces
select t.oid::bigint, string_agg(distinct concat_ws(' ', n.oid, n.xmin, c.oid, d.xmin), ', ')
from unnest(%(oids)s::oid[]) as t(oid)
cross join lateral (select t.oid union select relid from pg_partition_ancestors(t.oid) as relid) named(relation)
join pg_class c on c.oid = named.relation
join pg_publication p on p.pubname = %(publication)s
join pg_publication_namespace n on n.pnpubid = p.oid and n.pnnspid = c.relnamespace
-- A table that was in another namespace for a while was not sent meanwhile. Only `set schema` writes this row again.
left join pg_depend d
  on d.classid = 'pg_class'::regclass and d.objid = c.oid and d.objsubid = 0 and d.refclassid = 'pg_namespace'::regclass
group by t.oid;

-- rewrites: how many rows of some tables were ever updated or deleted, as far as the server has counted
with tree
select tree.root::bigint, sum(pg_stat_get_tuples_updated(tree.part) + pg_stat_get_tuples_deleted(tree.part))::bigint
from tree
group by tree.root;

-- read_at: before which point of the server's log everything that is read next was committed
select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end::text;
