"""What a person is told when a bucket cannot be used: what is wrong, which bucket, and what to paste. No credential."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from tests.cutting_proxy import Fault, cutting
from tests.postgres import wait_until
from tests.s3 import KEY_ID, SECRET, S3Server

from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.hidden import masked
from tailrace.model.backoff import Backoff
from tailrace.storage.bucket import PART_BYTES, Bucket
from tailrace.storage.bucket_client import StorePatience
from tailrace.storage.bucket_place import BucketPlace, options_of

BRIEF = StorePatience(Backoff(0.001, 0.01), tries=2, request_seconds=5.0)
WRONG = "another-secret-of-tests"


@pytest.fixture
def url(s3: S3Server) -> str:
    return f"{s3.make_bucket(uuid.uuid4().hex)}/lake"


def reached(s3: S3Server, url: str, **options: str) -> Bucket:
    return Bucket.of(url, {**s3.options, **options}, patience=BRIEF)


def refusal(bucket: Bucket) -> TailraceError:
    """The same, whatever is asked for."""
    errors = []
    for ask in (
        bucket.require_reachable,
        lambda: bucket.put("a", b""),
        lambda: bucket.put_new("a", b""),
        lambda: bucket.get("a"),
        bucket.names,
        lambda: create(bucket),
    ):
        with pytest.raises(TailraceError) as raised:
            ask()
        errors.append(raised.value)
    assert len({(type(error), error.message, error.hint) for error in errors}) == 1
    for secret in (SECRET, WRONG, KEY_ID, "AWS4-HMAC", "StringToSign"):
        assert secret not in f"{errors[0]!r} {errors[0].message} {errors[0].hint} {bucket!r}"
    return errors[0]


def create(bucket: Bucket) -> None:
    with bucket.create("a") as file:
        file.write(b"content")


def test_a_bucket_that_is_not_there_is_named_with_the_command_that_makes_it(s3: S3Server) -> None:
    error = refusal(reached(s3, "s3://nowhere-at-all/lake"))
    assert isinstance(error, DefiniteError)
    assert error.message == "s3://nowhere-at-all: there is no bucket nowhere-at-all"
    assert error.hint == f"aws s3 mb s3://nowhere-at-all --endpoint-url {s3.options['endpoint']}"


@pytest.mark.parametrize(("option", "code"), [("secret_access_key", "SignatureDoesNotMatch"), ("access_key_id", "Inv")])
def test_credentials_that_the_store_does_not_know_are_refused_and_not_repeated(
    option: str, code: str, s3: S3Server, url: str
) -> None:
    bucket = reached(s3, url, **{option: WRONG})
    error = refusal(bucket)
    assert isinstance(error, DefiniteError)
    assert f"the store does not accept the credentials ({code}" in error.message
    with pytest.raises(DefiniteError, match="does not accept the credentials"):
        # The answer to a look has no content.
        bucket.look("a")


def test_a_store_that_cannot_be_reached_is_tried_again(s3: S3Server, url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    error = refusal(reached(s3, url, endpoint=f"http://127.0.0.1:{port}"))
    assert isinstance(error, TransientError)
    assert f"http://127.0.0.1:{port} cannot be reached" in error.message
    assert "--storage-option endpoint=URL" in str(error.hint)


def test_a_store_that_is_busy_is_tried_again_a_few_times(s3: S3Server, url: str) -> None:
    with cutting(s3.port, decide=lambda request: Fault.BUSY) as proxy:
        bucket = reached(s3, url, **proxy.options)
        with pytest.raises(TransientError, match=r"the store answers 503 \(SlowDown\)"):
            bucket.put("a", b"")
        assert proxy.count(Fault.BUSY) == BRIEF.tries
        with pytest.raises(TransientError, match="the store answers 503"):
            bucket.look("a")


ANSWERS = {
    "AccessDenied": ("the store refuses access (AccessDenied)", "s3:PutObject"),
    "RequestTimeTooSkewed": ("this machine's clock and the store's differ too much", "timedatectl set-ntp true"),
    "AuthorizationHeaderMalformed": ("it is in eu-central-1", "--storage-option region=eu-central-1"),
    "PermanentRedirect": ("is not in the region that was asked", "--storage-option region="),
    "ExpiredToken": ("does not accept the credentials (ExpiredToken)", "aws configure export-credentials"),
    "MethodNotAllowed": ("the store refuses a request with 405 (MethodNotAllowed)", "calls of S3"),
}
STATUS = {"AuthorizationHeaderMalformed": 400, "PermanentRedirect": 301, "ExpiredToken": 400, "MethodNotAllowed": 405}


@pytest.mark.parametrize("code", ANSWERS)
def test_what_a_store_answers_becomes_a_hint(code: str, s3: S3Server, url: str) -> None:
    content = f"<Error><Code>{code}</Code><Region>eu-central-1</Region></Error>".encode()
    with cutting(s3.port, answer=(STATUS.get(code, 403), content)) as proxy:
        error = refusal(reached(s3, url, **proxy.options))
    message, hint = ANSWERS[code]
    assert isinstance(error, DefiniteError)
    assert message in error.message
    assert hint in str(error.hint)


def test_options_may_be_called_as_others_call_them(s3: S3Server, url: str) -> None:
    given = {f"AWS_{name.upper()}": value for name, value in s3.options.items() if name != "endpoint"}
    given["aws_endpoint_url"] = s3.options["endpoint"]
    Bucket.of(url, given).put("a", b"there")
    assert reached(s3, url).get("a") == b"there"
    assert options_of(["region=here", "secret_access_key=a=b"]) == {"region": "here", "secret_access_key": "a=b"}


def test_the_environment_says_what_no_option_does(s3: S3Server, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reached(s3, url).put("a", b"there")
    for name, value in s3.options.items():
        monkeypatch.setenv(f"AWS_{'ENDPOINT_URL' if name == 'endpoint' else name.upper()}", value)
    assert Bucket.of(url).get("a") == b"there"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colour": "blue"}, "there is no storage option colour"),
        ({"skip_signature": "perhaps"}, "the storage option skip_signature cannot have this value"),
        ({"region": "a", "aws_region": "b"}, "the storage option region is given twice"),
    ],
)
def test_an_option_that_is_wrong_is_named(options: dict[str, str], message: str, s3: S3Server, url: str) -> None:
    with pytest.raises(DefiniteError, match=message):
        reached(s3, url, **options).names()


@pytest.mark.parametrize("url", ["/a/folder", "s3://", "http://host/bucket", "s3://bucket/a%20b", "s3://bucket/a/../b"])
def test_what_is_no_bucket_is_refused(url: str) -> None:
    with pytest.raises(DefiniteError, match=r"no bucket|no name that a bucket can have"):
        BucketPlace.parse(url, {})


def test_a_secret_without_a_name_is_not_repeated() -> None:
    with pytest.raises(DefiniteError) as raised:
        options_of([SECRET])
    assert SECRET not in f"{raised.value.message} {raised.value.hint}"


def test_a_secret_is_masked_in_every_message_from_then_on(s3: S3Server, url: str) -> None:
    assert SECRET in masked(SECRET)
    bucket = reached(s3, url)
    assert SECRET not in masked(f"something says {SECRET}")
    assert SECRET not in repr(bucket)


def test_a_pickled_bucket_works_in_another_process(s3: S3Server, url: str) -> None:
    bucket = reached(s3, url)
    bucket.put("a", b"there")
    script = "import pickle, sys; print(pickle.load(sys.stdin.buffer).get('a').decode())"
    done = subprocess.run([sys.executable, "-c", script], input=pickle.dumps(bucket), capture_output=True, check=True)
    assert done.stdout == b"there\n"


def test_a_process_that_was_forked_from_one_that_used_a_bucket_is_told(s3: S3Server, url: str) -> None:
    """It would wait for ever."""
    script = """
