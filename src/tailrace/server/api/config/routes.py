"""The history of a connector's configuration, and the way back to a version of it.

The history holds no secret, so a version that is stored again takes those that are stored now, and only where every
other edit could do so: another host, port, user or TLS setting needs the password again.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from tailrace.configuration.properties import MASK
from tailrace.configuration.revisions import Reversion
from tailrace.server.api import models
from tailrace.server.api.config.models import VERSION_MAX, ConfigVersion, RevertPlan, RevertQuery, RevertRequest
from tailrace.server.api.connectors import IfMatch
from tailrace.server.api.parts import GetSupervisor, Name, version_in
from tailrace.server.api.who import Who
from tailrace.server.errors import NotFoundError, RequestConflictError, RequestError
from tailrace.server.supervisor.door import ConnectorHost
from tailrace.server.supervisor.store import StoredConfig

router = APIRouter(prefix="/connectors/{name}/config", tags=["configuration"])


@router.get("/history")
def get_config_history(
    supervisor: GetSupervisor,
    name: Name,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: Annotated[int | None, Query(ge=1, le=VERSION_MAX, description="Only versions before this one.")] = None,
) -> list[ConfigVersion]:
    """Every configuration that was stored, newest first: when, by whom, and what changed."""
    current = supervisor.view(name).version
    # The one before the last shown is what that one is compared with.
    found = supervisor.history(name, before, limit + 1)
    pairs = zip(found, [None, *found], strict=False)
    return [ConfigVersion.of(each, earlier, current) for each, earlier in pairs][::-1][:limit]


@router.post("/revert", response_model=RevertPlan | models.ConnectorInfo)
def revert_config(
    supervisor: GetSupervisor,
    name: Name,
    query: Annotated[RevertQuery, Query()],
    who: Who,
    request: RevertRequest | None = None,
    if_match: IfMatch = None,
) -> RevertPlan | models.ConnectorInfo:
    """Store an earlier configuration again, as a new version. The connector begins again with it."""
    view = supervisor.view(name)
    then = _version(supervisor, name, query.version)
    given = _given(request, then)
    found = Reversion.of(then, view.config, given)
    if query.dry_run:
        return RevertPlan.of(found, view.version, query.version)
    expected = version_in(if_match, "a configuration")
    view, _ = supervisor.put(name, found.config, view.version if expected is None else expected, who)
    return models.info_of(view)


def _version(supervisor: ConnectorHost, name: str, version: int) -> dict[str, str]:
    stored: list[StoredConfig] = [each for each in supervisor.history(name, version + 1, 2) if each.version == version]
    if not stored:
        raise NotFoundError(
            f"connector {name} had no configuration {version}", f"GET /connectors/{name}/config/history"
        )
    config = stored[-1].config
    if config is None:
        message = f"of configuration {version} nothing is kept: the connector of then was removed"
        raise RequestConflictError(message, "choose a later version")
    return dict(config)


def _given(request: RevertRequest | None, then: dict[str, str]) -> dict[str, str]:
    given = request.secrets if request is not None else {}
    for key, value in given.items():
        if then.get(key) != MASK:
            raise RequestError(f"{key[:200]} is no secret that configuration holds masked", "leave it out")
        if value == MASK:
            raise RequestError(f"{key[:200]} is given as its mask", "give the secret itself")
    return given
