"""Is it there, does it get somewhere, and how much: for probes and for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from tailrace.server.api.parts import GetParts
from tailrace.server.health import why_not_progressing

CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8; escaping=underscores"

router = APIRouter(tags=["health"])


class Live(BaseModel):
    status: str = "live"


class Health(BaseModel):
    """KIP-1017's words."""

    status: str = "healthy"
    message: str = "Worker has completed startup and is ready to handle requests."


class Ready(BaseModel):
    """Whether every connector that is wanted gets somewhere."""

    status: str = Field(description="`ready` or `not ready`.")
    not_progressing: dict[str, str] = Field(description="Connectors that should get further and do not, and why.")


@router.get("/health")
async def get_health() -> Health:
    """The server answers, as Kafka Connect says it. Needs no token."""
    return Health()


@router.get("/health/live")
async def get_liveness() -> Live:
    """The server answers. Needs no token."""
    return Live()


@router.get("/health/ready", responses={503: {"model": Ready, "description": "A connector does not get further."}})
def get_readiness(parts: GetParts) -> Ready:
    """Ready means progressing: every connector that is to run has a run, and gets further when it has something to
    do."""
    board = parts.board
    found = {
        view.name: why_not_progressing(view, board.of(view.name), board.now()) for view in parts.supervisor.views()
    }
    stuck = {name: why for name, why in found.items() if why is not None}
    answer = Ready(status="not ready" if stuck else "ready", not_progressing=stuck)
    return JSONResponse(answer.model_dump(), 503) if stuck else answer  # type: ignore[return-value]


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def get_metrics(parts: GetParts) -> Response:
    """All figures, in Prometheus's text."""
    return Response(parts.metrics.text(), media_type=CONTENT_TYPE)
