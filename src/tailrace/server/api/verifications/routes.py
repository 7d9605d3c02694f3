"""`tailrace verify` over REST: a lake compared with its source, in the background."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from tailrace.server.api.parts import GetSupervisor, Name
from tailrace.server.api.verifications.models import VerificationDetail, VerificationInfo, VerificationRequest
from tailrace.server.api.who import Who
from tailrace.server.verifications.verifications import VerificationOrder

router = APIRouter(prefix="/connectors/{name}/verifications", tags=["verifications"])
Number = Annotated[int, Path(ge=1, lt=2**31, description="A verification's.")]


@router.post("", status_code=202, responses={429: {"description": "Too many verifications at once."}})
def begin_verification(
    supervisor: GetSupervisor, name: Name, who: Who, request: VerificationRequest | None = None
) -> VerificationInfo:
    """Compare every row of the lake with the source, at one commit, while both are written to."""
    asked = request or VerificationRequest.default()
    order = VerificationOrder(name, tuple(asked.tables), asked.keys_max, who)
    underway = supervisor.own.verifications.begin(supervisor, order)
    return VerificationInfo(**VerificationInfo.fields_of(underway.record, underway))


@router.get("")
def list_verifications(supervisor: GetSupervisor, name: Name) -> list[VerificationInfo]:
    """The last 20, newest first."""
    home, verifications = supervisor.lake_home(name), supervisor.own.verifications
    underway = verifications.underway(name)
    return [VerificationInfo(**VerificationInfo.fields_of(each, underway)) for each in verifications.all(name, home)]


@router.get("/{number}")
def get_verification(
    supervisor: GetSupervisor,
    name: Name,
    number: Number,
    offset: Annotated[int, Query(ge=0, lt=2**31, description="Leave out the first tables.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000, description="How many tables.")] = 1000,
) -> VerificationDetail:
    """One verification, table by table, what is worst first; with the keys that differ."""
    home, verifications = supervisor.lake_home(name), supervisor.own.verifications
    return VerificationDetail.of(verifications.find(name, home, number), verifications.underway(name), offset, limit)


@router.post("/{number}/stop", status_code=202, response_class=Response)
def stop_verification(supervisor: GetSupervisor, name: Name, number: Number) -> Response:
    """End it soon, without a verdict."""
    supervisor.own.verifications.find(name, supervisor.lake_home(name), number)
    supervisor.own.verifications.stop(name, number)
    return Response(status_code=202)
