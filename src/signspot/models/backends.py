"""Where networks run: PyTorch (the reference) or OpenVINO, behind one small interface.

A backend turns a network and example inputs into a program: tensors in, a tuple of tensors out. All axes but the first
are fixed; along the first, a program takes as many rows as its examples had, or fewer. What it gives is valid until it
is called again.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from signspot.errors import EnvironmentProblem, InputError, MissingExtra
from signspot.models.openvino_graph import openvino_model

Program = Callable[..., tuple[Tensor, ...]]
Choice = Literal["auto", "torch", "openvino", "openvino-bf16"]

_TELEMETRY = "openvino_telemetry"
_LAYOUTS = {4: torch.channels_last, 5: torch.channels_last_3d}  # by the number of axes: what convolutions like best


class Backend(Protocol):
    """A way to run networks."""

    @property
    def name(self) -> str:
        """The backend and its precision: vectors of different names are never compared."""

    @property
    def device(self) -> str:
        """Where the tensors of its programs live."""

    def compiled(self, network: nn.Module, examples: tuple[Tensor, ...]) -> Program:
        """A program for `network`, which gives a tuple of tensors; the network must not be used afterwards."""


@dataclass(frozen=True, slots=True)
class TorchBackend:
    """Eager PyTorch: float32 on a processor, float16 on a graphics card."""

    device: str = "cpu"
    dtype: torch.dtype | None = None  # None: what the device is best at

    @property
    def name(self) -> str:
        """Such as torch-float32."""
        return f"torch-{str(self._dtype).removeprefix('torch.')}"

    @property
    def _dtype(self) -> torch.dtype:
        return self.dtype or (torch.float16 if self.device.startswith("cuda") else torch.float32)

    def compiled(self, network: nn.Module, examples: tuple[Tensor, ...]) -> Program:
        """The network itself, in the layout and precision of the backend."""
        network = network.eval().to(self.device, self._dtype)
        for parameter in network.parameters():
            parameter.data = _arranged(parameter.data)

        @torch.inference_mode()
        def run(*inputs: Tensor) -> tuple[Tensor, ...]:
            outputs: tuple[Tensor, ...] = network(*(_arranged(rows.to(self.device, self._dtype)) for rows in inputs))
            return outputs

        return run


@dataclass(frozen=True, slots=True)
class OpenVinoBackend:
    """OpenVINO on the processor; bf16 only where the processor computes in it."""

    precision: Literal["fp32", "bf16"] = "fp32"
    threads: int | None = None  # None: one per core the process may use

    def __post_init__(self) -> None:
        if self.precision == "bf16" and "BF16" not in _openvino().Core().get_property(
            "CPU", "OPTIMIZATION_CAPABILITIES"
        ):
            raise EnvironmentProblem(
                "openvino-bf16", "this processor does not compute in bf16", "use openvino or torch"
            )

    @property
    def name(self) -> str:
        """Such as openvino-fp32."""
        return f"openvino-{self.precision}"

    @property
    def device(self) -> str:
        """Always the processor."""
        return "cpu"

    def compiled(self, network: nn.Module, examples: tuple[Tensor, ...]) -> Program:
        """Compile for exactly these shapes; a batch with fewer rows is filled up with zeros and cut again."""
        openvino = _openvino()
        model = openvino_model(openvino, network.eval(), [tuple(example.shape) for example in examples])
        compiled = openvino.Core().compile_model(model, "CPU", self._settings())
        request = compiled.create_infer_request()
        n_rows = len(examples[0])
        del network, model  # weights are packed now
        _trim_memory()

        def run(*inputs: Tensor) -> tuple[Tensor, ...]:
            missing = n_rows - len(inputs[0])
            filled = [_filled(rows, missing).numpy() for rows in inputs]
            outputs = request.infer(filled, share_inputs=True, share_outputs=True)
            return tuple(torch.from_numpy(rows[: len(rows) - missing]) for rows in outputs.values())

        return run

    def _settings(self) -> dict[str, Any]:
        threads = self.threads or len(os.sched_getaffinity(0))
        return {
            "INFERENCE_PRECISION_HINT": {"fp32": "f32", "bf16": "bf16"}[self.precision],
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
        }


def choose_backend(choice: str = "auto", *, device: str = "cpu") -> Backend:
    """The backend of that name; `auto` is OpenVINO in float32 where it is installed, PyTorch otherwise."""
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise EnvironmentProblem(device, "no graphics card that PyTorch can use", "use the device cpu")
    if device != "cpu" and not device.startswith("cuda"):
        raise InputError(device, "no such device", "choose cpu or cuda")
    if choice not in ("auto", "torch", "openvino", "openvino-bf16"):
        raise InputError(choice, "no such backend", "choose one of: auto, torch, openvino, openvino-bf16")
    if choice.startswith("openvino") and device != "cpu":
        raise InputError(choice, f"does not run on {device}", "use the backend torch, or the device cpu")
    if choice == "openvino-bf16":
        return OpenVinoBackend("bf16")
    if choice == "openvino" or (choice == "auto" and device == "cpu" and importlib.util.find_spec("openvino")):
        _openvino()
        return OpenVinoBackend()
    return TorchBackend(device)


def _openvino() -> ModuleType:
    # `import openvino` loads its converter, which reports every import to an analytics server and keeps an id of this
    # computer in ~/intel. Where its reporting package cannot be imported, it falls back to one that does nothing.
    silenced = "openvino" not in sys.modules and _TELEMETRY not in sys.modules
    if silenced:
        sys.modules[_TELEMETRY] = None  # type: ignore[assignment]
    try:
        import openvino
    except ImportError as error:
        raise MissingExtra.named("the backend openvino", "openvino") from error
    finally:
        if silenced:
            sys.modules.pop(_TELEMETRY, None)
    module: ModuleType = openvino
    return module


def _trim_memory() -> None:
    """Give back what the compiler has freed: glibc would keep about 100 MB of it for later."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
    if trim is not None:
        trim(0)


def _arranged(tensor: Tensor) -> Tensor:
    layout = _LAYOUTS.get(tensor.ndim)
    return tensor if layout is None else tensor.contiguous(memory_format=layout)


def _filled(rows: Tensor, missing: int) -> Tensor:
    if missing:
        rows = F.pad(rows, [0, 0] * (rows.ndim - 1) + [0, missing])
    return rows.contiguous()