import os, pickle, sys
bucket = pickle.load(sys.stdin.buffer)
bucket.get("a")
if os.fork() == 0:
    try:
        bucket.get("a")
    except Exception as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
"""
    bucket = reached(s3, url)
    bucket.put("a", b"there")
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, input=pickle.dumps(bucket), capture_output=True, check=True, timeout=60)
    assert b"was forked from one that had used a bucket" in done.stdout


def test_a_large_file_goes_to_the_store_in_parts_and_one_that_fails_leaves_nothing(s3: S3Server, url: str) -> None:
    bucket, piece = reached(s3, url), os.urandom(1 << 20)
    count = 2 * (PART_BYTES >> 20) + 1
    with bucket.create("large") as file:
        for _ in range(count):
            file.write(piece)
    found = bucket.look("large")
    assert found is not None
    assert found.bytes == count << 20
    assert bucket.get_ranges("large", [(len(piece) * 9, len(piece) * 10)]) == [piece]
    with pytest.raises(ZeroDivisionError):
        fail(bucket, piece, count)
    assert bucket.names() == ["large"]
    # No part is left to be paid for, once the store has ended what was on its way.
    folder = s3.folder / bucket.place.bucket
    wait_until(lambda: {path.name for path in folder.rglob("*") if path.is_file()} == {"large"}, 30)


def fail(bucket: Bucket, piece: bytes, count: int) -> None:
    with bucket.create("lost") as file:
        for _ in range(count):
            file.write(piece)
        raise ZeroDivisionError


def test_an_error_of_whoever_writes_a_file_is_not_taken_for_the_stores(s3: S3Server, url: str) -> None:
    with pytest.raises(OSError, match="of their own"):
        fail_by_themselves(reached(s3, url))


def fail_by_themselves(bucket: Bucket) -> None:
    with bucket.create("a") as file:
        file.write(pa.py_buffer(b"some"))
        raise OSError("of their own")


def test_derived_files_of_two_stores_lie_apart(s3: S3Server, url: str, tmp_path: Path) -> None:
    ours = Bucket.of(url, s3.options, cache_root=tmp_path)
    theirs = Bucket.of(url, {**s3.options, "endpoint": "http://127.0.0.1:1"}, cache_root=tmp_path)
    assert ours.cache != theirs.cache
    assert ours.at("a").cache == ours.cache / "a"
    assert ours.cache.is_relative_to(tmp_path)
