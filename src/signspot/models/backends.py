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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from signspot.errors import EnvironmentProblem, InputError, MissingExtra

Program = Callable[..., tuple[Tensor, ...]]

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
        return f"torch-{str(self._dtype).removeprefix('torch.')}"

    @property
    def _dtype(self) -> torch.dtype:
        return self.dtype or (torch.float16 if self.device.startswith("cuda") else torch.float32)

    def compiled(self, network: nn.Module, examples: tuple[Tensor, ...]) -> Program:
        network = network.eval().to(self.device, self._dtype)
        for parameter in network.parameters():
            parameter.data = _arranged(parameter.data)

        @torch.inference_mode()
        def run(*inputs: Tensor) -> tuple[Tensor, ...]:
            outputs: tuple[Tensor, ...] = network(*(_arranged(rows.to(self.device, self._dtype)) for rows in inputs))
            return outputs

        return run


@dataclass(frozen=True, slots=True)
class _OpenVinoBackend:
    """OpenVINO on the processor; bf16 only where the processor computes in it."""

    precision: Literal["fp32", "bf16"] = "fp32"
    threads: int | None = None  # None: one per core the process may use

    def __post_init__(self) -> None:
        if self.precision == "fp32":
            return
        if "BF16" not in _openvino().Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            what = "this processor does not compute in bf16"
            raise EnvironmentProblem("openvino-bf16", what, "use openvino or torch")

    @property
    def name(self) -> str:
        return f"openvino-{self.precision}"

    @property
    def device(self) -> str:
        return "cpu"

    def compiled(self, network: nn.Module, examples: tuple[Tensor, ...]) -> Program:
        """Compile for exactly these shapes; a batch with fewer rows is filled up with zeros and cut again."""
        openvino = _openvino()
        model = _openvino_model(openvino, network.eval(), [tuple(example.shape) for example in examples])
        settings = {
            "INFERENCE_PRECISION_HINT": {"fp32": "f32", "bf16": "bf16"}[self.precision],
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": self.threads or len(os.sched_getaffinity(0)),
        }
        request = openvino.Core().compile_model(model, "CPU", settings).create_infer_request()
        n_rows = len(examples[0])
        del network, model  # weights are packed now
        # Give back what the compiler has freed: glibc would keep about 100 MB of it. Other C libraries have no trim.
        getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)(0)

        def run(*inputs: Tensor) -> tuple[Tensor, ...]:
            missing = n_rows - len(inputs[0])
            padded = (F.pad(rows, [0, 0] * (rows.ndim - 1) + [0, missing]) if missing else rows for rows in inputs)
            filled = [rows.contiguous().numpy() for rows in padded]
            outputs = request.infer(filled, share_inputs=True, share_outputs=True)
            return tuple(torch.from_numpy(rows[: len(rows) - missing]) for rows in outputs.values())

        return run


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
        return _OpenVinoBackend("bf16")
    if choice == "openvino" or (choice == "auto" and device == "cpu" and importlib.util.find_spec("openvino")):
        _openvino()
        return _OpenVinoBackend()
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
    return openvino  # type: ignore[no-any-return]


def _arranged(tensor: Tensor) -> Tensor:
    layout = _LAYOUTS.get(tensor.ndim)
    return tensor if layout is None else tensor.contiguous(memory_format=layout)


# A PyTorch network as an OpenVINO model. The network runs once, on stand-ins for tensors that have a shape but no
# numbers, and every operation on the way becomes its counterpart. OpenVINO's own converter goes through `torch.export`,
# which takes 100 MB and seconds before it begins. Only what the networks of this package use is known here; anything
# else raises.

Node = Any  # of OpenVINO, which has no types
_Shape = tuple[int, ...]


