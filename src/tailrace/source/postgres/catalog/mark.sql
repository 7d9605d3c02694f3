-- mark: one text for all row versions of the catalogs that a look at tables reads
with tables as (
    select oid, xmin from pg_catalog.pg_class
    where oid >= 16384 and relpersistence <> 't' and relkind in ('r', 'p', 'c', 'f', 'v', 'm')
), versions (catalog, version, place) as (
    select 1, xmin, oid::bigint from tables
    union all
    select 2, a.xmin, a.attrelid::bigint << 12 | a.attnum
    from tables join pg_catalog.pg_attribute a on a.attrelid = tables.oid where a.attnum > 0
    union all
    select 3, d.xmin, d.oid::bigint from tables join pg_catalog.pg_attrdef d on d.adrelid = tables.oid
    union all
    select 4, i.xmin, i.indexrelid::bigint from tables join pg_catalog.pg_index i on i.indrelid = tables.oid
    union all
    select 5, c.xmin, c.oid::bigint from tables join pg_catalog.pg_constraint c on c.conrelid = tables.oid
    union all
    select 6, xmin, inhrelid::bigint << 12 | inhseqno from pg_catalog.pg_inherits
    union all
    select 7, xmin, oid::bigint from pg_catalog.pg_type where oid >= 16384 and typtype <> 'c' and typelem = 0
    union all
    select 8, xmin, oid::bigint from pg_catalog.pg_enum
    union all
    select 9, xmin, oid::bigint from pg_catalog.pg_namespace where nspname !~ '^pg_(toast_)?temp_'
    union all
    select 10, xmin, oid::bigint from pg_catalog.pg_publication
    union all
    select 11, xmin, oid::bigint from pg_catalog.pg_publication_rel
    union all
    select 12, xmin, oid::bigint from pg_catalog.pg_policy
    union all
    select 13, xmin, roleid::bigint << 32 | member::bigint from pg_catalog.pg_auth_members
    union all
    select 14, xmin, oid::bigint from pg_catalog.pg_extension
    union all
    select 15, '0'::xid, rolsuper::int * 4 + rolbypassrls::int * 2 + rolreplication::int
    from pg_catalog.pg_roles where rolname = current_user
)
select coalesce(string_agg(catalog || ':' || number || ':' || total, ' ' order by catalog), '')
from (
    select catalog, count(*) as number, sum(hashint8extended(place, version::text::bigint)) as total
    from versions group by catalog
) totals;

-- namespaces_mark: the same of the namespaces that publications send, where the server has such
select '16:' || count(*) || ':' || coalesce(sum(hashint8extended(oid::bigint, xmin::text::bigint)), 0)
from pg_catalog.pg_publication_namespace;
