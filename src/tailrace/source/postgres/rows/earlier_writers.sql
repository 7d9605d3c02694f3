-- running: the oldest transaction that runs on a standby's primary, and the next after all that have ended
select txid_snapshot_xmin(txid_current_snapshot()), txid_snapshot_xmax(txid_current_snapshot()), pg_is_in_recovery();

-- writers: who may have written to these tables, or to parts of them, in a transaction that is still open
with tree
select distinct locks.virtualtransaction, locks.pid
from tree
join pg_locks as locks
    on locks.relation = tree.part
    and locks.database = (select oid from pg_database where datname = current_database())
where locks.locktype = 'relation'
    and locks.granted
    and locks.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock');
