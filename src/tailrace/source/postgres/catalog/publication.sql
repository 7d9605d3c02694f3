-- publication_names: every publication of this database
select pubname
from pg_publication;

-- publication: what a publication sends: inserts and truncates, updates, deletes, partitions as their table, …
select pubinsert and pubtruncate, pubupdate, pubdelete, coalesce((to_jsonb(p) ->> 'pubviaroot')::boolean, true),
       coalesce(to_jsonb(p) ->> 'pubgencols' = 's', false)
from pg_publication p
where pubname = %(publication)s;

-- publication_tables: the tables that a publication names; the server's own view waits for whoever locks one
with recursive named(relation, is_partial, via_root) as (
  select r.prrelid, to_jsonb(r) ->> 'prqual' is not null or to_jsonb(r) ->> 'prattrs' is not null,
         (to_jsonb(p) ->> 'pubviaroot')::boolean
  from pg_publication p
  join pg_publication_rel r on r.prpubid = p.oid
  where p.pubname = %(publication)s
  union
  select i.inhrelid, named.is_partial, named.via_root
  from named
  join pg_class c on c.oid = named.relation and c.relkind = 'p' and not named.via_root
  join pg_inherits i on i.inhparent = c.oid and coalesce(to_jsonb(i) ->> 'inhdetachpending', 'false') = 'false'
)
select n.nspname, c.relname, named.is_partial
from named
join pg_class c on c.oid = named.relation and (c.relkind = 'r' or named.via_root)
join pg_namespace n on n.oid = c.relnamespace
union all
select n.nspname, c.relname, false
from pg_publication p
join pg_class c on c.relpersistence = 'p' and case (to_jsonb(p) ->> 'pubviaroot')::boolean
  when true then c.relkind in ('r', 'p') and not c.relispartition
  when false then c.relkind = 'r'
  else c.relkind = 'r' and not c.relispartition end
join pg_namespace n on n.oid = c.relnamespace and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
where p.pubname = %(publication)s and p.puballtables;

-- sent_how: whether one of some publications sends generated columns, and one partitions as tables of their own
select coalesce(bool_or(to_jsonb(p) ->> 'pubgencols' = 's'), false),
       coalesce(bool_or(to_jsonb(p) ->> 'pubviaroot' = 'false'), false)
from pg_publication p
where p.pubname = any(%(publications)s);

-- sent_parts: the tables of which some publications list columns or have a condition for rows
select r.prrelid::bigint, r.prattrs::int2[], pg_get_expr(r.prqual, r.prrelid)
from pg_publication p
join pg_publication_rel r on r.prpubid = p.oid
where p.pubname = any(%(publications)s) and (r.prattrs is not null or r.prqual is not null);

-- publication_namespaces: the tables that a publication sends because it sends all of their namespace
with recursive named(relation, via_root) as (
  select c.oid, p.pubviaroot
  from pg_publication p
  join pg_publication_namespace s on s.pnpubid = p.oid
  join pg_class c on c.relnamespace = s.pnnspid and c.relkind in ('r', 'p')
  where p.pubname = %(publication)s
  union
  select i.inhrelid, named.via_root
  from named
  join pg_class c on c.oid = named.relation and c.relkind = 'p' and not named.via_root
  join pg_inherits i on i.inhparent = c.oid and coalesce(to_jsonb(i) ->> 'inhdetachpending', 'false') = 'false'
)
select n.nspname, c.relname, false
from named
join pg_class c on c.oid = named.relation and c.relpersistence = 'p'
  and case when named.via_root then not c.relispartition else c.relkind = 'r' end
join pg_namespace n on n.oid = c.relnamespace;