def _openvino_model(openvino: ModuleType, network: nn.Module, shapes: Sequence[_Shape]) -> Any:
    """The OpenVINO model of `network` for float32 inputs of exactly these shapes; it shares the network's weights."""
    graph = _Graph(openvino.opset14)
    parameters = [openvino.opset14.parameter(list(shape), openvino.Type.f32) for shape in shapes]
    outputs = network(*(_StandIn(graph, parameter.output(0)) for parameter in parameters))
    return openvino.Model([openvino.opset14.result(output.node) for output in outputs], parameters)


class _Graph:
    """Where nodes come from."""

    def __init__(self, opset: ModuleType) -> None:
        self.opset = opset
        self._weights: dict[int, tuple[Tensor, Node]] = {}  # by id, which stays taken as long as the tensor is here

    def node(self, value: _StandIn | Tensor | float) -> Node:
        """What computes a value; a constant if nothing has to be computed."""
        if isinstance(value, _StandIn):
            return value.node
        if not isinstance(value, Tensor):
            return self.opset.constant(value, dtype="float32")
        if id(value) not in self._weights:
            constant = self.opset.constant(value.detach().numpy(), shared_memory=True)
            self._weights[id(value)] = value, constant
        return self._weights[id(value)][1]

    def numbers(self, values: Sequence[int]) -> Node:
        return self.opset.constant(list(values), dtype="int64")


@dataclass(frozen=True, slots=True)
class _Call:
    """An operation that has just been noticed."""

    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def _operation(name: str) -> Callable[..., _StandIn]:
    return lambda *args, **kwargs: _noted(_Call(name, args, kwargs))


class _StandIn:
    """Takes the place of a tensor in the code of a network."""

    def __init__(self, graph: _Graph, node: Node) -> None:
        self.graph, self.node = graph, node

    @property
    def shape(self) -> _Shape:
        return tuple(self.node.get_shape())

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> _StandIn:
        """PyTorch calls this for each of its functions that is given a stand-in."""
        return _noted(_Call(func.__name__.strip("_"), args, kwargs or {}))

    # What networks do to a tensor without calling a function of torch.
    __getitem__, __neg__, mean = _operation("getitem"), _operation("neg"), _operation("mean")
    __add__, __sub__, __mul__ = _operation("add"), _operation("sub"), _operation("mul")
    __radd__, __rmul__ = __add__, __mul__


def _noted(call: _Call) -> _StandIn:
    if call.name not in _COUNTERPARTS:
        raise ValueError(f"{call.name} has no counterpart in OpenVINO here")
    several = call.args[0] if isinstance(call.args[0], list | tuple) else call.args
    graph = next(value.graph for value in several if isinstance(value, _StandIn))
    node = _COUNTERPARTS[call.name](graph, call)
    return _StandIn(graph, node.output(0) if hasattr(node, "output") else node)


def _arguments(call: _Call, **defaults: Any) -> list[Any]:
    """The arguments of a call in the order of `defaults`, which says the names and what holds where one is missing."""
    given = {**dict(zip(defaults, call.args, strict=False)), **call.kwargs}
    if len(call.args) > len(defaults) or not given.keys() <= defaults.keys():
        raise ValueError(f"{call.name} with {sorted(given)} has no counterpart in OpenVINO here")
    return [given.get(name, default) for name, default in defaults.items()]


def _convolution(graph: _Graph, call: _Call) -> Node:
    maps, weight, bias, stride, padding, dilation, groups = _arguments(
        call, input=None, weight=None, bias=None, stride=1, padding=0, dilation=1, groups=1
    )
    n_axes = maps.ndim - 2
    if groups != 1 or isinstance(padding, str):
        raise ValueError(f"{call.name} in groups, or padded {padding!r}, has no counterpart in OpenVINO here")
    pads = _each(padding, n_axes)
    node = graph.opset.convolution(
        graph.node(maps), graph.node(weight), _each(stride, n_axes), pads, pads, _each(dilation, n_axes)
    )
    if bias is None:
        return node
    shape = graph.numbers([1, len(bias)] + [1] * n_axes)
    return graph.opset.add(node, graph.opset.reshape(graph.node(bias), shape, special_zero=False))


