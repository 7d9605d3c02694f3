-- A database that nobody designed for being copied. Every oddity here once broke a copy, or might.

-- Empty, keyless, nearly nothing.
create table empty (id int primary key, v text);
create table no_columns ();
insert into no_columns default values;
create table keyless (v text);
insert into keyless values ('one'), ('one');
create table lines (at timestamptz, "tailrace" float8, place text, big text);
alter table lines alter big set storage external;
alter table lines replica identity full;
insert into lines select null, v::float8, null, case when n > 2 then repeat('x', 3000) end
    from unnest(array['0', '-0', 'NaN', null]) v, generate_series(1, 3) n;
create table only_key (id uuid primary key);
insert into only_key select gen_random_uuid() from generate_series(1, 50);

-- Names.
create schema "odd schema";
create table "odd schema"."ta`b""le.with 'all'" ("id ` "" . '" int primary key, "unit price" numeric(8,2), "a,b;{}()=" text);
insert into "odd schema"."ta`b""le.with 'all'" select n, n * 1.5, 'v' || n from generate_series(1, 20) n;
create table "größe_über_straße_完全な名前_это_шестьдесят" ("schlüssel" int primary key, "значение" text);
insert into "größe_über_straße_完全な名前_это_шестьдесят" values (1, 'ä'), (2, '完全');
create schema audit;
create table orders (id int primary key, v text);
insert into orders values (1, 'public');
create table audit."public.orders" (id int primary key, v text);
insert into audit."public.orders" values (1, 'audit');
create schema archive;
create table archive."Orders" (id int primary key, v text);
insert into archive."Orders" values (1, 'archive');
create table twins (id int primary key);
create table "Twins" (id int primary key);
create table clashing_columns (id int primary key, a int, "A" int);
create table ours (_key int, _deleted boolean, _from text, _fresh text, _part int, _origin text, _op text, _seq int,
                   _pos int, _ordinal int, _xid int, _commit_ts timestamptz, _before text, _unchanged text,
                   primary key (_key, _seq));
insert into ours (_key, _seq, _from, _op) select n, n, 'f' || n, 'd' from generate_series(1, 20) n;
create table "select" ("from" int primary key, "where" text, "group" int);
insert into "select" values (1, 'x', 1), (2, null, null);

-- Keys.
create table floats (id float8 primary key, v text);
insert into floats values ('-0', 'minus'), ('NaN', 'nan'), ('Infinity', 'inf'), (1.5, 'x');
create table composite_key (a text, b timestamptz, c numeric, primary key (c, b, a));
insert into composite_key values ('x', '2024-01-01', 1.0), ('x', '2024-01-01', 2.00), ('', '1999-12-31 23:59:59.999999', -1);
create table computed_key (a int, b int generated always as (a % 3) stored, primary key (a, b));
insert into computed_key select n from generate_series(1, 10) n;
create table by_index (id int, code text not null, v text);
create unique index by_code on by_index (code);
alter table by_index replica identity using index by_code;
insert into by_index select n, 'c' || n, 'v' from generate_series(1, 20) n;
create table full_identity (id int primary key, big text, v int);
alter table full_identity replica identity full;
insert into full_identity select n, repeat(md5(n::text), 300), n from generate_series(1, 20) n;
create table deferred (id int primary key deferrable initially deferred, v int);
create table deferred_full (id int primary key deferrable initially deferred, v int);
alter table deferred_full replica identity full;
insert into deferred_full select n, n from generate_series(1, 10) n;

-- Kinds.
create unlogged table unlogged (id int primary key);
create view a_view as select * from orders;
create materialized view a_matview as select * from orders;
create table parent (id int primary key, v text);
create table child (extra int, primary key (id)) inherits (parent);
insert into parent values (1, 'parent');
insert into child values (2, 'child', 5);
create table parted (id int, day date, v text, primary key (id, day)) partition by range (day);
create table parted_1 partition of parted for values from ('2024-01-01') to ('2024-02-01');
create table parted_2 partition of parted for values from ('2024-02-01') to ('2024-03-01') partition by list (id);
create table parted_2a partition of parted_2 for values in (1, 2, 3);
create table parted_2b partition of parted_2 default;
insert into parted select n % 5, '2024-01-01'::date + n, 'v' || n from generate_series(0, 50) n;

