-- session: the server's own name for this session; no other session has ever had it
select to_hex(trunc(extract(epoch from backend_start))::bigint) || '.' || to_hex(pid)
from pg_stat_activity
where pid = pg_backend_pid();

-- columns: the first three columns of a table, in order: id, type and data
select attname
from pg_attribute
where attrelid = %(table)s::regclass and attnum > 0 and not attisdropped
order by attnum
limit 3;

-- insert: write a watermark
insert into {table} ({id}, {type}, {data}) values (%(id)s, %(type)s, %(text)s);

-- delete: take a watermark away
delete from {table} where {id} = %(id)s;

-- delete_stale: take away what sessions of ours have left that are no more
delete from {table}
where {type} = %(type)s
  and {data}::text like '%%' || %(ours)s || '%%'
  and not exists (
    select from pg_stat_activity
    where strpos({data}::text, %(ours)s || to_hex(trunc(extract(epoch from backend_start))::bigint) || '.' || to_hex(pid) || '"') > 0
  );
