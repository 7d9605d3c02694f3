"""What a person types for a lake is a folder, a place in a bucket, or an error that says how to write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.errors import DefiniteError
from tailrace.model.lake_address import BucketLake, parse_lake


@pytest.mark.parametrize("text", ["./shop", "/data/shop", "shop", "s3:", "./s3://bucket/shop", "a b", "C:shop"])
def test_what_has_no_scheme_is_a_folder_as_it_is_written(text: str) -> None:
    assert parse_lake(text) == Path(text)
    assert parse_lake(Path(text)) == Path(text)


@pytest.mark.parametrize(
    ("text", "address", "name"),
    [
        ("s3://bucket/shop", "s3://bucket/shop", "shop"),
        ("S3://bucket/a/b=1/shop.eu/", "s3://bucket/a/b=1/shop.eu", "shop.eu"),
        ("gs://my_bucket/shop", "gs://my_bucket/shop", "shop"),
        ("abfss://lake@account.dfs.core.windows.net/s", "abfss://lake@account.dfs.core.windows.net/s", "s"),
    ],
)
def test_a_bucket_is_named_by_its_scheme_and_an_address_means_itself(text: str, address: str, name: str) -> None:
    parsed = parse_lake(text)
    assert isinstance(parsed, BucketLake)
    assert (str(parsed), parsed.name) == (address, name)
    assert parse_lake(parsed) is parsed
    assert parse_lake(str(parsed)) == parsed


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("s3a://bucket/shop", "s3://BUCKET/NAME"),
        ("gcs://bucket/shop", "gs://BUCKET/NAME"),
        ("abfs://lake@account.dfs.core.windows.net/s", "abfss://"),
        ("file:///data/shop", "/data/shop"),
        ("ftp://host/shop", "a folder, or s3://"),
        ("https://host/shop", "a folder, or s3://"),
        ("s3://", "s3://BUCKET/NAME"),
        ("s3://bucket", "s3://BUCKET/NAME"),
        ("s3:///shop", "s3://BUCKET/NAME"),
        ("s3://bucket/../shop", "s3://BUCKET/NAME"),
        ("s3://bucket/a//b", "s3://BUCKET/NAME"),
        ("s3://bucket/a%20b", "s3://BUCKET/NAME"),
        ("s3://bucket/shop?region=eu", "s3://BUCKET/NAME"),
        ("abfss://lake/shop", "abfss://CONTAINER@ACCOUNT"),
    ],
)
def test_what_is_no_address_says_how_one_is_written(text: str, hint: str) -> None:
    with pytest.raises(DefiniteError) as error:
        parse_lake(text)
    assert hint in str(error.value.hint)


def test_no_message_repeats_an_address_that_may_have_a_password_in_it() -> None:
    for text in ("s3://key:geheim@bucket/shop", "ftp://me:geheim@host/shop", "postgresql://me:geheim@host/shop"):
        with pytest.raises(DefiniteError) as error:
            parse_lake(text)
        assert "geheim" not in f"{error.value.message} {error.value.hint}"


def test_what_is_given_for_a_bucket_is_no_part_of_its_text_and_a_folder_takes_none_of_it() -> None:
    options = [("secret_access_key", "geheim")]
    parsed = parse_lake("s3://bucket/shop", options, Path("/state"))
    assert parsed == BucketLake("s3://bucket/shop", tuple(options), Path("/state"))
    assert "geheim" not in f"{parsed!r} {parsed}"
    for given in ((options, None), ((), Path("/state"))):
        with pytest.raises(DefiniteError, match="is a folder"):
            parse_lake("./shop", *given)
