-- view: the transactions that a state shows on a primary; how far the log was replayed before that on a standby
select txid_current_snapshot()::text, case when pg_is_in_recovery() then pg_last_wal_replay_lsn()::text end;

-- export: the name under which other sessions join this transaction's state
select pg_export_snapshot();

-- received: how far a standby has replayed and has received the primary's log
select pg_last_wal_replay_lsn()::text, pg_last_wal_receive_lsn()::text;
