"""Downloads against a real server on this machine that cuts, lies and dawdles as asked."""

from __future__ import annotations

import hashlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from signspot.errors import EnvironmentProblem, InputError
from signspot.files.download import DOWNLOADS, _FetchPolicy, fetch

CONTENT = bytes(range(256)) * 2000  # 512,000 bytes
HASTY = _FetchPolicy(attempts=3, backoff_seconds=0.01, timeout_seconds=0.5)
FILE = "mlp.pth.tar"


@dataclass
class Server:
    """What the server does; each request takes the next entry of a list, the last one stays."""

    url: str = ""
    content: bytes = CONTENT
    etag: str = '"v1"'
    ranges: bool = True
    cuts: list[int] = field(default_factory=lambda: [-1])  # bytes after which to hang up; -1: never
    status: list[int] = field(default_factory=lambda: [200])
    headers: dict[str, str] = field(default_factory=dict)
    pause_seconds: float = 0.0
    asked: list[str] = field(default_factory=list)  # the Range of each request

    def next(self, behaviour: list[int]) -> int:
        return behaviour.pop(0) if len(behaviour) > 1 else behaviour[0]


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.append(self.headers.get("Range", ""))
            status, cut = server.next(server.status), server.next(server.cuts)
            start = 0
            if status == 200 and server.ranges and self.headers.get("If-Range") == server.etag != "":
                start, status = int(self.headers["Range"].removeprefix("bytes=").rstrip("-")), 206
            body = server.content[start:]
            self.send_response(status)
            total = len(server.content)
            made = {"Content-Length": str(len(body)), "ETag": server.etag, "Content-Type": "application/x-tar"}
            if status == 206:
                made["Content-Range"] = f"bytes {start}-{total - 1}/{total}"
            for name, value in (made | server.headers).items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            try:
                for block in range(0, len(body) if cut < 0 else cut, 50_000):
                    time.sleep(server.pause_seconds)
                    self.wfile.write(body[block : block + 50_000])
            except OSError:
                pass  # the other side hung up first
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    behaviour = Server()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(behaviour)) as http:
        http.daemon_threads = True
        behaviour.url = f"http://127.0.0.1:{http.server_port}/"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield behaviour
        http.shutdown()
        thread.join()


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_is_fetched_once_and_its_hash_recorded(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    path = fetch("bsldict-mlp", tmp_path, base_url=server.url, progress=lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT)) and seen == sorted(seen)
    record = json.loads((tmp_path / f"{FILE}.sha256.json").read_text())
    assert record["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert names(tmp_path) == {FILE, f"{FILE}.sha256.json"}
    assert fetch("bsldict-mlp", tmp_path, base_url=server.url) == path
    assert len(server.asked) == 1


def test_a_cut_connection_is_taken_up_where_it_broke(server: Server, tmp_path: Path) -> None:
    server.cuts = [100_000, 50_000, 0, -1]
    path = fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=HASTY)
    assert path.read_bytes() == CONTENT
    assert server.asked == ["", "bytes=100000-", "bytes=150000-", "bytes=150000-"]


def test_a_later_run_takes_up_what_an_earlier_one_left(server: Server, tmp_path: Path) -> None:
    server.cuts = [200_000, 0]
    with pytest.raises(
        EnvironmentProblem, match=r"could not be fetched .*check the network, or get the file another way"
    ):
        fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=HASTY)
    assert FILE not in names(tmp_path)
    server.cuts = [-1]
    assert fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=HASTY).read_bytes() == CONTENT
    assert server.asked[-1] == "bytes=200000-"


def test_halves_of_two_versions_are_never_joined(server: Server, tmp_path: Path) -> None:
    server.cuts = [200_000, 0]
    with pytest.raises(EnvironmentProblem):
        fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=HASTY)
    server.cuts, server.etag, server.content = [-1], '"v2"', b"new" * 100_000
    assert fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=HASTY).read_bytes() == b"new" * 100_000


@pytest.mark.parametrize("etag", ['"v1"', "", 'W/"weak"'])
def test_a_server_that_cannot_resume_is_asked_for_the_whole_file_again(
    server: Server, tmp_path: Path, etag: str
) -> None:
    server.ranges, server.cuts, server.etag = False, [100_000, -1], etag
    assert fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=HASTY).read_bytes() == CONTENT


