-- relations: everything a pattern could name, in the namespaces of users; not the state of a tailrace server
select c.oid::bigint, n.nspname, c.relname, c.relkind::text, c.relpersistence::text, c.relispartition, e.extname
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
left join pg_depend d on d.classid = 'pg_class'::regclass and d.objid = c.oid and d.objsubid = 0 and d.deptype = 'e'
left join pg_extension e on e.oid = d.refobjid
where c.relkind in ('r', 'p', 'v', 'm', 'f')
  and n.nspname not in ('pg_catalog', 'information_schema')
  and n.nspname !~ '^pg_(toast|temp_)'
  and not exists (
    select from (
      values ('tailrace_connectors', array['name', 'config', 'target', 'version']),
             ('tailrace_history', array['id', 'name', 'version', 'config', 'changed_us']),
             ('tailrace_history', array['id', 'name', 'version', 'config', 'changed_us', 'who', 'changed'])
    ) as state(name, columns)
    where c.relname = state.name
      and state.columns = array(
        select a.attname::text from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum
      )
  )
order by n.nspname, c.relname;

-- tables: replica identity of some tables
select c.oid::bigint, c.relreplident::text
from pg_class c
where c.oid = any(%(oids)s::oid[]);

-- columns: the columns of some tables, in order
select a.attrelid::bigint, a.attname, a.atttypid::bigint, a.atttypmod, a.attgenerated::text, a.attnum
from pg_attribute a
where a.attrelid = any(%(oids)s::oid[]) and a.attnum > 0 and not a.attisdropped
order by a.attrelid, a.attnum;

-- parts: where the rows of some tables are stored: in the table itself, or in its leaf partitions
with tree
select tree.root::bigint, c.oid::bigint, n.nspname, c.relname, c.relkind::text, c.relpersistence::text,
       c.relreplident::text, c.relpages,
       (c.relpages + coalesce(toast.relpages, 0)) * current_setting('block_size')::bigint as size_bytes,
       case when c.reltuples > 0 then c.reltuples::bigint else pg_stat_get_live_tuples(c.oid) end as rows_estimated
from tree
join pg_class c on c.oid = tree.part and c.relkind <> 'p'
join pg_namespace n on n.oid = c.relnamespace
left join pg_class toast on toast.oid = c.reltoastrelid
order by tree.root, n.nspname, c.relname;

-- sizes: how large some tables are that store rows; waits for whoever locks one
select oid::bigint, coalesce(pg_relation_size(oid) / current_setting('block_size')::int, 0), coalesce(pg_table_size(oid), 0)
from unnest(%(oids)s::oid[]) as oid;

-- keys: primary keys and replica identity indexes of some tables, with their columns
select i.indrelid::bigint, i.indisprimary, i.indisreplident, i.indimmediate, array_agg(a.attname::text)
from pg_index i
cross join lateral unnest(i.indkey::int2[]) with ordinality as k(attnum, position)
join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum
where i.indrelid = any(%(oids)s::oid[])
  and (i.indisprimary or i.indisreplident) and i.indisvalid
  and k.position <= i.indnkeyatts
group by i.indexrelid, i.indrelid, i.indisprimary, i.indisreplident, i.indimmediate;

-- types: some types, the types that domains among them are made of, and the elements of arrays with commas
with recursive found as (
  select oid, typname, typbasetype, typtypmod, typelem from pg_type where oid = any(%(oids)s::oid[])
  union
  select t.oid, t.typname, t.typbasetype, t.typtypmod, t.typelem
  from pg_type t join found on t.oid in (found.typbasetype, found.typelem)
)
select found.oid::bigint, found.typname, found.typbasetype::bigint, found.typtypmod, coalesce(e.oid, 0)::bigint
from found
left join pg_type e on e.oid = found.typelem and e.typarray = found.oid and e.typdelim = ',';

-- type_names: types with their modifiers, as Postgres writes them
select oid::bigint, typmod, format_type(oid, typmod)
from unnest(%(oids)s::oid[], %(typmods)s::int[]) as declared(oid, typmod);

-- held: whether a table with its partitions is, under the transaction's snapshot, what it is now; whether rows are hidden
with recursive tree(root, part) as (
  select c.oid, c.oid
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = %(namespace)s and c.relname = %(table)s
  union all
  select tree.root, i.inhrelid
  from tree
  join pg_class c on c.oid = tree.part and c.relkind = 'p'
  join pg_inherits i on i.inhparent = c.oid and coalesce(to_jsonb(i) ->> 'inhdetachpending', 'false') = 'false'
)
select tree.root = to_regclass(%(name)s)
         and bool_and(nullif(c.relfilenode, 0) is not distinct from pg_relation_filenode(c.oid))
         and array_agg(c.oid order by c.oid) = array(
           select relid::oid from pg_partition_tree(tree.root) union select tree.root order by 1
         ),
       row_security_active(tree.root)
from tree
join pg_class c on c.oid = tree.part
group by tree.root;

-- look_in: have one more namespace in the search path until the transaction ends
select set_config('search_path', concat_ws(', ', current_setting('search_path'), quote_ident(%(namespace)s)), true);

-- look_nowhere_else: have this search path alone until the transaction ends
select set_config('search_path', %(path)s, true);

-- copy: rows as text, under the search path that there is: a scan alone, whose rows are printed as they are found
copy (select {names} from {rows}) to stdout;

-- copy_found: the same; the names in them are printed under one search path, whatever the one that the query is read under
copy (
  select {names} from (select {names} from {rows}) as r where (select set_config('search_path', {path}, true)) is not null
) to stdout;

-- copy_chosen: the same of rows that a person's condition chooses
copy (
  -- The count has all of them found before the first is printed: what the condition calls looks for names where that
  -- person would.
  select {names}
  from (select count(*) over () {columns} from {rows}) as r (c0 {following})
  where case when c0 > 0 then (select set_config('search_path', {path}, true)) is not null end
) to stdout;

-- access: what the connected user may do with some tables; of one that is dropped meanwhile, nothing is known
select c.oid::bigint as relation,
       has_schema_privilege(c.relnamespace, 'usage') as may_enter,
       has_table_privilege(c.oid, 'select') as may_read,
       pg_has_role(c.relowner, 'usage') as is_owner,
       row_security_active(c.oid) as hides_rows
from pg_class c
where c.oid = any(%(oids)s::oid[]) and has_table_privilege(c.oid, 'select') is not null;

-- access_by_name: the same for one table
select c.oid::bigint as relation,
       has_schema_privilege(c.relnamespace, 'usage') as may_enter,
       has_table_privilege(c.oid, 'select') as may_read,
       pg_has_role(c.relowner, 'usage') as is_owner,
       row_security_active(c.oid) as hides_rows
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where n.nspname = %(namespace)s and c.relname = %(name)s and has_table_privilege(c.oid, 'select') is not null;
