"""The released files by name, fetched when the user asks and never otherwise.

A cut connection is taken up where it broke. The hash of a file is recorded beside it on first use (nobody published
one) and verified ever after. Only https is spoken, and only with the host that was asked.
"""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import json
import os
import shutil
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import IO

from signspot.errors import EnvironmentProblem, InputError, SignspotError, readable_size
from signspot.files.atomic import atomic_output, explained, take_lock

BASE_URL = "https://www.robots.ox.ac.uk/~vgg/research/"

Progress = Callable[[int, int], None]  # bytes so far, bytes in all

_BLOCK_BYTES = 256 * 1024
_RETRIED_STATUS = {408, 425, 429, 500, 502, 503, 504}
_RANGE_NOT_SATISFIABLE = 416
_MOST_CONNECTIONS = 100  # for one file


@dataclass(frozen=True, slots=True)
class _Download:
    """One released file."""

    path: str  # under the base address
    what: str
    n_megabytes: int = 0  # about; 0 where it is not known
    is_model: bool = True

    @property
    def file_name(self) -> str:
        return self.path.rpartition("/")[2]


_BSLDICT, _BSL1K = "bsldict/data/", "bsl1k/data/pretrained_models/"
DOWNLOADS = {
    "bsldict": _Download(f"{_BSLDICT}pretrained_models/i3d_mlp.pth.tar", "trunk and head, Watch-Read-Lookup", 59),
    "bsldict-i3d": _Download(f"{_BSLDICT}pretrained_models/i3d.pth.tar", "the trunk of bsldict", 52),
    "bsldict-mlp": _Download(f"{_BSLDICT}pretrained_models/mlp.pth.tar", "the head of bsldict", 8),
    "bsldict-dictionary": _Download(
        f"{_BSLDICT}bsldict_v1.pkl", "the dictionary BSLDict: 14,122 entries with features", 148, is_model=False
    ),
    "bsl1k": _Download(f"{_BSL1K}bsl1k.pth.tar", "trunk trained on BSL-1K"),
    "bsl1k-mouth-masked": _Download(f"{_BSL1K}bsl1k_mouth_masked_ppose.pth.tar", "the same with mouths masked"),
    "pose-distillation": _Download(f"{_BSL1K}video_pose_distillation.pth.tar", "trunk taught to predict poses"),
    "kinetics": _Download(f"{_BSL1K}kinetics.pth", "trunk trained on Kinetics"),
    "jester": _Download(f"{_BSL1K}jester.pth", "trunk trained on Jester"),
    "wlasl16": _Download(f"{_BSL1K}wlasl16.pth.tar", "trunk trained on WLASL, 16 frames"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _FetchPolicy:
    """How patient a download is."""

    attempts: int = 5  # in a row without a byte of progress
    backoff_seconds: float = 1.0  # before the second attempt; doubles each time
    timeout_seconds: float = 30.0  # without a sign of the server
    slowest_bytes_per_second: int = 1024  # less than this for `timeout_seconds` counts as none
    max_bytes: int = 2 * 1024**3


class _TryAgain(Exception):
    """The connection failed in a way that may pass."""


def fetch(
    name: str,
    folder: Path,
    *,
    base_url: str = BASE_URL,
    progress: Progress | None = None,
    policy: _FetchPolicy = _FetchPolicy(),
) -> Path:
    """The released file `name` in `folder`, downloaded unless it is there, with the hash it had the first time."""
    if name not in DOWNLOADS:
        raise InputError(name, "is not a released file", f"choose one of: {', '.join(sorted(DOWNLOADS))}")
    if not folder.is_dir():
        raise InputError(folder, "the folder to write to does not exist", "create it first")
    path = folder / DOWNLOADS[name].file_name
    job = _Job(_checked_url(base_url, DOWNLOADS[name].path), path, progress, policy)
    if not path.exists():
        with _partial_file(path) as part:
            job.download(part)
            job.publish(part)
    recorded, found = _recorded(path), _sha256_of(path)
    if not recorded:
        record = {"sha256": found, "n_bytes": path.stat().st_size, "url": job.url}
        with atomic_output(_record_path(path), overwrite=True) as temporary:
            temporary.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    elif recorded != found:
        what = f"has changed since it was fetched (sha256 {found[:12]}... instead of {recorded[:12]}...)"
        raise InputError(path, what, "delete it and fetch it again")
    return path


def _sha256_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror or error})", "check its permissions") from error


