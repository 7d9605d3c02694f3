-- slot: what the server knows of one logical slot
select database, plugin, active_pid, confirmed_flush_lsn::text, to_jsonb(s) ->> 'wal_status', slot_type, current_database(),
       restart_lsn::text,
       coalesce(
         to_jsonb(s) ->> 'invalidation_reason',
         -- Postgres 16 calls every slot so that it gave up. A primary gives one up for its WAL alone.
         case when (to_jsonb(s) ->> 'conflicting')::boolean and pg_is_in_recovery() then 'conflict' end
       )
from pg_replication_slots s
where slot_name = %(slot)s;

-- slots_here: the logical slots of this database, and which process reads from each
select slot_name, active_pid
from pg_replication_slots
where database = current_database() and slot_type = 'logical' and not temporary;

-- publication_names: every publication of this database
select pubname
from pg_publication;

-- waiting_commits: how many messages a slot would send up to an lsn, and its commits; takes nothing from it
select count(*), array_agg(data) filter (where get_byte(data, 0) = 67)
from pg_logical_slot_peek_binary_changes(
  %(slot)s, %(upto)s::pg_lsn, %(limit)s, 'proto_version', '1', 'publication_names', %(publications)s
);

-- slot_holder: who reads from a slot, and when that client last answered
select a.pid, coalesce(nullif(a.application_name, ''), 'without a name'), coalesce(a.client_addr::text, 'a socket'),
       clock_timestamp(), r.reply_time
from pg_replication_slots s
join pg_stat_activity a on a.pid = s.active_pid
left join pg_stat_replication r on r.pid = s.active_pid
where s.slot_name = %(slot)s;

-- is_at_work: whether a process waits neither for its client nor for something to do
select coalesce(wait_event_type, '') not in ('Client', 'Activity')
from pg_stat_activity
where pid = %(pid)s;

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

-- server: who this server is, and whether it can stream
select current_database(),
       current_setting('server_version_num')::int,
       current_setting('wal_level'),
       pg_is_in_recovery(),
       (select rolreplication or rolsuper from pg_roles where rolname = current_user)
         or pg_has_role(current_user, (select oid from pg_roles where rolname = 'rds_replication'), 'member');

-- is_flushed: whether a primary's log survives a crash up to a position; a standby's always does
select case when pg_is_in_recovery() then true else pg_current_wal_flush_lsn() >= %(position)s::pg_lsn end;

-- take_number: give this transaction a number, so that its end is written down and soon flushed, with all before it
select txid_current();

-- wal_position: where the server's log ends now; on a standby, up to where it has been replayed
select case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end::text,
       current_setting('wal_block_size')::int;
