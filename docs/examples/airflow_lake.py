"""An Airflow DAG that waits until a lake has what was committed, and then reads one cut in every task.

    connection "tailrace":  http, the server's host and port, its token as the password
    variable "lake":        the folder of the lake, as the workers see it

The sensor asks `GET /connectors/NAME/cuts/newest?at_least=…`. It answers as soon as a published cut has everything up
to there, and hands the position of this cut to the tasks. Each of them reads the lake as of it, on whatever worker and
however late, so no task sees a commit that another one does not.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import httpx
from airflow.sdk import BaseHook, BaseSensorOperator, PokeReturnValue, Variable, dag, task

NOT_YET = (404, 408)
"""Nothing is published yet, or not everything up to there."""


class LakeSensor(BaseSensorOperator):
    """Succeeds when the lake has a commit. Its result is the position of the cut that has it."""

    template_fields = ("connector", "at_least")

    def __init__(self, *, connector: str, at_least: str = "now", server: str = "tailrace", **more: Any) -> None:
        """`at_least` is a position of the source, such as an application has got from
        `select pg_current_wal_insert_lsn()` after its commit, or `now`."""
        super().__init__(**more)
        self.connector = connector
        self.at_least = at_least
        self.server = server

    def poke(self, context: Any) -> PokeReturnValue:
        place = BaseHook.get_connection(self.server)
        headers = {"authorization": f"Bearer {place.password}"} if place.password else {}
        answer = httpx.get(
            f"{place.schema or 'http'}://{place.host}:{place.port or 8083}/connectors/{self.connector}/cuts/newest",
            params={"at_least": self.at_least, "wait": 20},
            headers=headers,
            timeout=60,
        )
        if answer.status_code in NOT_YET:
            return PokeReturnValue(is_done=False)
        answer.raise_for_status()
        return PokeReturnValue(is_done=True, xcom_value=answer.json()["position"])


@dag(schedule="@hourly", start_date=datetime(2026, 1, 1), catchup=False)
def orders_report() -> None:
    # Between two questions the sensor takes no worker.
    cut = LakeSensor(
        task_id="lake_is_there", connector="shop", mode="reschedule", poke_interval=30, timeout=timedelta(hours=1)
    ).output

    @task
    def count(table: str, position: str) -> int:
        import duckdb

        import tailrace

        with duckdb.connect() as connection:
            lake = tailrace.cut(connection, Variable.get("lake"), as_of=position)
            (found,) = lake.sql(f"select count(*) from {table}").fetchone()
            return int(found)

    @task
    def report(orders: int, customers: int) -> None:
        print(f"{orders} orders of {customers} customers, as of one commit")

    report(count.override(task_id="orders")("orders", cut), count.override(task_id="customers")("customers", cut))


orders_report()
