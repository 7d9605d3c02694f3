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
