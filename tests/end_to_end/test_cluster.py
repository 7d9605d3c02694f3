"""`sync` and `verify` on a Spark cluster whose workers share nothing with us but a folder."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from tests.cluster import JVM, WORKERS, bare_python, cluster
from tests.integration.lake.equality import assert_published
from tests.journey import run

from tailrace.log.reader import LogReader
from tailrace.settings import TaskSizes

BEGINNING = """
create table parcels (id bigint primary key, at timestamptz default now(), weight numeric(10,2), note text, big text);
alter table parcels alter big set storage external;
insert into parcels
  select n, '2024-01-01', n / 7.0, repeat(md5(n::text), 24), case when n % 1000 = 0 then repeat(md5(n::text), 200) end
  from generate_series(1, 90000) n;
create table few (id int primary key, v text);
insert into few select n, 'v' || n from generate_series(1, 100) n;
"""
ONE_TRANSACTION = """
insert into parcels select n, now(), n, repeat(md5(n::text), 90), null from generate_series(90001, 110000) n;
update parcels set note = repeat(md5(note), 115) where id % 3 = 0;
update parcels set id = id + 1000000 where id % 1000 = 0;
delete from parcels where id % 10 = 1;
update few set v = 'changed' where id < 10;
"""


def execute(dsn: str, script: str) -> None:
    """In one transaction."""
    with psycopg.connect(dsn) as conn:
        conn.execute(script)


@pytest.mark.timeout(400)
def test_copy_large_publish_and_verify_run_on_workers_that_have_only_our_packages_and_the_folder(
    database: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    execute(database, BEGINNING)
    with cluster(tmp_path / "cluster") as master:
        options = ["--spark-master", master, "--spark-conf", "spark.executor.memory=768m"]
        options += ["--spark-conf", f"spark.executor.extraJavaOptions={JVM}"]
        options += ["--spark-conf", f"spark.pyspark.python={bare_python(tmp_path / 'python', with_packages=True)}"]
        copied = run("sync", database, str(lake), "--once", *options)
        assert (copied.returncode, copied.stderr) == (0, ""), copied
        assert_published(database, lake, ["public.parcels", "public.few"])
        before = LogReader(lake / "_tailrace" / "log").head.seq

        execute(database, ONE_TRANSACTION)
        verified = run("verify", database, str(lake), *options)
        assert verified.returncode == 0, verified
        reader = LogReader(lake / "_tailrace" / "log")
        assert reader.bytes_between(before, reader.head.seq) > TaskSizes().fold_bytes, "or one task would do it"
        assert_published(database, lake, ["public.parcels", "public.few"])
    for number in range(WORKERS):
        told = [path.read_text() for path in tmp_path.glob(f"cluster/worker-{number}/*/*/stderr")]
        assert sum(text.count("Finished task") for text in told) > 5, "both workers worked"
