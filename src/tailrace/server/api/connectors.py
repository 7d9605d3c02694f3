"""Kafka Connect's `/connectors`: its paths, its status codes, its bodies.

What is asked all the time and waits for nothing is `async`: it is answered without a thread, however many are busy.
"""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Body, Header, Query, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from tailrace.configuration.reading import normalised, redacted
from tailrace.server.api import models
from tailrace.server.api.parts import GetParts, GetSupervisor, Name, ServerParts, version_in
from tailrace.server.api.progress.models import ConnectorProgress
from tailrace.server.api.progress.progress import progress_of
from tailrace.server.api.who import Who
from tailrace.server.errors import ForbiddenError, NotFoundError
from tailrace.server.supervisor.door import ConnectorHost
from tailrace.server.supervisor.home import require_name
from tailrace.server.supervisor.lifecycle import Target
from tailrace.server.supervisor.supervisor import ConnectorView

router = APIRouter(tags=["connectors"])
Config = Annotated[dict[str, Any], Body(description="Properties, each a text.")]
IfMatch = Annotated[
    str | None, Header(description="Only if the configuration is still the one with this ETag; 409 otherwise.")
]


class Expanded(BaseModel):
    """What is known of a connector, as far as it was asked for."""

    status: models.ConnectorStateInfo | None = None
    info: models.ConnectorInfo | None = None
    progress: ConnectorProgress | None = None


@router.get("/connectors", response_model=list[str] | dict[str, Expanded])
async def list_connectors(
    parts: GetParts,
    expand: Annotated[list[str] | None, Query(description="`status`, `info`, `progress`, or several.")] = None,
) -> list[str] | JSONResponse:
    """The names of all connectors; with `expand`, what is known of each."""
    if expand is None:
        return parts.supervisor.names()
    views = parts.supervisor.views()
    if "progress" in expand:
        # Lakes are looked at, which may take a while.
        return JSONResponse(
            await run_in_threadpool(lambda: {each.name: _expanded(parts, each, expand) for each in views})
        )
    return JSONResponse({view.name: _expanded(parts, view, expand) for view in views})


