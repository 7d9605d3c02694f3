-- slot: what the server knows of one logical slot
select database, plugin, active_pid, confirmed_flush_lsn::text, to_jsonb(s) ->> 'wal_status', slot_type, current_database(),
       restart_lsn::text,
       coalesce(
         to_jsonb(s) ->> 'invalidation_reason',
         -- Postgres 16 calls every slot so that it gave up. A primary gives one up for its WAL alone.
         case when (to_jsonb(s) ->> 'conflicting')::boolean and pg_is_in_recovery() then 'conflict' end
       ),
       (to_jsonb(s) ->> 'safe_wal_size')::bigint
from pg_replication_slots s
where slot_name = %(slot)s;

-- retained: the bytes of WAL that a slot holds, and how many more it may hold before the server gives it up
select pg_wal_lsn_diff(
         case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, restart_lsn
       )::bigint,
       (to_jsonb(s) ->> 'safe_wal_size')::bigint
from pg_replication_slots s
where slot_name = %(slot)s and restart_lsn is not null;

-- slots_here: the logical slots of this database, and which process reads from each
select slot_name, active_pid
from pg_replication_slots
where database = current_database() and slot_type = 'logical' and not temporary;

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
