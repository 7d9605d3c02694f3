"""Kafka Connect's `/connector-plugins`: which connectors there are, and what is wrong with a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, Body, Path, Query
from pydantic import BaseModel, Field

from tailrace.configuration.properties import CLASS, Property, Verdict, all_properties, classes
from tailrace.configuration.reading import PropertyCheck, check, normalised
from tailrace.configuration.revisions import with_stored_secrets
from tailrace.server.api.parts import GetSupervisor
from tailrace.server.errors import NotFoundError, RequestError

ALIAS = "Connector"

router = APIRouter(prefix="/connector-plugins", tags=["plugins"])
Plugin = Annotated[str, Path(description="A connector's class, or the last part of its name.")]


class ConfigKey(BaseModel):
    """What a property is."""

    name: str
    type: str
    required: bool
    default_value: str | None
    importance: str
    documentation: str
    group: str | None
    order_in_group: int
    width: str = "NONE"
    display_name: str
    dependents: list[str] = []
    order: int


class JudgedKey(ConfigKey):
    """The same, and what becomes of it here."""

    verdict: Verdict | None = Field(
        description="What becomes of it: `supported`, `ignored`, `refused`; null for one that is not known."
    )
    reason: str | None = Field(description="Why it is ignored or refused, and what to do instead.")


class ConfigValue(BaseModel):
    """What a property is set to, and what is wrong with that."""

    name: str
    value: str | None
    recommended_values: list[str]
    errors: list[str]
    visible: bool = True
    warnings: list[str] = Field(description="What is worth knowing and keeps nothing from running.")
    is_given: bool = Field(description="Whether the configuration has it.")


class ConfigInfo(BaseModel):
    definition: JudgedKey
    value: ConfigValue


class ConfigInfos(BaseModel):
    """Every property that there is, and every other one that was given."""

    name: str
    error_count: int
    groups: list[str]
    configs: list[ConfigInfo]


@router.get("")
def list_plugins(
    connectors_only: Annotated[bool, Query(alias="connectorsOnly", description="There are no others.")] = True,
) -> list[dict[str, str]]:
    """The kinds of connectors."""
    return [{"class": each, "type": "source", "version": version("tailrace")} for each in classes()]


@router.get("/{plugin}/config")
def get_plugin_config(plugin: Plugin) -> list[JudgedKey]:
    """Every property that a connector of this kind knows."""
    full_name = _require_plugin(plugin)
    return [_definition(each.name, each, order) for order, each in enumerate(all_properties({CLASS: full_name}), 1)]


@router.put("/{plugin}/config/validate")
def validate_plugin_config(
    supervisor: GetSupervisor,
    plugin: Plugin,
    config: Annotated[dict[str, Any], Body(description="Properties, each a text.")],
    connector: Annotated[
        str | None, Query(description="Whose stored secrets are meant where the configuration has `********`.")
    ] = None,
) -> ConfigInfos:
    """What is wrong with a configuration, property by property. Nothing is stored."""
    full_name = _require_plugin(plugin)
    properties = normalised(config)
    given = properties.get(CLASS)
    if given is not None and not _plain(given).endswith(_plain(plugin)):
        raise RequestError(f"Included connector type {given[:200]} does not match request type {plugin[:200]}")
    problems: Mapping[str, str] = {}
    if connector is not None:
        properties, problems = with_stored_secrets(properties, supervisor.view(connector).config)
    checks = [_with_problem(each, problems) for each in check({CLASS: full_name} | properties)]
    configs = [
        ConfigInfo(definition=_definition(each.name, each.property, order), value=_value(each))
        for order, each in enumerate(checks, 1)
    ]
    groups = list(dict.fromkeys(each.definition.group for each in configs if each.definition.group))
    errors = sum(bool(each.errors) for each in checks)
    return ConfigInfos(name=full_name, error_count=errors, groups=groups, configs=configs)


def _require_plugin(plugin: str) -> str:
    for known in classes():
        if plugin == known or _plain(known).rpartition(".")[2] == _plain(plugin).rpartition(".")[2] != "":
            return known
    raise NotFoundError(f"Unknown connector plugin {plugin[:200]}", f"known are {', '.join(classes())}")


def _with_problem(checked: PropertyCheck, problems: Mapping[str, str]) -> PropertyCheck:
    """With what keeps a stored secret from being used, in place of what is said of its mask."""
    return replace(checked, errors=(problems[checked.name],)) if checked.name in problems else checked


def _plain(plugin: str) -> str:
    """As Kafka Connect compares them: `MongoDbConnector` and `MongoDb` are one."""
    return plugin.removesuffix(ALIAS) or plugin


def _definition(name: str, found: Property | None, order: int) -> JudgedKey:
    return JudgedKey(
        name=name,
        type=found.type.value if found else "STRING",
        required=found.required if found else False,
        default_value=found.default if found else None,
        importance=found.importance.value if found else "LOW",
        documentation=_documentation(found),
        group=found.group if found else None,
        order_in_group=order,
        display_name=name,
        order=order,
        verdict=found.verdict if found else None,
        reason=found.reason or None if found else None,
    )


def _documentation(found: Property | None) -> str:
    if found is None:
        return "Not known here."
    return f"{found.documentation} ({found.verdict.value}: {found.reason})" if found.reason else found.documentation


def _value(checked: PropertyCheck) -> ConfigValue:
    return ConfigValue(
        name=checked.name,
        value=checked.value,
        recommended_values=list(checked.recommended_values),
        errors=list(checked.errors),
        warnings=list(checked.warnings),
        is_given=checked.is_given,
    )
