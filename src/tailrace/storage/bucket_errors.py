"""What a store answered, as an error that a person can act on.

obstore's own texts are shown to no one: a refused request comes back in them with the key's name and all that was
signed. Only the store's code for what is wrong is taken from them.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass

from obstore.exceptions import (
    AlreadyExistsError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)

from tailrace.errors import DefiniteError, StoreError, TailraceError
from tailrace.storage.bucket_place import BucketPlace

TAKEN = (AlreadyExistsError, PreconditionError)
"""What a put under a condition raises that was not met; stores differ in which."""
_CODE = re.compile(r"<Code>\s*(\w+)\s*</Code>")
_STATUS = re.compile(r"status code: (\d{3})|status: (\d{3}),")
_REGION = re.compile(r"<Region>\s*([\w-]+)\s*</Region>")
_METADATA = re.compile(r"/latest/(?:api/token|meta-data)|/metadata/identity|computeMetadata|/v2/credentials")
_NO_BUCKET = {"NoSuchBucket", "ContainerNotFound"}
_OTHER_REGION = {
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "PermanentRedirect",
    "TemporaryRedirect",
}
_WRONG_CLOCK = {"RequestTimeTooSkewed", "RequestExpired"}
_NO_CREDENTIALS = {
    "AuthenticationFailed",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "NoAuthenticationInformation",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
}
_RIGHTS = {
    "s3": "s3:ListBucket on the bucket; s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload in it",
    "gs": "the role Storage Object Admin on the bucket",
}
_CREDENTIALS = {
    "s3": "export AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…; or for a profile: "
    'eval "$(aws configure export-credentials --profile NAME --format env)"',
    "gs": "export GOOGLE_SERVICE_ACCOUNT=/path/of/key.json, or: gcloud auth application-default login",
}
_CREDENTIALS_AZURE = "export AZURE_STORAGE_ACCOUNT_NAME=… AZURE_STORAGE_ACCOUNT_KEY=…, or: az login"


@dataclass(frozen=True)
class StoreAnswer:
    """What of an error of obstore's tells what is wrong."""

    status: int | None
    code: str
    region: str | None
    text: str

    @classmethod
    def of(cls, error: Exception) -> StoreAnswer:
        text = str(error)
        status, code, region = _STATUS.search(text), _CODE.search(text), _REGION.search(text)
        number = int(status[1] or status[2]) if status else None
        return cls(number, code[1] if code else "", region[1] if region else None, text)

    @property
    def is_unsent(self) -> bool:
        """Whether no connection was made. What is written piece by piece does not tell how it failed."""
        return "kind: Connect" in self.text or ("error sending request" in self.text and "kind:" not in self.text)

    @property
    def is_forbidden_without_a_reason(self) -> bool:
        """As every refused look is: it has no content."""
        return self.status in (401, 403) and not self.code


def missing(name: str, place: BucketPlace) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{place.root}/{name}")


def explained(error: Exception, place: BucketPlace, name: str = "") -> Exception:
    """The error in our words; `name` is the object that was asked for."""
    answer = StoreAnswer.of(error)
    if isinstance(error, FileNotFoundError) and answer.code not in _NO_BUCKET:
        return missing(name, place)
    if isinstance(error, UnknownConfigurationKeyError):
        return _unknown_option(answer, place)
    return _refused(answer, place) or _unauthorized(error, answer, place) or _passing(answer, place)


def _refused(answer: StoreAnswer, place: BucketPlace) -> TailraceError | None:
    if answer.code in _NO_BUCKET:
        return DefiniteError(f"{place.root}: there is no bucket {place.bucket}", _making(place))
    if answer.code in _WRONG_CLOCK:
        message = f"{place.root}: this machine's clock and the store's differ too much"
        return DefiniteError(message, "set the clock, for example: timedatectl set-ntp true")
    if answer.code in _OTHER_REGION or answer.status in (301, 307) or "Received redirect without" in answer.text:
        where = f"; it is in {answer.region}" if answer.region else ""
        message = f"{place.root}: the bucket is not in the region that was asked{where}"
        return DefiniteError(message, f"--storage-option region={answer.region or 'REGION'}")
    return None


def _unauthorized(error: Exception, answer: StoreAnswer, place: BucketPlace) -> TailraceError | None:
    credentials = _CREDENTIALS.get(place.scheme, _CREDENTIALS_AZURE)
    if _METADATA.search(answer.text):
        return DefiniteError(f"{place.root}: there are no credentials", credentials)
    if answer.code in _NO_CREDENTIALS or isinstance(error, UnauthenticatedError):
        return DefiniteError(f"{place.root}: the store does not accept the credentials{_told(answer)}", credentials)
    if isinstance(error, PermissionDeniedError) or answer.status == 403:
        rights = _RIGHTS.get(place.scheme, "the role Storage Blob Data Contributor on the container")
        return DefiniteError(f"{place.root}: the store refuses access{_told(answer)}", f"needed are {rights}")
    return None


def _passing(answer: StoreAnswer, place: BucketPlace) -> TailraceError:
    if answer.status is not None and answer.status < 500 and answer.status not in (408, 409, 412, 429):
        message = f"{place.root}: the store refuses a request with {answer.status}{_told(answer)}"
        return DefiniteError(message, "the store has to be one that has the calls of S3, Google's or Azure's")
    if "certificate" in answer.text and "kind: Connect" in answer.text:
        hint = '--storage-option root_certificate="$(cat ca.pem)", if the store\'s own authority signed it'
        return DefiniteError(f"{place.root}: the certificate of {_endpoint(place)} is not to be trusted", hint)
    if answer.is_unsent:
        hint = "see whether it runs, and whether --storage-option endpoint=URL names it: it is tried again by itself"
        return StoreError(f"{place.root}: {_endpoint(place)} cannot be reached", hint)
    what = f"answers {answer.status}{_told(answer)}" if answer.status else "did not answer"
    return StoreError(f"{place.root}: the store {what}", "it is tried again by itself")


def invalid_option(error: Exception, place: BucketPlace) -> TailraceError:
    """Where no client can be made of the options."""
    if isinstance(error, UnknownConfigurationKeyError):
        return _unknown_option(StoreAnswer.of(error), place)
    text = str(error)
    named = next((name for name, value in place.options if value and f'"{value}"' in text), None)
    if named is not None:
        return DefiniteError(f"{place.root}: the storage option {named} cannot have this value", f"{named}=VALUE")
    credentials = _CREDENTIALS.get(place.scheme, _CREDENTIALS_AZURE)
    return DefiniteError(f"{place.root}: the storage options do not say how to reach it", credentials)


def _unknown_option(answer: StoreAnswer, place: BucketPlace) -> TailraceError:
    found = re.search(r"Configuration key: '([^']*)'", answer.text)
    hint = "for example region, endpoint, access_key_id, secret_access_key" if place.scheme == "s3" else None
    return DefiniteError(f"{place.root}: there is no storage option {found[1] if found else '?'}", hint)


def _told(answer: StoreAnswer) -> str:
    return f" ({answer.code})" if answer.code else ""


def _endpoint(place: BucketPlace) -> str:
    return place.endpoint or "the store"


def _making(place: BucketPlace) -> str:
    if place.scheme == "gs":
        return f"gcloud storage buckets create gs://{place.bucket}"
    if place.scheme != "s3":
        return f"az storage container create --name {place.bucket}"
    endpoint = f" --endpoint-url {place.endpoint}" if place.endpoint else ""
    return f"aws s3 mb s3://{place.bucket}{endpoint}"