def _expanded(parts: ServerParts, view: ConnectorView, expand: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "status" in expand:
        found["status"] = models.status_of(view, parts.worker_id).model_dump(mode="json", exclude_none=True)
    if "info" in expand:
        found["info"] = models.info_of(view).model_dump(mode="json", exclude_none=True)
    if "progress" in expand:
        found["progress"] = progress_of(parts, view).model_dump(mode="json")
    return found


@router.post("/connectors", status_code=201)
def create_connector(
    supervisor: GetSupervisor, request: models.CreateConnector, response: Response, who: Who
) -> models.ConnectorInfo:
    """Make a connector; it starts at once unless `initial_state` says otherwise."""
    target = request.initial_state or Target.RUNNING
    view = supervisor.create(request.name.strip(), normalised(request.config), target, who)
    return _made(view, response)


@router.get("/connectors/{name}")
async def get_connector(supervisor: GetSupervisor, name: Name, response: Response) -> models.ConnectorInfo:
    """A connector's configuration and tasks."""
    view = supervisor.view(name)
    response.headers["etag"] = _etag(view)
    return models.info_of(view)


@router.delete("/connectors/{name}", status_code=204, response_class=Response)
def delete_connector(
    supervisor: GetSupervisor,
    name: Name,
    who: Who,
    drop_source: Annotated[bool, Query(description="Drop what was made for it at the source too.")] = False,
) -> None:
    """End a connector and forget it. Its lake stays."""
    supervisor.delete(name, drop=drop_source, who=who)


@router.get("/connectors/{name}/config")
def get_connector_config(supervisor: GetSupervisor, name: Name, response: Response) -> dict[str, str]:
    """A connector's configuration, its secrets left out."""
    view = supervisor.view(name)
    response.headers["etag"] = _etag(view)
    return redacted(view.config)


@router.put("/connectors/{name}/config", responses={201: {"model": models.ConnectorInfo}})
def put_connector_config(
    supervisor: GetSupervisor, name: Name, config: Config, response: Response, who: Who, if_match: IfMatch = None
) -> models.ConnectorInfo:
    """Make a connector, or give it another configuration, with which it begins again. A secret that is sent as it was
    shown stays what it was."""
    expected = version_in(if_match, "a configuration")
    view, is_made = supervisor.put(require_name(name), normalised(config), expected, who)
    if is_made:
        response.status_code = 201
        return _made(view, response)
    response.headers["etag"] = _etag(view)
    return models.info_of(view)


@router.patch("/connectors/{name}/config")
def patch_connector_config(
    supervisor: GetSupervisor, name: Name, changes: Config, response: Response, who: Who, if_match: IfMatch = None
) -> models.ConnectorInfo:
    """Change some properties; one that is null is removed."""
    given = normalised({key: value for key, value in changes.items() if value is not None})
    removed = [key for key, value in changes.items() if value is None]
    expected = version_in(if_match, "a configuration")
    view = supervisor.patch(name, {**dict.fromkeys(removed), **given}, expected, who)
    response.headers["etag"] = _etag(view)
    return models.info_of(view)


@router.get("/connectors/{name}/status", response_model_exclude_none=True)
async def get_connector_status(parts: GetParts, name: Name) -> models.ConnectorStateInfo:
    """The state of a connector and of its task."""
    return models.status_of(_status_view(parts.supervisor, name), parts.worker_id)


@router.put("/connectors/{name}/pause", status_code=202, response_class=Response)
def pause_connector(supervisor: GetSupervisor, name: Name) -> Response:
    """Take nothing more from the source and publish nothing, until it is resumed."""
    supervisor.want(name, Target.PAUSED)
    return Response(status_code=202)


@router.put("/connectors/{name}/resume", status_code=202, response_class=Response)
def resume_connector(supervisor: GetSupervisor, name: Name) -> Response:
    """Run again after a pause or a stop."""
    supervisor.want(name, Target.RUNNING)
    return Response(status_code=202)


@router.put("/connectors/{name}/stop", status_code=204, response_class=Response)
def stop_connector(supervisor: GetSupervisor, name: Name) -> None:
    """End its run; its configuration and its lake stay. Its offsets can be edited then."""
    supervisor.want(name, Target.STOPPED)


@router.post(
    "/connectors/{name}/restart",
    status_code=204,
    response_model=None,
    responses={202: {"model": models.ConnectorStateInfo}},
)
def restart_connector(
    parts: GetParts,
    name: Name,
    include_tasks: Annotated[bool, Query(alias="includeTasks")] = False,
    only_failed: Annotated[bool, Query(alias="onlyFailed")] = False,
) -> Response:
    """Begin again: 204, or 202 and the state when tasks are included or only what failed is meant."""
    view = parts.supervisor.restart(name, only_failed=only_failed)
    if not (include_tasks or only_failed):
        return Response(status_code=204)
    status = models.status_of(view, parts.worker_id).model_dump_json(exclude_none=True)
    return Response(status, 202, media_type="application/json")


@router.get("/connectors/{name}/tasks")
def list_tasks(supervisor: GetSupervisor, name: Name) -> list[models.TaskInfo]:
    """Its one task, unless it is stopped."""
    view = supervisor.view(name)
    return [models.TaskInfo(id=each, config=redacted(view.config)) for each in models.task_ids(view)]


@router.get("/connectors/{name}/tasks-config")
def get_tasks_config(supervisor: GetSupervisor, name: Name) -> dict[str, dict[str, str]]:
    """The same, in an older layout of Kafka Connect's."""
    view = supervisor.view(name)
    return {f"{name}-{each.task}": redacted(view.config) for each in models.task_ids(view)}


@router.get("/connectors/{name}/tasks/{task}/status", response_model_exclude_none=True)
async def get_task_status(parts: GetParts, name: Name, task: int) -> models.TaskState:
    """The state of its task."""
    view = _status_view(parts.supervisor, name)
    _require_task(view, task)
    return models.status_of(view, parts.worker_id).tasks[task]


@router.post("/connectors/{name}/tasks/{task}/restart", status_code=204, response_class=Response)
def restart_task(supervisor: GetSupervisor, name: Name, task: int) -> None:
    """Begin again: a connector is one task."""
    _require_task(supervisor.view(name), task)
    supervisor.restart(name)


@router.get("/connectors/{name}/topics")
def list_topics(supervisor: GetSupervisor, name: Name) -> dict[str, dict[str, list[str]]]:
    """The tables of its lake, in the place of topics."""
    lake = supervisor.lake_home(name)
    return {name: {"topics": sorted(map(str, lake.tables.load()))}}


@router.put("/connectors/{name}/topics/reset", status_code=403)
def reset_topics(supervisor: GetSupervisor, name: Name) -> None:
    """Refused: a lake has the tables that it has."""
    supervisor.view(name)
    raise ForbiddenError("Topic tracking reset is disabled.")


def _made(view: ConnectorView, response: Response) -> models.ConnectorInfo:
    response.headers["location"] = f"/connectors/{quote(view.name, safe='')}"
    response.headers["etag"] = _etag(view)
    return models.info_of(view)


def _status_view(supervisor: ConnectorHost, name: str) -> ConnectorView:
    try:
        return supervisor.view(name)
    except NotFoundError:
        raise NotFoundError(f"No status found for connector {name}") from None


def _require_task(view: ConnectorView, task: int) -> None:
    if task not in {each.task for each in models.task_ids(view)}:
        raise NotFoundError(f"Task {view.name}-{task} not found")


def _etag(view: ConnectorView) -> str:
    return f'"{view.version}"'
