"""Dagster assets over a lake: one cut for all of them, and a check of how fresh it is.

`cut` is chosen once in a run. Every asset that depends on it reads the lake as of it, in whatever process and however
late, so no two of them see different commits.

    LAKE=./lake dagster dev -f dagster_lake.py
"""

import os
from datetime import timedelta

import dagster as dg
import duckdb

import tailrace

LAKE = os.environ.get("LAKE", "./lake")
BEHIND_MAX = timedelta(minutes=5)


@dg.asset(automation_condition=dg.AutomationCondition.on_cron("*/10 * * * *"))
def cut() -> dg.MaterializeResult[str]:
    """The newest published cut: its position, which is also the version of everything that is read as of it."""
    with duckdb.connect() as connection:
        found = tailrace.cut(connection, LAKE, published=True, register=False)
    metadata = {"transactions": found.seq, "committed": dg.MetadataValue.timestamp(found.commit_time)}
    return dg.MaterializeResult(value=found.text, data_version=dg.DataVersion(found.text), metadata=metadata)


@dg.asset_check(asset=cut)
def is_fresh(cut: str) -> dg.AssetCheckResult:
    """Whether the lake shows what was committed five minutes ago. A source that is quiet is not late."""
    with duckdb.connect() as connection:
        chosen = tailrace.cut(connection, LAKE, as_of=cut, register=False)
        newest = tailrace.cut(connection, LAKE, register=False)
    behind = newest.commit_time - chosen.commit_time
    return dg.AssetCheckResult(passed=behind < BEHIND_MAX, metadata={"seconds_behind": behind.total_seconds()})


@dg.asset(automation_condition=dg.AutomationCondition.eager())
def orders_by_status(cut: str) -> dict[str, int]:
    """How many orders there are in each state."""
    with duckdb.connect() as connection:
        found = tailrace.cut(connection, LAKE, as_of=cut)
        return dict(found.sql("select status, count(*) from orders group by status").fetchall())


@dg.asset(automation_condition=dg.AutomationCondition.eager())
def orders_of_customers(cut: str) -> int:
    """How many orders there are of customers that are there: all of them, because both tables show one commit."""
    with duckdb.connect() as connection:
        found = tailrace.cut(connection, LAKE, as_of=cut)
        join = "select count(*) from orders o join customers c on c.id = o.customer_id"
        return int(found.sql(join).fetchall()[0][0])


defs = dg.Definitions(assets=[cut, orders_by_status, orders_of_customers], asset_checks=[is_fresh])
