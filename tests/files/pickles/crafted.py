"""Files that try to run code, fill the memory or mislead, made on the spot."""

from __future__ import annotations

import collections
import io
import os
import pickle
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

PROTO4 = b"\x80\x04"
LEGACY_START = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})


class Payload:
    """Touches the canary when it is unpickled by the standard library."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (f"touch {self.canary}",)


class Loaded:
    """Touches the canary when its state is restored."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __setstate__(self, state: object) -> None:
        raise AssertionError("a class of the file's choice was used")


def text(word: str) -> bytes:
    """SHORT_BINUNICODE."""
    return b"\x8c" + bytes([len(word.encode())]) + word.encode()


def torch_zip(path: Path, data_pkl: bytes, **extra: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", data_pkl)
        archive.writestr("archive/version", b"3\n")
        for name, content in extra.items():
            archive.writestr(f"archive/{name.replace('__', '/').replace('_dot_', '.')}", content)


def plain_pickle(path: Path, canary: Path) -> None:
    path.write_bytes(pickle.dumps({"state_dict": Payload(canary)}))


def zip_payload(path: Path, canary: Path) -> None:
    torch.save({"w": torch.ones(2), "x": Payload(canary)}, path)


def legacy_payload(path: Path, canary: Path) -> None:
    torch.save({"w": torch.ones(2), "x": Payload(canary)}, path, _use_new_zipfile_serialization=False)


def legacy_payload_in_the_last_pickle(path: Path, canary: Path) -> None:
    """The list of storage keys is a pickle too."""
    parts = [*LEGACY_START, {"w": 1}, [Payload(canary)]]
    path.write_bytes(b"".join(pickle.dumps(part, 2) for part in parts))


def tar_container(path: Path, canary: Path) -> None:
    with tarfile.open(path, "w") as archive:
        for name in ("storages", "tensors", "pickle"):
            content = pickle.dumps(Payload(canary))
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))


def torchscript(path: Path, canary: Path) -> None:
    torch_zip(path, pickle.dumps({}), constants_dot_pkl=pickle.dumps(()), code__a_dot_py=b"import os")


def zip_with_a_program(path: Path, canary: Path) -> None:
    torch_zip(path, pickle.dumps({}), setup_dot_py=b"import os")


def zip_bomb(path: Path, canary: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}))
        archive.writestr("archive/data/0", bytes(50_000_000))


def zip_with_two_pickles(path: Path, canary: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({}))
        # The name is changed afterwards: writing it twice would only give a warning here.
        archive.writestr("archive/dato.pkl", pickle.dumps(Payload(canary)))
    path.write_bytes(path.read_bytes().replace(b"dato.pkl", b"data.pkl"))


def zip_with_a_tail(path: Path, canary: Path) -> None:
    torch.save({"w": torch.ones(2)}, path)
    with path.open("ab") as file:
        file.write(pickle.dumps(Payload(canary)))


def bytearray_bomb(path: Path, canary: Path) -> None:
    path.write_bytes(b"\x80\x02cbuiltins\nbytearray\n\x8a\x05" + struct.pack("<q", 3_000_000_000)[:5] + b"\x85R.")


def bytearray_bomb_for_torch(path: Path, canary: Path) -> None:
    bytearray_bomb(path, canary)
    torch_zip(path, path.read_bytes())


def memo_bomb(path: Path, canary: Path) -> None:
    path.write_bytes(b"\x80\x02]r" + struct.pack("<L", 0xFFFFFFF0) + b".")


def load_from_bytes(path: Path, canary: Path) -> None:
    path.write_bytes(pickle.dumps({"features": torch.ones(3)}))


def names_from_the_memo(path: Path, canary: Path) -> None:
    words = text("system") + b"\x940" + text("posix") + b"\x940"
    path.write_bytes(PROTO4 + words + b"h\x01h\x00\x93" + text(f"touch {canary}") + b"\x85R.")


def getattr_chain(path: Path, canary: Path) -> None:
    wanted = text("builtins") + text("getattr") + b"\x93" + text("os") + text("system") + b"\x86R"
    path.write_bytes(PROTO4 + wanted + text(f"touch {canary}") + b"\x85R.")


def builtin_eval(path: Path, canary: Path) -> None:
    path.write_bytes(PROTO4 + text("builtins") + text("eval") + b"\x93" + text(f"open('{canary}', 'w')") + b"\x85R.")


def hidden_name(path: Path, canary: Path) -> None:
    """The two words are on the stack, but the last instruction, a state of nothing, did not put them there."""
    words = text("posix") + text("system") + b"Nb"
    path.write_bytes(PROTO4 + words + b"\x93" + text(f"touch {canary}") + b"\x85R.")


def inst(path: Path, canary: Path) -> None:
    path.write_bytes(f"(S'touch {canary}'\nios\nsystem\n.".encode())


def obj(path: Path, canary: Path) -> None:
    path.write_bytes(f"(cos\nsystem\nS'touch {canary}'\no.".encode())


def newobj(path: Path, canary: Path) -> None:
    path.write_bytes(b"\x80\x02cnumpy\nndarray\n(K\x05K\x05t\x85\x81.")


def setstate(path: Path, canary: Path) -> None:
    path.write_bytes(pickle.dumps(Loaded(canary)))


def persistent_id(path: Path, canary: Path) -> None:
    path.write_bytes(b"\x80\x02X\x01\x00\x00\x00aQ.")


def extension_registry(path: Path, canary: Path) -> None:
    path.write_bytes(b"\x80\x02\x82\x01.")


def object_array_payload(path: Path, canary: Path) -> None:
    array = np.empty(1, dtype=object)
    array[0] = Payload(canary)
    path.write_bytes(pickle.dumps({"features": array}))


