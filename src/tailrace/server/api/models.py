"""What the Connect API takes and gives, in Kafka Connect's own words."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tailrace.configuration.reading import redacted
from tailrace.server.supervisor.lifecycle import Target
from tailrace.server.supervisor.supervisor import ConnectorView

TYPE = "source"
TASK = 0
"""A connector is one task: a source is read by one."""


class ErrorMessage(BaseModel):
    """The body of every answer that is an error."""

    error_code: int
    message: str


class TaskId(BaseModel):
    connector: str
    task: int


class ConnectorInfo(BaseModel):
    """A connector's configuration, its secrets left out."""

    name: str
    config: dict[str, str]
    tasks: list[TaskId]
    type: str = TYPE


class PartState(BaseModel):
    """The state of a connector."""

    state: str
    worker_id: str
    trace: str | None = None


class TaskState(PartState):
    """The state of a task."""

    id: int = TASK


class ConnectorStateInfo(BaseModel):
    name: str
    connector: PartState
    tasks: list[TaskState]
    type: str = TYPE


class TaskInfo(BaseModel):
    id: TaskId
    config: dict[str, str]


def _upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else value


class CreateConnector(BaseModel):
    """A new connector."""

    model_config = ConfigDict(extra="ignore")

    name: str = Field(examples=["shop"])
    config: dict[str, Any] = Field(
        examples=[{"database.hostname": "127.0.0.1", "database.user": "ann", "database.dbname": "shop"}]
    )
    initial_state: Annotated[Target | None, BeforeValidator(_upper)] = None


class ServerInfo(BaseModel):
    version: str
    commit: str
    kafka_cluster_id: str


def info_of(view: ConnectorView) -> ConnectorInfo:
    return ConnectorInfo(name=view.name, config=redacted(view.config), tasks=task_ids(view))


def status_of(view: ConnectorView, worker_id: str) -> ConnectorStateInfo:
    part = {"state": view.state, "worker_id": worker_id, "trace": view.trace}
    tasks = [TaskState.model_validate(part) for _ in task_ids(view)]
    return ConnectorStateInfo(name=view.name, connector=PartState.model_validate(part), tasks=tasks)


def task_ids(view: ConnectorView) -> list[TaskId]:
    """None once it is stopped."""
    return [] if view.state == Target.STOPPED else [TaskId(connector=view.name, task=TASK)]
