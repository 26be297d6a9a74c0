# SPDX-License-Identifier: Apache-2.0
"""Artifacts of jax.export as programs of a plugin: read, checked, specialised
by jax where they leave shapes or the platform open, and called with the
structure of arguments that they were exported with. Loaded only with JAX."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from types import TracebackType
from typing import Any, Iterator, NamedTuple, NoReturn, Sequence

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from . import _core, _errors, _jax, _plugins
from ._dtypes import BY_NAME
from ._types import DType

# Programs that are kept of an artifact with symbolic shapes, one for each set
# of shapes that it was called with; the one used least recently goes first.
KEPT_SHAPES = 32

# How bytecode of MLIR begins, which is no artifact of jax.export.
_MLIR = b"ML\xefR"
_SCALARS: dict[type, str] = {
    bool: "b", int: "iu", float: "fV", complex: "c"}
_CUSTOM_CALL = re.compile(
    r"stablehlo\.custom_call\s+@([\w.$]+)|call_target_name\s*=\s*\"([^\"]+)\"")

Shapes = tuple[tuple[int, ...], ...]


def _refuse(name: str, what: str, needs: str) -> NoReturn:
    _errors.refuse(
        _errors.ARTIFACT,
        f"a jax.export artifact ({name}) could not be used: {what}; needs "
        f"{needs}")


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _read(source: Any) -> Any:
    """An Exported, from one or from its bytes."""
    if isinstance(source, jax.export.Exported):
        return source
    if not isinstance(source, (bytes, bytearray, memoryview)):
        raise _errors.make(
            _errors.ARGUMENT,
            f"a jax.export artifact could not be read: got a "
            f"{type(source).__name__}; needs a jax.export.Exported, or the "
            "bytes of its serialize()")
    data = bytearray(source)
    if data.startswith(_MLIR):
        _refuse("bytes", "they are bare StableHLO bytecode",
                "backend.compile(code), or the bytes of Exported.serialize()")
    try:
        return jax.export.deserialize(data)
    except ImportError as error:
        raise _errors.make(
            _errors.NO_FRAMEWORK,
            "a jax.export artifact could not be read: "
            f"{error.name or 'flatbuffers'}, by which jax.export reads bytes, "
            "is not installed; needs pip install flatbuffers, or the Exported "
            "itself") from error
    except Exception as error:
        raise _errors.make(
            _errors.ARTIFACT,
            "a jax.export artifact (bytes) could not be used: jax.export of "
            f"jax {jax.__version__} does not read them: "
            f"{_first_line(error)[:200]}; needs the bytes of "
            "Exported.serialize(), by a jax that is no newer",
            refusal=True) from error


def _check(it: Any) -> None:
    """Refuses what changes how the module is called, each by its name."""
    name = it.fun_name
    low = jax.export.minimum_supported_calling_convention_version
    high = jax.export.maximum_supported_calling_convention_version
    if not low <= it.calling_convention_version <= high:
        _refuse(name, "its calling convention is version "
                f"{it.calling_convention_version}, and jax {jax.__version__} "
                f"knows {low} to {high}", "an export by such a jax")
    effects = (*it.ordered_effects, *it.unordered_effects)
    if effects:
        which = ", ".join(sorted({str(e) for e in effects}))
        order = "ordered" if it.ordered_effects else "unordered"
        _refuse(name, f"it has {order} effects ({which}), whose tokens and "
                "callbacks only jax serves", "a function without effects")
    if it.nr_devices != 1:
        _refuse(name, f"it was exported for {it.nr_devices} devices, with "
                "shardings", "an export for one device")
    for n, aval in enumerate((*it.in_avals, *it.out_avals)):
        if str(aval.dtype) in BY_NAME:
            continue
        if n < len(it.in_avals) and n not in it.module_kept_var_idx:
            continue
        side = "an argument" if n < len(it.in_avals) else "a result"
        _refuse(name, f"{side} is of {aval.dtype}, which no tensor is",
                "numbers, such as jax.random.key_data(key)")


def _choose(it: Any, own: str, wish: str | None) -> str:
    """The platform, of those that it was exported for."""
    platforms = tuple(it.platforms)
    wanted = own.lower() if wish is None else wish
    if wanted in platforms:
        return wanted
    safe = jax.export.DisabledSafetyCheck.platform()
    if wish is None and safe in it.disabled_safety_checks:
        return platforms[0]  # as jax takes it
    _refuse(it.fun_name, f"it was exported for {', '.join(platforms)}, and "
            f"the target's platform is {wanted}",
            f"platform={platforms[0]!r} to take its code for that, or an "
            f"export with platforms=[{wanted!r}]")


def _target(target: Any) -> tuple[_core.Backend, _core.Device]:
    if isinstance(target, str):
        target = _plugins.open(target)
    if isinstance(target, _core.Backend):
        return target, target.device
    if isinstance(target, _core.Device):
        return target.backend, target
    raise _errors.make(
        _errors.ARGUMENT,
        f"a target could not be found: got a {type(target).__name__}; needs "
        "an isthmus backend, a device of one, or its place")


def _names(in_tree: Any) -> tuple[str, ...]:
    """What each flat argument is called: ``args[0][0]``, ``scale``."""
    whole = jax.tree_util.tree_unflatten(
        in_tree, list(range(in_tree.num_leaves)))
    pairs, _ = jax.tree_util.tree_flatten_with_path(whole)
    names = []
    for path, _ in pairs:
        first = path[1]
        key = getattr(first, "key", getattr(first, "idx", "?"))
        root = str(key) if path[0].idx == 1 else f"args[{key}]"
        names.append(root + str(jax.tree_util.keystr(path[2:])))
    return tuple(names)


def _dims(shape: Sequence[Any]) -> tuple[int | str, ...]:
    return tuple(n if isinstance(n, int) else str(n) for n in shape)


def _spec(aval: Any) -> tuple[DType, tuple[int | str, ...]]:
    row = BY_NAME.get(str(aval.dtype))
    dtype = (DType(str(aval.dtype), 0, 0, 0) if row is None
             else DType(row.name, row.code, row.bits, 1))
    return dtype, _dims(aval.shape)


class _Argument(NamedTuple):
    """One of the flat arguments that the module takes."""

    index: int
    name: str
    dtype: str
    shape: tuple[int | str, ...]
    aval: Any
    is_static: bool


def _scalar(x: Any, it: _Argument) -> Any:
    """A number of Python's as an array of the argument's type, where no value
    of its kind is lost."""
    dtype = np.dtype(it.aval.dtype)
    kind = "f" if jnp.issubdtype(dtype, jnp.floating) else (
        "i" if jnp.issubdtype(dtype, jnp.integer) else dtype.kind)
    if kind not in _SCALARS[type(x)]:
        return x
    if kind == "i":
        info = jnp.iinfo(dtype)
        if not int(info.min) <= x <= int(info.max):
            return x
    return np.asarray(x, dtype)


class Program:
    """An exported function on one device. Called with its arguments, of any
    framework, it gives its results as Tensors, in their structure."""

    def __init__(
        self, exported: Any, backend: _core.Backend, device: _core.Device,
        platform: str,
    ) -> None:
        self._exported = exported
        self._backend: _core.Backend | None = backend
        self._device = device
        self._platform = platform
        self._names = _names(exported.in_tree)
        kept = set(exported.module_kept_var_idx)
        self._arguments = tuple(
            _Argument(n, self._names[n], str(aval.dtype), _dims(aval.shape),
                      aval, all(isinstance(d, int) for d in aval.shape))
            for n, aval in enumerate(exported.in_avals) if n in kept)
        self._lock = threading.Lock()
        self._by_shapes: OrderedDict[Shapes, _core.Program] = OrderedDict()
        self._fixed: _core.Program | None = None
        self._form = ""
        flat = jax.tree_util.tree_structure(
            ((0,) * exported.in_tree.num_leaves, {}))
        self._is_flat = flat == exported.in_tree
        self._receipt_is_argument = "receipt" in self._names
        if all(it.is_static for it in self._arguments):
            self._fixed = self._compile(None)

    # -- facts --

    @property
    def name(self) -> str:
        """The function's name."""
        return str(self._exported.fun_name)

    @property
    def platform(self) -> str:
        """Which of the artifact's platforms it was compiled for."""
        return self._platform

    @property
    def form(self) -> str:
        """What the plugin took: ``"bytecode"`` as it was exported, ``"text"``
        where it does not read that, ``"specialised"`` when jax put in the
        platform and the shapes; ``""`` before the first call with shapes."""
        return self._form

    @property
    def inputs(self) -> list[tuple[DType, tuple[int | str, ...]]]:
        """What each flat argument must be; symbolic dimensions are text."""
        return [_spec(aval) for aval in self._exported.in_avals]

    @property
    def input_names(self) -> tuple[str, ...]:
        """What each flat argument is called in messages."""
        return self._names

    @property
    def dropped(self) -> tuple[str, ...]:
        """The arguments that the function does not use: they are taken,
        whatever they are, and not passed on."""
        kept = {it.index for it in self._arguments}
        return tuple(
            name for n, name in enumerate(self._names) if n not in kept)

    @property
    def outputs(self) -> list[tuple[DType, tuple[int | str, ...]]]:
        """What each flat result will be; symbolic dimensions are text."""
        return [_spec(aval) for aval in self._exported.out_avals]

    def __repr__(self) -> str:
        state = f"on {self._platform}" if self._backend else "closed"
        return (f"Program({self.name}, inputs={len(self._names)}, "
                f"outputs={len(self._exported.out_avals)}, {state})")

    # -- life --

    def close(self) -> None:
        """Lets go of what was compiled; results stay."""
        with self._lock:
            self._backend = self._fixed = None
            self._by_shapes.clear()

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- compiling --

    def _forms(self, shapes: Shapes | None) -> Iterator[tuple[str, Any]]:
        """The program as the plugin may read it, the likeliest form first."""
        it = self._exported
        if (shapes is None and not it.uses_global_constants
                and len(it.platforms) == 1):
            yield "bytecode", bytes(it.mlir_module_serialized)
            yield "text", it.mlir_module()
        else:
            yield "specialised", self._specialised(shapes)

    def _specialised(self, shapes: Shapes | None) -> str:
        """Text by jax, with the platform's index and the shapes put in."""
        it = self._exported
        if shapes is None:
            shapes = tuple(tuple(a.aval.shape) for a in self._arguments)

        def call(*given: Any) -> Any:
            # Jax wants the dropped ones too; what they are does not matter.
            leaves = [jnp.zeros(aval.shape, aval.dtype)
                      if n in unused else None
                      for n, aval in enumerate(it.in_avals)]
            for argument, value in zip(self._arguments, given):
                leaves[argument.index] = value
            args, kwargs = jax.tree_util.tree_unflatten(it.in_tree, leaves)
            return it.call(*args, **kwargs)

        unused = set(range(len(it.in_avals))) - {
            a.index for a in self._arguments}
        with _jax.wide_types():
            lowered = jax.jit(call, keep_unused=True).trace(*(
                jax.ShapeDtypeStruct(shape, a.aval.dtype)
                for a, shape in zip(self._arguments, shapes))).lower(
                    lowering_platforms=(self._platform,))
            return _jax.refined(lowered.compiler_ir("stablehlo"))

    def _compile(self, shapes: Shapes | None) -> _core.Program:
        backend = self._backend
        if backend is None:
            raise _errors.make(
                _errors.CLOSED,
                "a program could not be used: it is closed; needs an open one")
        failed: _errors.Error | None = None
        code: Any = None
        try:
            for form, code in self._forms(shapes):
                try:
                    made = backend.compile(
                        code, device=self._device, name=self.name)
                except _errors.Error as error:
                    if error.code not in (_errors.PROGRAM,
                                          _errors.PROGRAM_VERSION):
                        raise
                    failed = error
                else:
                    self._form = form
                    return made
        except _errors.Error:
            raise
        except Exception as error:
            self._jax_failed(shapes, error)
        assert failed is not None
        self._name_custom_calls(code, failed)
        raise failed

    def _jax_failed(
        self, shapes: Shapes | None, error: Exception,
    ) -> NoReturn:
        if shapes is not None:
            raise _errors.make(
                _errors.SHAPE_MISMATCH,
                f"{self.name} could not be called: its arguments have the "
                f"shapes {', '.join(map(str, shapes))}: "
                f"{_first_line(error)[:300]}; needs "
                f"{', '.join(str(a.shape) for a in self._arguments)}",
                refusal=True) from error
        raise _errors.make(
            _errors.ARTIFACT,
            f"a jax.export artifact ({self.name}) could not be used: jax "
            f"{jax.__version__} does not lower it: "
            f"{_first_line(error)[:300]}; needs an export that "
            "Exported.call takes", refusal=True) from error

    def _name_custom_calls(self, code: Any, failed: _errors.Error) -> None:
        """A custom call is code of a plugin, which another may not have."""
        text = code if isinstance(code, str) else ""
        calls = sorted({a or b for a, b in _CUSTOM_CALL.findall(text)})
        said = " ".join([str(failed), *getattr(failed, "__notes__", ())])
        missing = [name for name in calls if name in said]
        if missing:
            raise _errors.make(
                _errors.ARTIFACT,
                f"a jax.export artifact ({self.name}) could not be used: the "
                f"plugin has no custom call {', '.join(missing)}; needs a "
                "plugin that registers it, or a function without it",
                refusal=True) from failed

    # -- calling --

    def _find(self, tensors: list[_core.Tensor]) -> _core.Program:
        if self._fixed is not None:
            return self._fixed
        shapes = tuple(t.shape for t in tensors)
        with self._lock:
            found = self._by_shapes.get(shapes)
            if found is not None:
                self._by_shapes.move_to_end(shapes)
                return found
        # Other shapes are called meanwhile; these may be compiled twice.
        made = self._compile(shapes)
        with self._lock:
            self._by_shapes[shapes] = made
            while len(self._by_shapes) > KEPT_SHAPES:
                self._by_shapes.popitem(last=False)
        return made

    def _take(self, leaf: Any, it: _Argument) -> _core.Tensor:
        if type(leaf) in _SCALARS and it.aval.shape == ():
            leaf = _scalar(leaf, it)
        tensor = _core.from_dlpack(leaf)
        if tensor.dtype.name != it.dtype:
            _errors.refuse(
                _errors.DTYPE_MISMATCH,
                f"{self.name} could not be called: {it.name} is of "
                f"{tensor.dtype}; needs {it.dtype}")
        shape = tensor.shape
        fits = shape == it.shape if it.is_static else (
            len(shape) == len(it.shape) and all(
                isinstance(want, str) or got == want
                for got, want in zip(shape, it.shape)))
        if not fits:
            _errors.refuse(
                _errors.SHAPE_MISMATCH,
                f"{self.name} could not be called: {it.name} has the shape "
                f"{shape}; needs ({', '.join(map(str, it.shape))})")
        return tensor

    def _leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._is_flat and not kwargs and len(args) == len(self._names):
            return args
        leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
        if tree != self._exported.in_tree:
            raise _errors.make(
                _errors.ARITY,
                f"{self.name} could not be called: its arguments have the "
                f"structure {_structure(tree)}; needs "
                f"{_structure(self._exported.in_tree)}")
        return leaves

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it. With ``receipt=True``, unless the function has such an
        argument itself, gives the pair of results and a list with a Receipt
        for each argument that it uses."""
        receipt = False
        if not self._receipt_is_argument:
            receipt = bool(kwargs.pop("receipt", False))
        leaves = self._leaves(args, kwargs)
        tensors = [self._take(leaves[it.index], it) for it in self._arguments]
        results, papers = self._find(tensors)(*tensors, receipt=True)
        tree = jax.tree_util.tree_unflatten(self._exported.out_tree, results)
        return (tree, papers) if receipt else tree


def _structure(tree: Any) -> str:
    return str(tree).removeprefix("PyTreeDef(").removesuffix(")")[:200]


def program(source: Any, target: Any, platform: str | None) -> Program:
    exported = _read(source)
    _check(exported)
    backend, device = _target(target)
    chosen = _choose(exported, backend.platform, platform)
    return Program(exported, backend, device, chosen)
