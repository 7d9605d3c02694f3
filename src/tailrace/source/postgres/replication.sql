-- slot: what the server knows of one logical slot
select database, plugin, active_pid, confirmed_flush_lsn::text, wal_status, slot_type, current_database()
from pg_replication_slots
where slot_name = %(slot)s;

-- publication: whether a publication sends every kind of change, and partitions as their table
select pubinsert and pubupdate and pubdelete and pubtruncate, pubviaroot
from pg_publication
where pubname = %(publication)s;

-- publication_tables: the tables of a publication
select t.schemaname, t.tablename,
       to_jsonb(t) ->> 'rowfilter' is not null
         or exists (
           select from pg_publication_rel r
           join pg_publication p on p.oid = r.prpubid
           where p.pubname = t.pubname and to_jsonb(r) ->> 'prattrs' is not null
             and r.prrelid = format('%%I.%%I', t.schemaname, t.tablename)::regclass
         ) as is_partial
from pg_publication_tables t
where t.pubname = %(publication)s;

-- server: who this server is, and whether it can stream
select current_database(),
       current_setting('server_version_num')::int,
       current_setting('wal_level'),
       pg_is_in_recovery(),
       (select rolreplication or rolsuper from pg_roles where rolname = current_user)
         or pg_has_role(current_user, (select oid from pg_roles where rolname = 'rds_replication'), 'member');

-- wal_position: where the server's log ends now
select pg_current_wal_insert_lsn()::text, current_setting('wal_block_size')::int;
