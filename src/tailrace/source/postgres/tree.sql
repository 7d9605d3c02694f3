-- tree: some tables, each with itself and all of its partitions
with recursive tree(root, part) as (
  select oid, oid from unnest(%(oids)s::oid[]) as oid
  union all
  select tree.root, i.inhrelid
  from tree
  join pg_class c on c.oid = tree.part and c.relkind = 'p'
  join pg_inherits i on i.inhparent = c.oid and coalesce(to_jsonb(i) ->> 'inhdetachpending', 'false') = 'false'
)