def test_a_part_the_server_cannot_continue_is_dropped(server: Server, tmp_path: Path) -> None:
    server.cuts, server.status = [100_000, -1], [200, 416, 200]
    assert fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=HASTY).read_bytes() == CONTENT
    assert server.asked == ["", "bytes=100000-", ""]


def test_a_wrong_part_is_dropped(server: Server, tmp_path: Path) -> None:
    server.cuts, server.headers = [100_000, -1], {}
    with pytest.raises(EnvironmentProblem):
        fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=_FetchPolicy(attempts=1))
    server.headers = {"Content-Range": "bytes 5-511999/512000"}
    with pytest.raises(EnvironmentProblem, match="another part of the file"):
        fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=_FetchPolicy(attempts=1))
    server.headers = {}
    assert fetch("bsldict-mlp", tmp_path, base_url=server.url).read_bytes() == CONTENT


def test_a_changed_file_on_the_disk_is_noticed(server: Server, tmp_path: Path) -> None:
    path = fetch("bsldict-mlp", tmp_path, base_url=server.url)
    path.write_bytes(CONTENT[:-1] + b"x")
    with pytest.raises(InputError, match="has changed since it was fetched"):
        fetch("bsldict-mlp", tmp_path, base_url=server.url)


def test_a_changed_file_on_the_server_is_not_published(server: Server, tmp_path: Path) -> None:
    path = fetch("bsldict-mlp", tmp_path, base_url=server.url)
    path.unlink()
    server.content = b"evil" * 1000
    with pytest.raises(InputError, match="not the one recorded before"):
        fetch("bsldict-mlp", tmp_path, base_url=server.url)
    assert not path.exists()
    server.content = CONTENT
    assert fetch("bsldict-mlp", tmp_path, base_url=server.url).read_bytes() == CONTENT


def test_a_file_brought_by_hand_is_taken_and_recorded_without_a_network(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"by hand")
    assert fetch("bsldict-mlp", tmp_path).read_bytes() == b"by hand"
    assert json.loads((tmp_path / f"{FILE}.sha256.json").read_text())["n_bytes"] == 7


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"x")
    (tmp_path / f"{FILE}.sha256.json").write_text("{")
    with pytest.raises(InputError, match=r"sha256\.json: is damaged"):
        fetch("bsldict-mlp", tmp_path)


@pytest.mark.parametrize(("status", "n_requests"), [(404, 1), (403, 1), (503, 3)])
def test_a_refusal_of_the_server_is_final_unless_it_may_pass(
    server: Server, tmp_path: Path, status: int, n_requests: int
) -> None:
    server.status = [status]
    with pytest.raises((InputError, EnvironmentProblem), match=f"the server answers {status}"):
        fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=HASTY)
    assert len(server.asked) == n_requests


def test_a_server_that_recovers_is_forgiven(server: Server, tmp_path: Path) -> None:
    server.status = [503, 500, 200]
    assert fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=HASTY).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"Content-Type": "text/html"}, "a web page came instead of the file"),
        ({"Content-Encoding": "gzip"}, "compressed"),
        ({"Content-Length": ""}, "does not say how long"),
        ({"Content-Length": "3000000000"}, "has 3 GB, more than the 2.1 GB allowed"),
    ],
)
def test_an_answer_that_cannot_be_the_file_is_refused(
    server: Server, tmp_path: Path, headers: dict[str, str], words: str
) -> None:
    server.headers = headers
    with pytest.raises((InputError, EnvironmentProblem), match=words):
        fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=HASTY)
    assert FILE not in names(tmp_path)


@pytest.mark.parametrize(
    "target", ["http://127.0.0.1:1/x", "https://example.org/x", "http://169.254.169.254/", "file:///etc/passwd"]
)
def test_a_redirect_to_another_place_is_not_followed(server: Server, tmp_path: Path, target: str) -> None:
    server.status, server.headers = [302], {"Location": target}
    with pytest.raises(InputError, match="the server points elsewhere"):
        fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=HASTY)


def test_a_redirect_within_the_host_is_followed(server: Server, tmp_path: Path) -> None:
    server.status, server.headers = [301, 200], {"Location": "/moved/here"}
    assert fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=HASTY).read_bytes() == CONTENT


