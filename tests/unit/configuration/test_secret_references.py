"""Secrets are looked up where they are referred to, and shown nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from tailrace.configuration.properties import MASK, all_properties
from tailrace.configuration.reading import ConfigurationError, check, read, redacted, unredacted
from tailrace.configuration.secrets import SecretError, resolved

CANARY = "kanarienvogel"
SHOP = {
    "name": "shop",
    "lake.path": "lake",
    "database.hostname": "127.0.0.1",
    "database.user": "ann",
    "database.dbname": "shop",
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", CANARY)
    monkeypatch.delenv("NOT_THERE", raising=False)


def test_references_are_replaced_by_what_they_refer_to(tmp_path: Path) -> None:
    whole, keyed, colon = tmp_path / "whole", tmp_path / "a.properties", tmp_path / "with:colon"
    colon.write_text("c")
    whole.write_text("  s3cret\n\n")
    keyed.write_text("# of the shop\nuser = ann\npass\\u0077ord: one\\\n   two\n")
    assert resolved("${env:SHOP_PASSWORD}") == CANARY
    assert resolved(f"${{file:{whole}}}") == "s3cret"
    assert resolved(f"${{file:{keyed}:password}}") == "onetwo"
    assert resolved(f"${{file:{colon}}}") == "c"
    assert resolved(f"<${{env:SHOP_PASSWORD}}|${{file:{keyed}:user}}>") == f"<{CANARY}|ann>"
    assert resolved("$${env:SHOP_PASSWORD} $$ $ 5$") == "${env:SHOP_PASSWORD} $$ $ 5$"


def test_what_a_secret_holds_is_not_looked_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "${env:HOME}$${")
    assert resolved("${env:SHOP_PASSWORD}") == "${env:HOME}$${"


def test_a_reference_that_leads_nowhere_is_named_and_nothing_else(tmp_path: Path) -> None:
    keyed = tmp_path / "keyed"
    keyed.write_text(f"other={CANARY}")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff" + CANARY.encode())
    for text, reason in (
        ("${env:NOT_THERE}", "the environment has no such variable"),
        (f"${{file:{tmp_path}/none}}", "the file cannot be read: no such file or directory"),
        (f"${{file:{keyed}:key}}", "the file has no key key"),
        (f"${{file:{binary}}}", "the file cannot be read: it is not text in UTF-8"),
    ):
        with pytest.raises(SecretError) as caught:
            resolved(f"{CANARY}{text}")
        assert caught.value.message == f"{text}: {reason}"


@pytest.mark.parametrize("text", [f"${{{CANARY}}}", f"${{vault:{CANARY}}}", f"${{{CANARY}", "${env:"])
def test_what_only_looks_like_a_reference_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(SecretError) as caught:
        resolved(text)
    assert CANARY not in caught.value.message
    assert "write $${" in caught.value.message


def test_a_password_gets_into_the_connection_string_and_a_missing_one_is_a_problem() -> None:
    dsn = read(SHOP | {"database.password": "${env:SHOP_PASSWORD}"}).dsn
    assert conninfo_to_dict(dsn)["password"] == CANARY
    with pytest.raises(ConfigurationError) as caught:
        read(SHOP | {"database.password": "${env:NOT_THERE}"})
    assert caught.value.problems == {
        "database.password": ["${env:NOT_THERE}: the environment has no such variable"],
    }


@pytest.mark.parametrize("value", ["${env:SHOP_PASSWORD}", "a.${env:SHOP_PASSWORD}[", "a.${env:SHOP_PASSWORD}.b.*"])
def test_what_was_looked_up_is_in_no_message_whatever_the_key(value: str) -> None:
    """But for the connector's name, which everyone may know."""
    keys = [each.name.replace("*", "password") for each in all_properties() if each.name != "name"]
    for key in (*keys, "databse.password", "x"):
        assert_silent({**SHOP, key: value})


@pytest.mark.parametrize(
    "key",
    [
        *("database.password", "database.dsn", "database.sslpassword", "databse.pasword"),
        *("spark.conf.spark.hadoop.fs.s3a.access.key", "spark.conf.spark.hadoop.fs.azure.account.key.shop.net"),
        *(
            "spark.conf.spark.ssl.keyPassword",
            "value.converter.basic.auth.user.info",
            "producer.override.sasl.jaas.config",
        ),
        *("signal.consumer.ssl.key.password", "driver.password", "openlineage.integration.api.token"),
    ],
)
def test_a_secret_that_is_given_itself_is_in_no_message(key: str) -> None:
    properties = {**SHOP, key: CANARY}
    assert_silent(properties)
    assert redacted(properties)[key] == MASK
    assert redacted({**SHOP, key: "${env:SHOP_PASSWORD}"})[key] == "${env:SHOP_PASSWORD}"
    assert redacted({**SHOP, key: f"${{env:A}}{CANARY}"})[key] == MASK


def test_a_password_in_an_address_is_not_shown() -> None:
    properties = SHOP | {"value.converter.schema.registry.url": f"http://ann:{CANARY}@127.0.0.1"}
    assert_silent(properties)
    assert redacted(properties)["value.converter.schema.registry.url"] == MASK
    assert_silent(SHOP | {"database.port": f"postgresql://ann:{CANARY}@127.0.0.1"})


def test_what_is_no_secret_is_shown_as_it_is() -> None:
    shown = SHOP | {"database.sslkey": "/keys/shop.pem", "message.key.columns": "a:b", "topic.key.field.name": "k"}
    assert redacted(shown) == shown


def test_a_configuration_that_was_shown_can_be_sent_back() -> None:
    old = SHOP | {"database.password": CANARY, "database.sslpassword": "${env:SHOP_PASSWORD}", "unknown": "y"}
    assert unredacted(redacted(old), old) == old
    changed = redacted(old) | {"database.password": "another", "slot.name": "s"}
    assert unredacted(changed, old) == old | {"database.password": "another", "slot.name": "s"}


def test_a_mask_without_a_secret_behind_it_is_refused() -> None:
    new = unredacted(SHOP | {"database.password": MASK, "slot.name": MASK}, SHOP | {"slot.name": "s"})
    assert (new["database.password"], new["slot.name"]) == (MASK, MASK)
    with pytest.raises(ConfigurationError) as caught:
        read(SHOP | {"database.password": MASK})
    assert list(caught.value.problems) == ["database.password"]


def assert_silent(properties: dict[str, str]) -> None:
    """Nothing that is told of a configuration has the canary in it."""
    told = [repr((each.value, each.errors, each.warnings)) for each in check(properties)]
    told.append(repr(redacted(properties)))
    try:
        configuration = read(properties)
        told += [repr(configuration), *configuration.warnings]
    except ConfigurationError as error:
        told += [repr(error), str(error), error.message, str(error.hint), str(dict(error.problems))]
    assert [text for text in told if CANARY in text] == []