-- Values.
create type mood as enum ('sad', 'it''s "ok", {really}', '');
create domain positive as int check (value > 0);
create type pair as (a int, b text);
create table every_value (
  id int primary key, b boolean, s smallint, i bigint, f real, d double precision, n numeric(38,10), free numeric,
  t text, c char(5), vc varchar(10), by bytea, da date, ti time, tz timetz, ts timestamp, tt timestamptz, iv interval,
  u uuid, j json, jb jsonb, m mood, ms mood[], p positive, pr pair, prs pair[], ai int[], at text[][], r int4range,
  ip inet, ci cidr, ma macaddr, po point, bi bit(3), vb varbit, mo money, ts1 timestamp(3), o oid, tsv tsvector);
insert into every_value values (1);
insert into every_value values (2, true, -32768, -9223372036854775808, '-0', '1e-320', '9999999999999999999999999999.0123456789',
  '1e-30', E'line\nbreak\ttab "quote" \\ , ;', 'ab', 'ünï', '\x00ff', '0001-01-01', '24:00:00', '12:00:00+02', '0001-01-01',
  '9999-12-31 23:59:59.999999+00', '-1 year 2 mons -3 days 04:05:06.789', gen_random_uuid(), '{"a": 1, "a": 2}', '{"b": [null]}',
  'it''s "ok", {really}', array['', 'sad']::mood[], 7, (1, 'x,"y'), array[(1, null), (null, '')]::pair[],
  '{1,null,-3}', '{{a,"b,c"},{null,""}}', '[1,5)', '::1', '10.0.0.0/8', '08:00:2b:01:02:03', '(1,2)', '101', '1', 12.34,
  '2024-02-29 01:02:03.004', 4294967295, 'a fat cat');
insert into every_value (id, t, by, jb) values (3, repeat('x', 1000000), decode(repeat('ff', 500000), 'hex'), '{}');
insert into every_value (id, t) values (4, ''), (5, null), (6, E'\u00a0\u2028'), (7, 'null'), (8, '\N');
create table infinite (id int, at timestamptz, primary key (id, at));
insert into infinite values (1, 'infinity');
create table unbounded (id int primary key, at timestamptz, days date[]);
insert into unbounded values (1, 'infinity', '{-infinity}'), (2, '2024-05-06 07:08:09+00', '{2024-05-06}');
do $$ begin execute 'create table wide (id int primary key, ' || (select string_agg(format('c%s int', n), ', ') from generate_series(1, 400) n) || ')'; end $$;
insert into wide (id, c1, c400) values (1, 1, 400);
create table toasted (id int primary key, big text, v int);
alter table toasted alter big set storage external;
insert into toasted select n, repeat(md5(n::text), 300), 0 from generate_series(1, 20) n;
create table moved (id int primary key, big text);
alter table moved alter big set storage external;
insert into moved select n, repeat(md5(n::text), 300) from generate_series(1, 20) n;

-- Definitions that will move.
create table followed (id int primary key, v int, c text, gone int);
insert into followed values (1, 1, 'a', 1), (2, 2, 'b', 2), (3, 3, 'c', 3);
create table rewritten (id int primary key, v int, c text, g int generated always as (v * 2) stored);
insert into rewritten values (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c');
create table dropped (id int primary key);
insert into dropped values (1);
create table replaced (id int primary key, v text);
insert into replaced values (1, 'old'), (2, 'old');
create table renamed (id int primary key, v text);
insert into renamed values (1, 'x');
create schema moving;
create table moving.inside (id int primary key, v text);
insert into moving.inside values (1, 'x');
