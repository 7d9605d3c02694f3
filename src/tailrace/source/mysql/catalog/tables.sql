-- tables: every table that is no view, with what it is and about how large
select table_schema, table_name, table_type, coalesce(engine, ''), coalesce(table_rows, 0), coalesce(avg_row_length, 0)
from information_schema.tables
where table_schema not in ('mysql', 'sys', 'performance_schema', 'information_schema')
  and table_type in ('BASE TABLE', 'SYSTEM VERSIONED')
order by table_schema, table_name;

-- columns: every column, in the order of its table
select table_schema, table_name, column_name, data_type, column_type, character_set_name
from information_schema.columns
where table_schema not in ('mysql', 'sys', 'performance_schema', 'information_schema')
order by table_schema, table_name, ordinal_position;

-- keys: the columns of every primary key, in the order of the key
select table_schema, table_name, column_name
from information_schema.statistics
where index_name = 'PRIMARY'
  and table_schema not in ('mysql', 'sys', 'performance_schema', 'information_schema')
order by table_schema, table_name, seq_in_index;

-- cascades: the tables whose rows the server changes when those of others change
select distinct constraint_schema, table_name, constraint_name
from information_schema.referential_constraints
where delete_rule in ('CASCADE', 'SET NULL', 'SET DEFAULT') or update_rule in ('CASCADE', 'SET NULL', 'SET DEFAULT')
order by constraint_schema, table_name, constraint_name;
