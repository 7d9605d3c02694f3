"""What the history of a configuration looks like, and what a revert would do."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from tailrace.configuration.reading import PropertyCheck
from tailrace.configuration.revisions import ChangeKind, ConfigChange, Reversion, changes_between, concealed
from tailrace.server.hints import in_properties
from tailrace.server.moments import moment
from tailrace.server.supervisor.store import StoredConfig
from tailrace.source.door.property import Verdict

VERSION_MAX = 2**63 - 1


class PropertyChange(BaseModel):
    """One property before and after. Of a secret both are `********`, references included."""

    field: str
    change: ChangeKind
    before: str | None
    after: str | None

    @classmethod
    def of(cls, found: ConfigChange) -> PropertyChange:
        return cls(field=found.field, change=found.change, before=found.before, after=found.after)


class ConfigVersion(BaseModel):
    """A configuration that the connector had from a moment on."""

    version: int = Field(description="As in the ETag of the configuration.")
    time: datetime
    who: str | None = Field(description="Who stored it; null where that was not noted.")
    is_current: bool
    changes: list[PropertyChange] = Field(description="Against the version before.")
    config: dict[str, str] | None = Field(
        description="Secrets are `********`, references to them too. Null: a connector of this name was removed."
    )

    @classmethod
    def of(cls, found: StoredConfig, before: StoredConfig | None, current: int) -> ConfigVersion:
        earlier = before.config or {} if before is not None else {}
        changed = [] if found.config is None else changes_between(earlier, found.config, found.changed)
        return cls(
            version=found.version,
            time=moment(found.changed_us),
            who=found.who,
            is_current=found.version == current,
            changes=[PropertyChange.of(each) for each in changed],
            config=None if found.config is None else concealed(found.config),
        )


class PropertyVerdict(BaseModel):
    """What becomes of a property, and what is wrong with its value."""

    name: str
    verdict: Verdict | None = Field(description="Null for a property that is not known.")
    errors: list[str]
    warnings: list[str]

    @classmethod
    def of(cls, found: PropertyCheck) -> PropertyVerdict:
        verdict = found.property.verdict if found.property else None
        return cls(name=found.name, verdict=verdict, errors=list(found.errors), warnings=list(found.warnings))


class RevertQuery(BaseModel):
    """Which version, and whether it is only asked for."""

    version: int = Field(ge=1, le=VERSION_MAX, description="The one to store again.")
    dry_run: bool = Field(False, description="Change nothing; say what would change, and what is wrong.")


class RevertRequest(BaseModel):
    """Secrets that the version does not hold, given again."""

    secrets: dict[str, str] = Field({}, examples=[{"database.password": "..."}])


class RevertPlan(BaseModel):
    """What a revert would do."""

    version: int = Field(description="Of the configuration now, for `If-Match`.")
    to: int
    possible: bool
    problem: str | None
    hint: str | None
    changes: list[PropertyChange]
    verdicts: list[PropertyVerdict]
    kept: list[str] = Field(description="Secrets that stay what they are now.")
    needed: list[str] = Field(description="Secrets that have to be given again: they would go to another server.")

    @classmethod
    def of(cls, found: Reversion, now: int, to: int) -> RevertPlan:
        hint = found.problem.hint if found.problem else None
        return cls(
            version=now,
            to=to,
            possible=found.problem is None,
            problem=found.problem.message if found.problem else None,
            hint=None if hint is None else in_properties(hint),
            changes=[PropertyChange.of(each) for each in found.changes],
            verdicts=[PropertyVerdict.of(each) for each in found.checks],
            kept=found.kept,
            needed=found.needed,
        )