def truncated(path: Path, canary: Path) -> None:
    path.write_bytes(pickle.dumps({"words": ["apple"] * 50, "x": 1.5})[:-9])


def truncated_zip(path: Path, canary: Path) -> None:
    torch.save({"w": torch.ones(200)}, path)
    path.write_bytes(path.read_bytes()[:-300])


def web_page(path: Path, canary: Path) -> None:
    path.write_text("\n<!DOCTYPE html><html>404</html>")


def empty(path: Path, canary: Path) -> None:
    path.write_bytes(b"")


Maker = Callable[[Path, Path], None]

# What is refused before any process starts, and the words the user sees.
STATIC: dict[Maker, str] = {
    plain_pickle: "refused: wants posix.system.*Nothing was run. Get a .safetensors file",
    zip_payload: "refused: wants posix.system",
    legacy_payload: "refused: wants posix.system",
    legacy_payload_in_the_last_pickle: "refused: wants posix.system",
    tar_container: "is a tar archive",
    torchscript: "is a TorchScript archive",
    zip_with_a_program: r"holds 'setup.py', which no file of weights has",
    zip_bomb: r"would unpack \d+.\d times as much",
    zip_with_two_pickles: "two records of one name",
    zip_with_a_tail: "something after its end",
    bytearray_bomb: "refused: wants builtins.bytearray",
    bytearray_bomb_for_torch: "refused: wants builtins.bytearray",
    memo_bomb: "would fill the memory",
    load_from_bytes: "refused: wants .*torch.storage._load_from_bytes",
    names_from_the_memo: "refused: wants posix.system",
    getattr_chain: "refused: wants builtins.getattr",
    builtin_eval: "refused: wants builtins.eval",
    hidden_name: "hides the name of a function",
    inst: "refused: wants os.system",
    obj: "refused: wants os.system",
    newobj: "pickle instruction NEWOBJ",
    setstate: "refused: wants tests.files.pickles.crafted.Loaded",
    persistent_id: "pickle instruction BINPERSID",
    extension_registry: "pickle instruction EXT1",
    object_array_payload: "refused: wants posix.system",
    truncated: "a damaged one",
    truncated_zip: "cut off",
    web_page: "is a web page",
    empty: "is empty",
}


def deep_list(path: Path) -> None:
    path.write_bytes(PROTO4 + b"]" * 200_000 + b"a" * 199_999 + b".")


def deep_tuple(path: Path) -> None:
    path.write_bytes(PROTO4 + b")" + b"\x85" * 200_000 + b".")


def list_in_itself(path: Path) -> None:
    loop: list[object] = []
    loop.append(loop)
    path.write_bytes(pickle.dumps(loop))


def unfolding_lists(path: Path) -> None:
    """Two references to the level below, forty times: a billion billion parts in 200 bytes."""
    level: list[object] = []
    for _ in range(40):
        level = [level, level]
    path.write_bytes(pickle.dumps(level))


def unfolding_key(path: Path) -> None:
    """The same with tuples, as a key of a dict: hashing it would take years."""
    levels = b"".join(b"\x94h" + bytes([i]) + b"\x86" for i in range(60))
    path.write_bytes(PROTO4 + b"}" + b")" + levels + b"K\x01s.")


def array_without_numbers(path: Path) -> None:
    honest = pickle.dumps(np.arange(4, dtype=np.int64), 2)
    path.write_bytes(honest.replace(b"K\x04\x85", b"J\xff\xff\xff\x7f\x85"))


def dates(path: Path) -> None:
    path.write_bytes(pickle.dumps(np.array(["2020-01-01"], dtype="M8[D]")))


def state_of_a_function(path: Path) -> None:
    path.write_bytes(b"\x80\x02ccollections\nOrderedDict\n}X\x08\x00\x00\x00__code__K\x01sb.")


def call_of_a_default(path: Path) -> None:
    path.write_bytes(b"\x80\x02cbuiltins\nint\nK\x05\x85R.")


# What only the process with the fence can tell.
IN_THE_CHILD: dict[Callable[[Path], None], str] = {
    deep_list: "nested more than 64 levels",
    deep_tuple: "nested more than 64 levels",
    list_in_itself: "nested more than 64 levels",
    unfolding_lists: "unfolds to far more",
    unfolding_key: "too much time or memory",
    array_without_numbers: "without the numbers for it|impossible shape",
    dates: "neither numbers nor text",
    state_of_a_function: "cannot be read|not plain data",
    call_of_a_default: "cannot be read",
}


class _Storage:
    """Stands where a storage would, in a hand-made legacy file."""

    def __init__(self, numel: int) -> None:
        self.numel = numel


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: object) -> object:
        if isinstance(value, _Storage):
            return ("storage", torch.FloatStorage, "0", "cpu", value.numel, None)
        return None


class _Tensor:
    def __init__(self, numel: int) -> None:
        self.numel = numel

    def __reduce__(self) -> tuple[object, ...]:
        arguments = (_Storage(self.numel), 0, (self.numel,), (1,), False, collections.OrderedDict())
        return torch._utils._rebuild_tensor_v2, arguments


def huge_storage(path: Path) -> None:
    """A legacy file of a few hundred bytes with a tensor of four terabytes."""
    body = io.BytesIO()
    _Pickler(body, 2).dump({"w": _Tensor(10**12)})
    start = b"".join(pickle.dumps(part, 2) for part in LEGACY_START)
    path.write_bytes(start + body.getvalue() + pickle.dumps(["0"], 2) + struct.pack("<q", 10**12))


def expanded_tensor(path: Path) -> None:
    torch.save({"w": torch.zeros(1).expand(10**10)}, path)
