# SPDX-License-Identifier: Apache-2.0
import os
from types import TracebackType
from typing import (
    Any,
    Callable,
    Literal,
    Mapping,
    Sequence,
    final,
    overload,
)

from ._types import DeviceType, DType

__version__: str
CapsuleType: type

_Option = str | bool | int | float | Sequence[int]
_Progress = Callable[[int, int], bool | None] | None
_Wish = (
    tuple[bool | None, str, str]
    | tuple[bool | None, str, str, str | None, str | None]
    | tuple[bool | None, str, str, str | None, str | None, _Progress]
)

@final
class Tensor:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def layout(self) -> tuple[str, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def byte_offset(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> Device: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def copied(self) -> bool: ...
    @property
    def padded(self) -> bool: ...
    @property
    def owner_alive(self) -> bool: ...
    @property
    def address(self) -> int | None: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def wait(self) -> Tensor: ...
    def close(self) -> None: ...
    def __enter__(self) -> Tensor: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class Receipt:
    @property
    def route(self) -> Literal["alias", "copy", "stage", "refuse"]: ...
    @property
    def reasons(self) -> list[tuple[str, str]]: ...
    @property
    def bytes_moved(self) -> int: ...
    @property
    def hops(self) -> int: ...
    @property
    def code(self) -> int: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...
    def json(self) -> str: ...

@final
class Device:
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    @property
    def type(self) -> DeviceType: ...
    @property
    def id(self) -> int: ...
    @property
    def backend(self) -> Backend: ...
    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def memories(self) -> list[tuple[str, int]]: ...

@final
class Backend:
    @property
    def name(self) -> str: ...
    @property
    def platform(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def runs_programs(self) -> bool: ...
    @property
    def devices(self) -> list[Device]: ...
    @property
    def device(self) -> Device: ...
    def compile(
        self,
        stablehlo: str | bytes | bytearray | memoryview,
        *,
        device: Device | None = None,
        name: str | None = None,
    ) -> Program: ...
    def close(self) -> None: ...
    def __enter__(self) -> Backend: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class Program:
    @property
    def inputs(self) -> list[tuple[DType, tuple[int, ...]]]: ...
    @property
    def outputs(self) -> list[tuple[DType, tuple[int, ...]]]: ...
    @overload
    def __call__(
        self, *xs: Any, receipt: Literal[False] = False
    ) -> list[Tensor]: ...
    @overload
    def __call__(
        self, *xs: Any, receipt: Literal[True]
    ) -> tuple[list[Tensor], list[Receipt]]: ...
    def close(self) -> None: ...
    def __enter__(self) -> Program: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

@final
class Consumer:
    def __init__(
        self,
        dtypes: Sequence[str],
        negative: bool,
        gaps: bool,
        overlap: bool,
        alignment: int,
        honours_read_only: bool,
        legacy: bool,
        packing: str | None = None,
    ) -> None: ...

@final
class Once:
    def __init__(self, capsule: Any) -> None: ...
    def __dlpack__(self, **asked: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

def from_dlpack(
    x: Any,
    *,
    device: Device | Backend | tuple[int, int] | None = None,
    copy: bool | None = None,
    packing: Literal["packed", "padded"] | None = None,
    source_packing: Literal["packed", "padded"] | None = None,
) -> Tensor: ...
def to(
    x: Any,
    target: Any,
    *,
    copy: bool | None = None,
    detach: bool = False,
    resolve: bool = True,
    read_only: str = "auto",
    mutable_source: str = "alias",
    narrow: bool = False,
    out: Any = None,
    receipt: bool = False,
    progress: _Progress = None,
) -> Any: ...
def take_for(
    name: str, consumer: Consumer, dtypes: Sequence[str],
    accept: Callable[[Any], Any] | None, /
) -> None: ...
def know_numpy(
    array: type,
    dtypes: tuple[tuple[Any, str], ...],
    samples: tuple[
        tuple[Any, int, tuple[int, ...], tuple[int, ...], int], ...
    ],
    /,
) -> bool: ...
def know_torch(
    tensor: type,
    parameter: type,
    storage: type,
    dtypes: tuple[tuple[Any, str], ...],
    /,
) -> bool: ...
def slow(wish: bool, /) -> bool: ...
def open(
    place: str,
    *,
    path: str | os.PathLike[str] | None = None,
    options: Mapping[str, _Option] | None = None,
    trusted: bool = False,
) -> Backend: ...
def exports_plugin(path: str | os.PathLike[str], /) -> bool: ...
def import_host(
    x: Any, grant: int, packing: str | None = None, /
) -> Tensor: ...
def wrap(
    owner: Any,
    address: int,
    dtype: str,
    shape: Sequence[int],
    strides: Sequence[int] | None,
    read_only: bool,
    padded: bool,
    /,
) -> Tensor: ...
def peek(capsule: Any, /) -> Tensor: ...
def export(
    tensor: Tensor, consumer: Consumer, wish: _Wish, bits: str | None, /
) -> tuple[Any, Receipt]: ...
def move(
    tensor: Tensor,
    device: Device | Backend | tuple[int, int],
    wish: _Wish,
    /,
) -> tuple[Tensor, Receipt]: ...
def plan(
    tensor: Tensor,
    target: Consumer | Device | Backend | tuple[int, int],
    wish: _Wish,
    /,
) -> Receipt: ...
def copy_into(
    source: Any, target: Tensor, progress: _Progress, /
) -> Receipt: ...
def convert(
    source: Any,
    dtype: str,
    saturate: bool,
    padded: bool,
    progress: Callable[[int, int], bool | None] | None,
    /,
) -> tuple[Tensor, Receipt]: ...
def pool() -> tuple[int, int, int, int, int, int]: ...
def trim_pool() -> int: ...
def receipt_amend(
    receipt: Receipt,
    source: str | None,
    target: str | None,
    reason: int,
    nbytes: int,
    /,
) -> None: ...
def refusal(code: int, reason: int, source: str, target: str, /) -> Receipt: ...
def load(
    path: str | os.PathLike[str], dtype: str | None, name: str | None, /
) -> Tensor | dict[str, Tensor]: ...
def save(
    path: str | os.PathLike[str],
    names: list[str] | None,
    tensors: list[Tensor],
    progress: _Progress,
    /,
) -> None: ...
def dtypes() -> tuple[
    tuple[
        int,
        str,
        int,
        int,
        str | None,
        str | None,
        str | None,
        int,
        str | None,
        int,
        str | None,
    ],
    ...,
]: ...
def empty(shape: tuple[int, ...], dtype: str, align: int, /) -> Tensor: ...
def catalog_find(
    code: int, /
) -> tuple[int, str, str, str, str, str] | None: ...
def catalog_match(text: str, /) -> int | None: ...
def end() -> None: ...
