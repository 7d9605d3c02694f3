"""How far connectors are, now and over time."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Response

from tailrace.server.api.parts import GetParts, Name, ServerParts
from tailrace.server.api.progress.models import ConnectorProgress, FiguresInfo
from tailrace.server.api.progress.progress import progress_of
from tailrace.server.errors import RequestError
from tailrace.server.figures import FIGURES, STEPS
from tailrace.server.moments import microseconds, moment

VALUES_MAX = 1_000_000
"""Of one answer."""

router = APIRouter(tags=["progress"])
Step = Annotated[
    int,
    Query(
        description="Seconds. 1 reaches back a quarter of an hour, 15 a day.", json_schema_extra={"enum": list(STEPS)}
    ),
]
Since = Annotated[datetime | None, Query(description="Not what is older.")]
Chosen = Annotated[list[str] | None, Query(alias="figures", description=f"Some of {', '.join(FIGURES)}; default all.")]


@router.get("/connectors/{name}/progress")
def get_connector_progress(parts: GetParts, name: Name) -> ConnectorProgress:
    """How far a connector is, and what keeps it from getting further."""
    return progress_of(parts, parts.supervisor.view(name))


@router.get("/connectors/{name}/figures", response_model=FiguresInfo)
def get_connector_figures(
    parts: GetParts, name: Name, step: Step = 1, since: Since = None, chosen: Chosen = None
) -> Response:
    """How far a connector was over time, as long as this server runs."""
    parts.supervisor.require(name)
    return _read(parts, [name], step, since, chosen)


@router.get("/figures", response_model=FiguresInfo)
def get_figures(parts: GetParts, step: Step = 15, since: Since = None, chosen: Chosen = None) -> Response:
    """The same for all connectors, on one time axis."""
    return _read(parts, parts.supervisor.names(), step, since, chosen)


def _read(
    parts: ServerParts, names: list[str], step: int, since: datetime | None, chosen: list[str] | None
) -> Response:
    figures = list(dict.fromkeys(chosen or FIGURES))
    strange = [each for each in figures if each not in FIGURES]
    if strange:
        raise RequestError(f"there is no figure {strange[0][:100]}", f"there are {', '.join(FIGURES)}")
    if step not in STEPS:
        raise RequestError(f"there is no step of {step} s", f"there are {' and '.join(map(str, STEPS))}")
    begin = 0.0 if since is None else microseconds(since, "since") / 1e6
    count = parts.figures.count(step, begin) * len(names) * len(figures)
    if count > VALUES_MAX:
        raise RequestError(
            f"these would be {count:,} values, at most {VALUES_MAX:,} are sent",
            "ask for fewer figures, or since a later time",
        )
    found = parts.figures.read(names, figures, step, begin)
    info = FiguresInfo.model_construct(
        step_seconds=step,
        began=moment(round(parts.figures.began * 1e6)),
        times=found.times,
        connectors=found.connectors,
    )
    return Response(info.model_dump_json(), media_type="application/json")
