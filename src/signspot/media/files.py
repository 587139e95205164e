"""Opening a file that should be a video: read-only, never blocking, and saying what else it is.

The decoder gets an open file, not a name: no name can be taken for an address, an option or a list of other files.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
from pathlib import Path

from signspot.errors import VideoError

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # pathlib has already folded "//" to "/"
_CHUNK = 1 << 20

STILL_IMAGE = ("is a still image, not a video", "give a video of the sign")
_SOUND = ("has sound but no pictures (audio-only)", "give the video recording")
_PLAYLIST = ("is a playlist, not a video", "give the video file it points to")
_PAGE = ("is a web page, not a video: perhaps a download that failed", "download the video again")
_ARCHIVE = ("is an archive, not a video", "unpack it and give the video inside")

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", STILL_IMAGE),
    (b"\xff\xd8\xff", STILL_IMAGE),
    (b"BM", STILL_IMAGE),
    (b"II*\0", STILL_IMAGE),
    (b"MM\0*", STILL_IMAGE),
    (b"8BPS", STILL_IMAGE),
    (b"ID3", _SOUND),
    (b"fLaC", _SOUND),
    (b"PK\x03\x04", _ARCHIVE),
    (b"\x1f\x8b", _ARCHIVE),
    (b"7z\xbc\xaf", _ARCHIVE),
    (b"Rar!", _ARCHIVE),
    (b"%PDF", ("is a PDF document, not a video", "give the video file")),
)
_RIFF_KINDS = {b"WEBP": STILL_IMAGE, b"WAVE": _SOUND}
_STILL_BRANDS = {b"heic", b"heix", b"mif1", b"avif"}
_TEXTS = (
    (b"#extm3u", _PLAYLIST),
    (b"ffconcat", _PLAYLIST),
    (b"[playlist]", _PLAYLIST),
    (b"<smil", _PLAYLIST),
    (b"<mpd", _PLAYLIST),
    (b"<?xml", _PLAYLIST),
    (b"<!doctype html", _PAGE),
    (b"<html", _PAGE),
    (
        b"version https://git-lfs",
        ("is a Git LFS pointer, not the video itself", "fetch the video with `git lfs pull`"),
    ),
)


def open_media(path: Path) -> io.FileIO:
    """Open `path` for reading if it is an ordinary file that may be a video, else say what is wrong with it."""
    file = _open_ordinary(path)
    try:
        head = file.read(4096) or b""
        file.seek(0)
    except OSError as error:
        file.close()
        raise unreadable(path, error) from error
    other = ("is an empty file (0 bytes)", "copy or record it again") if not head else _other_kind(head)
    if other:
        file.close()
        raise VideoError(path, *other)
    return file


def media_sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with _open_ordinary(path) as file:
        try:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        except OSError as error:
            raise unreadable(path, error) from error
    return digest.hexdigest()


def _open_ordinary(path: Path) -> io.FileIO:
    if _ADDRESS.match(str(path)):
        raise VideoError(path, "is an address, not a file", "download the video first and give its file name")
    try:
        # Without O_NONBLOCK, opening a named pipe waits for a writer that may never come.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL byte
        raise unreadable(path, error) from error
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise VideoError(path, "is a folder", "name one video file")
        if not stat.S_ISREG(mode):
            raise VideoError(path, "is a pipe or a device, not a file", "save the video to a file first")
        return io.FileIO(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def unreadable(path: Path, error: OSError | ValueError) -> VideoError:
    """Say in the user's words why `path` could not be read."""
    if isinstance(error, FileNotFoundError | NotADirectoryError | ValueError):
        return VideoError(path, "there is no such file", "check the name")
    if isinstance(error, PermissionError):
        return VideoError(path, "may not be read", "change its permissions, or ask its owner")
    return VideoError(path, f"could not be read ({error.strerror or error})", "check the disk or the connection to it")


def _other_kind(head: bytes) -> tuple[str, str] | None:
    """What the first bytes of a file are, and what to do, if they cannot be a video."""
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    if head.startswith(b"RIFF"):
        return _RIFF_KINDS.get(head[8:12])
    if head[4:8] == b"ftyp" and head[8:12] in _STILL_BRANDS:
        return STILL_IMAGE
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return next((kind for start, kind in _TEXTS if text.startswith(start)), None)
