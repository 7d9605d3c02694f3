-- sessions: who holds up the command of one backend, oldest first; on request with all who were writing when it began
select pid, coalesce(usename, backend_type), coalesce(datname, 'no database'), xact_start::timestamptz(0)::text,
       query_start::timestamptz(0)::text, left(regexp_replace(query, '\s+', ' ', 'g'), 60)
from pg_stat_activity
where pid = any(pg_blocking_pids(%(pid)s))
  or (%(with_older_writers)s and backend_xid is not null and pid not in (%(pid)s, pg_backend_pid())
      and xact_start < (select query_start from pg_stat_activity where pid = %(pid)s))
order by xact_start
limit 5;

-- prepared: the same for prepared transactions
select gid, owner, database, prepared::timestamptz(0)::text
from pg_prepared_xacts
where (0 = any(pg_blocking_pids(%(pid)s)) and transaction in (select transactionid from pg_locks where pid = %(pid)s))
  or (%(with_older_writers)s and prepared < (select query_start from pg_stat_activity where pid = %(pid)s))
order by prepared
limit 5;

-- lockers: who keeps a table or a partition of it from being read, or waits to do so, oldest first
with tree
select distinct a.pid, coalesce(a.usename, a.backend_type), a.query_start::timestamptz(0)::text,
       left(regexp_replace(a.query, '\s+', ' ', 'g'), 60)
from tree
join pg_locks l on l.relation = tree.part
join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'relation' and l.mode = 'AccessExclusiveLock'
  and l.database = (select oid from pg_database where datname = current_database())
order by 3
limit 5;
