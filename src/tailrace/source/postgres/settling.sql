-- writers: who may have written to these tables, or to parts of them, in a transaction that is still open
select distinct locks.virtualtransaction, locks.pid
from unnest(%(relations)s::oid[]) as wanted (relation)
cross join lateral (
    select wanted.relation as part
    union
    select relid from pg_partition_tree(wanted.relation)
) as parts
join pg_locks as locks
    on locks.relation = parts.part
    and locks.database = (select oid from pg_database where datname = current_database())
where locks.locktype = 'relation'
    and locks.granted
    and locks.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock');
