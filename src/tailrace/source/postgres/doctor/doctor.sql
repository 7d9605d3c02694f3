-- server: what the server is and how much it has left for us
select current_setting('server_version') as version,
       current_setting('server_version_num')::int as version_num,
       current_setting('wal_level') as wal_level,
       pg_is_in_recovery() as is_standby,
       current_setting('hot_standby_feedback') as standby_feedback,
       getdatabaseencoding() as encoding,
       current_setting('max_replication_slots')::int as slots_max,
       (select count(*) from pg_replication_slots)::int as slots_used,
       current_setting('max_wal_senders')::int as senders_max,
       (select count(*) from pg_stat_replication)::int as senders_used,
       coalesce(current_setting('max_slot_wal_keep_size', true), '-1') as slot_wal_keep,
       coalesce(current_setting('idle_replication_slot_timeout', true), '0') as slot_idle_timeout,
       current_setting('wal_sender_timeout') as sender_timeout,
       (select setting::int from pg_settings where name = 'wal_sender_timeout') as sender_timeout_ms;

-- role: what the connected user may do
select current_user as name,
       current_database() as database,
       (select rolreplication or rolsuper from pg_roles where rolname = current_user) as may_replicate,
       exists (select from pg_roles where rolname = 'rds_replication') as is_rds,
       exists (
         select from pg_roles where rolname = 'rds_replication' and pg_has_role(current_user, oid, 'member')
       ) as has_rds_replication,
       has_database_privilege(current_database(), 'create') as may_create;

-- connections: the limits for this user's ordinary connections, -1 for none, and how many others are there already
with me as (
  select oid, rolsuper, rolconnlimit from pg_roles where rolname = session_user
),
there as (
  select usesysid, datname
  from pg_stat_activity
  where datid is not null and pid <> pg_backend_pid() and coalesce(backend_type, 'client backend') = 'client backend'
    -- What kind a stranger's process is, few may see; one of the server's own, such as autovacuum's, has no user.
    and usesysid is not null and pid not in (select pid from pg_stat_replication)
),
kept as (
  select case when rolsuper then 0 else
           current_setting('superuser_reserved_connections')::int
           + coalesce(current_setting('reserved_connections', true)::int, 0)
         end as reserved
  from me
)
select case when rolsuper then -1 else rolconnlimit end as role_limit,
       (select count(*) from there where usesysid = me.oid)::int as role_used,
       case when rolsuper then -1 else datconnlimit end as database_limit,
       (select count(*) from there where there.datname = current_database())::int as database_used,
       current_setting('max_connections')::int - reserved as server_limit,
       (select count(*) from there)::int as server_used,
       reserved
from me, kept, pg_database
where pg_database.datname = current_database();

-- publications: the names of all publications
select pubname from pg_publication order by pubname;

-- setting: one of the server's settings; nothing where it has none of that name
select current_setting(%(name)s, true);

-- physical_slots: the slots that standbys read from
select slot_name from pg_replication_slots where slot_type = 'physical' order by slot_name;

-- idle_slots: slots that no process reads from, and how much of the server's log they hold back
select s.slot_name as name,
       to_jsonb(s) ->> 'wal_status' as wal_status,
       pg_size_pretty(pg_wal_lsn_diff(
         case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, s.restart_lsn
       )) as held
from pg_replication_slots s
where not s.active
order by s.restart_lsn;