def test_a_silent_and_a_dripping_server_are_given_up_on(server: Server, tmp_path: Path) -> None:
    server.pause_seconds = 2
    started = time.monotonic()
    with pytest.raises(EnvironmentProblem, match="timed out"):
        fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=_FetchPolicy(attempts=1, timeout_seconds=0.3))
    assert time.monotonic() - started < 2
    server.pause_seconds = 0.2
    slow = _FetchPolicy(attempts=1, timeout_seconds=0.5, slowest_bytes_per_second=10_000_000)
    with pytest.raises(EnvironmentProblem, match="the server is too slow"):
        fetch("bsldict-mlp", tmp_path, base_url=server.url, policy=slow)


def test_without_a_network_the_message_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:  # bound but not listening: nobody answers there
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        with pytest.raises(EnvironmentProblem, match=r"Connection refused.*put it at .*mlp.pth.tar"):
            fetch("bsldict-mlp", tmp_path, base_url=address, policy=HASTY)
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    with pytest.raises(EnvironmentProblem, match="no network"):
        fetch("bsldict-mlp", tmp_path, base_url="https://no-such-host.invalid/", policy=HASTY)


def test_a_private_address_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("https_proxy", raising=False)
    monkeypatch.delenv("HTTPS_PROXY", raising=False)
    for host in ("10.0.0.1", "169.254.169.254", "192.168.1.1", "[fe80::1]"):
        with pytest.raises(InputError, match="not public"):
            fetch("bsldict-mlp", tmp_path, base_url=f"https://{host}/", policy=HASTY)


@pytest.mark.parametrize("address", ["http://example.org/", "ftp://example.org/", "file:///etc/", "", "https://u:p@h/"])
def test_only_https_is_spoken_beyond_this_machine(tmp_path: Path, address: str) -> None:
    with pytest.raises(InputError, match="is not an https address"):
        fetch("bsldict-mlp", tmp_path, base_url=address)


def test_an_unknown_name_and_a_missing_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="choose one of: bsl1k, "):
        fetch("nonsense", tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        fetch("bsldict-mlp", tmp_path / "missing")


def test_two_downloads_of_one_file_do_not_meet(server: Server, tmp_path: Path) -> None:
    messages: list[str] = []

    def again(done: int, total: int) -> None:
        if not messages:
            with pytest.raises(InputError, match="another process") as caught:
                fetch("bsldict-mlp", tmp_path, base_url=server.url)
            messages.append(str(caught.value))

    assert fetch("bsldict-mlp", tmp_path, base_url=server.url, progress=again).read_bytes() == CONTENT
    assert messages


DISK_FULL = """
import resource, signal, sys
from pathlib import Path
from signspot.errors import EnvironmentProblem
from signspot.files.download import fetch
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    fetch("bsldict-mlp", Path(sys.argv[1]), base_url=sys.argv[2])
except EnvironmentProblem as error:
    print(error)
"""


def test_a_full_disk_is_named_and_the_next_run_goes_on(server: Server, tmp_path: Path) -> None:
    command = [sys.executable, "-c", DISK_FULL, str(tmp_path), server.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "the disk is full: free some space and run the same command again" in done.stdout
    assert FILE not in names(tmp_path)
    assert fetch("bsldict-mlp", tmp_path, base_url=server.url).read_bytes() == CONTENT
    assert server.asked == ["", "bytes=200000-"]


def test_a_disk_too_small_for_the_file_is_named_before_anything_is_written(server: Server, tmp_path: Path) -> None:
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", tmp_path], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk is not permitted here")
    try:
        with pytest.raises(EnvironmentProblem, match=r"needs 512 kB, but the disk has \d+(\.\d)? kB left: free"):
            fetch("bsldict-mlp", tmp_path, base_url=server.url)
        assert FILE not in names(tmp_path)
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_every_released_file_has_its_own_name() -> None:
    assert len({download.file_name for download in DOWNLOADS.values()}) == len(DOWNLOADS)
    assert {"bsldict", "bsldict-dictionary", "bsl1k", "kinetics", "wlasl16"} <= set(DOWNLOADS)
