-- is_encrypted: whether what we send and receive is encrypted by GSSAPI
select coalesce(bool_or(encrypted), false) from pg_catalog.pg_stat_gssapi where pid = pg_catalog.pg_backend_pid();