@dataclass(frozen=True, slots=True)
class _Job:
    url: str
    path: Path
    progress: Progress | None
    policy: _FetchPolicy

    def download(self, part: FileIO) -> None:
        try:
            _refuse_private(self.url)
        except OSError as error:
            raise self._unreachable(f"no network: {error.strerror or error}") from error
        failures, reason = 0, ""
        for _ in range(_MOST_CONNECTIONS):
            before = part.tell()
            try:
                self._continue(part)
                return
            except _TryAgain as problem:
                failures, reason = failures + 1 if part.tell() <= before else 1, str(problem)
            if failures >= self.policy.attempts:
                break
            time.sleep(self.policy.backoff_seconds * 2 ** (failures - 1))
        raise self._unreachable(reason)

    def publish(self, part: FileIO) -> None:
        recorded = _recorded(self.path)
        if recorded and _sha256_of(_part_path(self.path)) != recorded:
            _restart(part)
            what = "the server's file is not the one recorded before"
            raise InputError(self.path, what, f"if the change is known, delete {_record_path(self.path)}")
        with atomic_output(self.path) as temporary:
            _part_path(self.path).replace(temporary)
        _validator_path(self.path).unlink(missing_ok=True)

    def _continue(self, part: FileIO) -> None:
        validator = ""
        if part.tell():
            with suppress(OSError, UnicodeDecodeError):
                known_url, _, known = _validator_path(self.path).read_text(encoding="utf-8").partition("\n")
                validator = known if known_url == self.url and known.isprintable() else ""
        if not validator:
            _restart(part)
        request = urllib.request.Request(self.url, headers={"User-Agent": "signspot"})
        if validator:
            request.add_header("Range", f"bytes={part.tell()}-")
            request.add_header("If-Range", validator)
        with self._response(request, part) as response:
            self._append(response, part, self._total(response, part))

    @contextmanager
    def _response(self, request: urllib.request.Request, part: FileIO) -> Iterator[http.client.HTTPResponse]:
        # No proxy between a machine and itself.
        is_local = _is_loopback(urllib.parse.urlsplit(self.url).hostname or "")
        direct = (urllib.request.ProxyHandler({}),) if is_local else ()
        opener = urllib.request.build_opener(_SameHost(self.url), *direct)
        try:
            with opener.open(request, timeout=self.policy.timeout_seconds) as response:
                yield response
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == _RANGE_NOT_SATISFIABLE:
                _restart(part)
            if error.code in _RETRIED_STATUS | {_RANGE_NOT_SATISFIABLE}:
                raise _TryAgain(f"the server answers {error.code}") from error
            raise InputError(self.url, f"the server answers {error.code} ({error.reason})", self._by_hand()) from error
        except urllib.error.URLError as error:
            raise _TryAgain(str(error.reason)) from error
        except (http.client.HTTPException, OSError) as error:
            raise _TryAgain(str(error) or type(error).__name__) from error

    def _total(self, response: http.client.HTTPResponse, part: FileIO) -> int:
        """The length of the whole file, after all that the server says about it is believable."""
        if response.headers.get_content_type() == "text/html":
            fix = f"log in to the network, or {self._by_hand()}"
            raise EnvironmentProblem(self.url, "a web page came instead of the file", fix)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise EnvironmentProblem(self.url, "the server sent the file compressed", self._by_hand())
        length = response.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise EnvironmentProblem(self.url, "the server does not say how long the file is", self._by_hand())
        if response.status == http.HTTPStatus.PARTIAL_CONTENT:
            total = part.tell() + int(length)
            if response.headers.get("Content-Range") != f"bytes {part.tell()}-{total - 1}/{total}":
                _restart(part)
                raise _TryAgain("the server sent another part of the file than asked for")
        else:
            _restart(part)
            total = int(length)
            # What tells two versions of the server's file apart, so that halves of two are never joined.
            strong = response.headers.get("ETag", "")
            weak = not strong or strong.startswith("W/")
            validator = response.headers.get("Last-Modified", "") if weak else strong
            with atomic_output(_validator_path(self.path), overwrite=True) as temporary:
                temporary.write_text(f"{self.url}\n{validator}", encoding="utf-8")
        if total > self.policy.max_bytes:
            allowed = f"more than the {readable_size(self.policy.max_bytes)} allowed"
            raise InputError(self.url, f"has {readable_size(total)}, {allowed}", self._by_hand())
        free, missing = shutil.disk_usage(self.path.parent).free, total - part.tell()
        if missing > free:
            what = f"needs {readable_size(missing)}, but the disk has {readable_size(free)} left"
            raise EnvironmentProblem(self.path, what, "free some space and run the same command again")
        return total

    def _append(self, response: http.client.HTTPResponse, part: FileIO, total: int) -> None:
        since, received = time.monotonic(), 0
        while part.tell() < total:
            block = response.read1(min(_BLOCK_BYTES, total - part.tell()))
            if not block:
                raise _TryAgain("the connection was cut")
            rest = memoryview(block)
            try:
                while rest:
                    rest = rest[part.write(rest) :]
            except OSError as error:
                raise explained(error, self.path) from error
            if self.progress is not None:
                self.progress(part.tell(), total)
            received += len(block)
            elapsed = time.monotonic() - since
            if elapsed > self.policy.timeout_seconds:
                if received < elapsed * self.policy.slowest_bytes_per_second:
                    raise _TryAgain("the server is too slow")
                since, received = time.monotonic(), 0

    def _unreachable(self, reason: str) -> SignspotError:
        fix = f"check the network, or {self._by_hand()}"
        return EnvironmentProblem(self.url, f"could not be fetched ({reason})", fix)

    def _by_hand(self) -> str:
        return f"get the file another way and put it at {self.path}"


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only within the host that was asked, over the same protocol."""

    def __init__(self, url: str) -> None:
        self._origin = urllib.parse.urlsplit(url)

    def http_error_302(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: http.client.HTTPMessage
    ) -> http.client.HTTPResponse | None:
        target = urllib.parse.urlsplit(urllib.parse.urljoin(req.full_url, headers.get("Location", "")))
        if (target.scheme, target.netloc) != (self._origin.scheme, self._origin.netloc):
            what = f"the server points elsewhere, to {target.netloc}"
            raise InputError(self._origin.geturl(), what, "do not trust it")
        followed: http.client.HTTPResponse | None = super().http_error_302(req, fp, code, msg, headers)
        return followed

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


def _checked_url(base_url: str, path: str) -> str:
    parts = urllib.parse.urlsplit(base_url)
    is_plain_but_local = parts.scheme == "http" and _is_loopback(parts.hostname or "")
    if not (parts.scheme == "https" or is_plain_but_local) or not parts.hostname or parts.username:
        raise InputError(base_url, "is not an https address", "give one that starts with https://")
    return urllib.parse.urljoin(base_url if base_url.endswith("/") else f"{base_url}/", path)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refuse_private(url: str) -> None:
    """A name that leads into a private network is not a public server, whoever answers there."""
    host = urllib.parse.urlsplit(url).hostname or ""
    if _is_loopback(host) or urllib.request.getproxies().get("https"):
        return  # a proxy looks the name up itself
    for *_, address in socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM):
        if not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_global:
            what = f"leads to {address[0]}, an address that is not public"
            raise InputError(url, what, "check the name and the network")


@contextmanager
def _partial_file(path: Path) -> Iterator[FileIO]:
    """What has arrived so far, at its end, for one process at a time."""
    try:
        # Unbuffered: on a full disk no byte may be left over that closing would try to write again.
        with FileIO(os.open(_part_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+") as part:
            take_lock(part)
            part.seek(0, os.SEEK_END)
            yield part
    except BlockingIOError as error:
        raise InputError(path, "is being fetched by another process", "wait for it") from error
    except OSError as error:
        raise explained(error, path) from error


def _restart(part: FileIO) -> None:
    part.seek(0)
    part.truncate()


def _part_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _validator_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.part.version")


def _record_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256.json")


def _recorded(path: Path) -> str:
    record = _record_path(path)
    try:
        return str(json.loads(record.read_text(encoding="utf-8"))["sha256"])
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(record, "is damaged", "delete it if the file beside it is to be trusted") from error