def _max_pool(graph: _Graph, call: _Call) -> Node:
    maps, kernel_size, stride, padding, dilation, ceil_mode, _ = _arguments(
        call, input=None, kernel_size=1, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
    )
    n_axes = maps.ndim - 2
    kernel, pads, dilations = (_each(value, n_axes) for value in (kernel_size, padding, dilation))
    steps = _each(stride, n_axes) if stride else kernel
    rounding = "ceil_torch" if ceil_mode else "floor"
    return graph.opset.max_pool(graph.node(maps), steps, dilations, pads, pads, kernel, rounding)


def _pad(graph: _Graph, call: _Call) -> Node:
    maps, pad, mode, value = _arguments(call, input=None, pad=(), mode="constant", value=None)
    amounts = [*pad, *[0] * (2 * maps.ndim - len(pad))]  # before and after each axis, from the last to the first
    before, after = graph.numbers(amounts[-2::-2]), graph.numbers(amounts[::-2])
    return graph.opset.pad(graph.node(maps), before, after, mode, graph.node(float(value or 0)))


def _part(graph: _Graph, call: _Call) -> Node:
    maps, index = _arguments(call, maps=None, index=None)
    node, sizes = graph.node(maps), iter(maps.shape)
    for axis, part in enumerate(index if isinstance(index, tuple) else (index,)):
        if part is None:
            node = graph.opset.unsqueeze(node, graph.numbers([axis]))
        elif isinstance(part, slice):
            bounds = part.indices(next(sizes))
            if part != slice(None):
                node = graph.opset.slice(node, *(graph.numbers([number]) for number in (*bounds, axis)))
        else:
            raise ValueError(f"an index {part!r} has no counterpart in OpenVINO here")
    return node


def _cat(graph: _Graph, call: _Call) -> Node:
    tensors, dim = _arguments(call, tensors=(), dim=0)
    return graph.opset.concat([graph.node(tensor) for tensor in tensors], dim)


def _stack(graph: _Graph, call: _Call) -> Node:
    tensors, dim = _arguments(call, tensors=(), dim=0)
    axis = graph.numbers([dim])
    return graph.opset.concat([graph.opset.unsqueeze(graph.node(tensor), axis) for tensor in tensors], dim)


def _linear(graph: _Graph, call: _Call) -> Node:
    rows, weight, bias = _arguments(call, input=None, weight=None, bias=None)
    product = graph.opset.matmul(graph.node(rows), graph.node(weight), transpose_a=False, transpose_b=True)
    return product if bias is None else graph.opset.add(product, graph.node(bias))


def _mean(graph: _Graph, call: _Call) -> Node:
    maps, dim, keepdim = _arguments(call, input=None, dim=None, keepdim=False)
    return graph.opset.reduce_mean(graph.node(maps), graph.numbers(dim), keep_dims=keepdim)


def _each(value: Any, n_axes: int) -> list[int]:
    values = [value] * n_axes if isinstance(value, int) else list(value)
    return [int(one) for one in (values * n_axes if len(values) == 1 else values)]


def _one(name: str) -> _Counterpart:
    return lambda graph, call: getattr(graph.opset, name)(graph.node(call.args[0]))


def _two(name: str) -> _Counterpart:
    return lambda graph, call: getattr(graph.opset, name)(*map(graph.node, _arguments(call, left=None, right=None)))


_Counterpart = Callable[[_Graph, _Call], Node]

_COUNTERPARTS: dict[str, _Counterpart] = {
    "conv2d": _convolution,
    "conv3d": _convolution,
    "max_pool2d": _max_pool,
    "max_pool3d": _max_pool,
    "pad": _pad,
    "getitem": _part,
    "cat": _cat,
    "stack": _stack,
    "linear": _linear,
    "mean": _mean,
    "relu": _one("relu"),
    "sigmoid": _one("sigmoid"),
    "neg": _one("negative"),
    "maximum": _two("maximum"),
    "add": _two("add"),
    "sub": _two("subtract"),
    "mul": _two("multiply"),
}
