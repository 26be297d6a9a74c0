# SPDX-License-Identifier: Apache-2.0
"""isthmus.jax.program: what jax.export made gives, on each plugin, the results
of jax's own run, and what a plugin alone cannot give is refused by name."""

import dataclasses
import gc
import os
import subprocess
import sys
import threading

import pytest

np = pytest.importorskip("numpy")
jax = pytest.importorskip("jax")
pytest.importorskip("flatbuffers")  # jax.export's bytes

import jax.export
import jax.numpy as jnp
import ml_dtypes

import isthmus

PLUGINS = ("ISTHMUS_P1", "ISTHMUS_P2", "ISTHMUS_P3")
ANY = next((name for name in PLUGINS if name in os.environ), None)
X = np.linspace(-2, 3, 6, dtype="float32").reshape(2, 3)


@pytest.fixture(params=PLUGINS)
def pjrt(request):
    if request.param not in os.environ:
        pytest.skip(f"{request.param} names no plugin")
    with isthmus.open("pjrt:" + os.environ[request.param]) as backend:
        yield backend


@pytest.fixture
def any_pjrt():
    """A plugin, for what does not depend on which."""
    if ANY is None:
        pytest.skip("no plugin")
    with isthmus.open("pjrt:" + os.environ[ANY]) as backend:
        yield backend


def export(f, *args, platforms=("cpu",), **more):
    return jax.export.export(jax.jit(f), platforms=platforms)(*args, **more)


def symbolic(text, dtype="float32"):
    return jax.ShapeDtypeStruct(jax.export.symbolic_shape(text), dtype)


def check_equal(got, want):
    """The same structure, types and values."""
    got_leaves, got_tree = jax.tree_util.tree_flatten(got)
    want_leaves, want_tree = jax.tree_util.tree_flatten(want)
    assert got_tree == want_tree
    for one, other in zip(got_leaves, want_leaves):
        assert isinstance(one, isthmus.Tensor)
        mine, theirs = isthmus.to(one, "numpy"), np.asarray(other)
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        wide = "complex128" if mine.dtype.kind == "c" else "float64"
        np.testing.assert_allclose(
            mine.astype(wide), theirs.astype(wide), rtol=1e-6)


def tree(x, unused, y):
    return {"sum": x + y, "pair": (x.sum(0), [y * 2])}


def keywords(p, *, scale, shift=0.0):
    return p["w"] @ p["b"] * scale + shift


def sliced(x):
    return x[::2], x.reshape(-1), jnp.arange(x.shape[0]) + x[:, 0]


CASES = {
    "dead_arguments": (tree, (X, np.zeros(7), 2 * X), {}, {}),
    "two_platforms": (tree, (X, np.zeros(7), 2 * X), {},
                      {"platforms": ("tpu", "cpu")}),
    "dict_and_keywords": (
        keywords, ({"w": X, "b": X.T.copy()},), {"scale": np.float32(2)}, {}),
    "int4": (lambda x: x + x, (np.arange(-4, 4).astype(ml_dtypes.int4),), {},
             {}),
    "uint4": (lambda x: x * x, (np.arange(4).astype(ml_dtypes.uint4),), {}, {}),
    "bfloat16": (lambda x: x * 2, (X.astype(ml_dtypes.bfloat16),), {}, {}),
    "float8": (lambda x: x.astype(jnp.float32) * 2,
               (X.astype(ml_dtypes.float8_e4m3fn),), {}, {}),
    "bool": (lambda x: ~x, (X > 0,), {}, {}),
    "complex": (lambda x: jnp.fft.fft(x), (X,), {}, {}),
    "empty": (lambda x: (x, x.sum()), (np.zeros((0, 3), "float32"),), {}, {}),
    "no_arguments": (lambda: jnp.arange(5), (), {}, {}),
    "none_in_the_tree": (lambda a: (a[0] + 1, None), ((X, None),), {}, {}),
    # P2 reads these as text only.
    "newer_operations": (lambda x: jax.lax.top_k(x, 2), (X,), {}, {}),
    "random": (lambda k: jax.random.normal(jax.random.wrap_key_data(k), (3,)),
               (np.array([3, 4], "uint32"),), {}, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_program__gives_what_jax_gives(pjrt, case):
    f, args, kwargs, how = CASES[case]
    exported = export(f, *args, **kwargs) if not how else jax.export.export(
        jax.jit(f), **how)(*args, **kwargs)
    want = exported.call(*args, **kwargs)
    with isthmus.jax.program(exported, pjrt) as program:
        check_equal(program(*args, **kwargs), want)
    again = isthmus.jax.program(bytes(exported.serialize()), pjrt.device)
    check_equal(again(*args, **kwargs), want)


def test_program__takes_wide_types_while_jax_has_them_off(pjrt):
    values = np.array([2**53 + 1, -7], "int64")
    with jax.enable_x64(True):
        exported = export(lambda x: x + 1, values)
        open_one = export(lambda x: x + 1, symbolic("n", "int64"))
    assert not jax.config.jax_enable_x64
    for one in (exported, open_one):
        result = isthmus.jax.program(one, pjrt)(values)
        assert isthmus.to(result, "numpy").tolist() == [2**53 + 2, -6]


def test_program__compiles_symbolic_shapes_for_each_call(pjrt):
    exported = export(sliced, symbolic("b, 3"))
    program = isthmus.jax.program(exported, pjrt)
    assert program.inputs == [("float32", ("b", 3))]
    assert [shape for _, shape in program.outputs][1] == ("3*b",)
    for rows in (1, 4, 2, 4):
        x = np.arange(3 * rows, dtype="float32").reshape(rows, 3)
        check_equal(program(x), exported.call(x))
    assert program.form == "specialised"


def test_program__compiles_a_set_of_shapes_once(any_pjrt, monkeypatch):
    from isthmus import _artifact
    monkeypatch.setattr(_artifact, "KEPT_SHAPES", 2)
    compiled = []
    whole = _artifact.Program._compile
    monkeypatch.setattr(_artifact.Program, "_compile", lambda self, shapes: (
        compiled.append(shapes), whole(self, shapes))[1])
    program = isthmus.jax.program(
        export(lambda x: x + 1, symbolic("n")), any_pjrt)
    for n in (1, 2, 1, 3, 1, 2):
        assert isthmus.to(program(np.ones(n, "float32")), "numpy").sum() == 2 * n
    # 3 pushed out 2, which is compiled again; 1 was used in between.
    assert compiled == [((1,),), ((2,),), ((3,),), ((2,),)]


def test_program__many_threads_call_it_with_many_shapes(any_pjrt):
    program = isthmus.jax.program(
        export(lambda x: x.sum(), symbolic("n")), any_pjrt)
    failed = []

    def work(n):
        for size in (n, n + 1, n):
            got = float(isthmus.to(program(np.ones(size, "float32")), "numpy"))
            if got != size:
                failed.append((size, got))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_program__takes_dropped_arguments_as_anything(any_pjrt):
    program = isthmus.jax.program(
        export(tree, X, np.zeros(7), X), any_pjrt)
    assert program.dropped == ("args[1]",)
    assert len(program.inputs) == 3
    check_equal(program(X, object(), X), tree(X, None, X))
    _, receipts = program(X, None.__class__, X, receipt=True)
    assert len(receipts) == 2


def test_program__takes_tensors_of_any_framework(any_pjrt):
    torch = pytest.importorskip("torch")
    exported = export(lambda x, y: x @ y, X, X.T.copy())
    program = isthmus.jax.program(exported, any_pjrt)
    there = isthmus.to(X, any_pjrt)
    result = program(there, torch.from_numpy(X.copy()).T)
    check_equal(result, exported.call(X, X.T))


def test_program__leaves_a_donated_argument_as_it_was(pjrt):
    donating = jax.export.export(
        jax.jit(lambda x: x + 1, donate_argnums=0), platforms=("cpu",))(X)
    program = isthmus.jax.program(donating, pjrt)
    mine = isthmus.empty(X.shape, "float32", like="numpy")
    mine[:] = X
    there = isthmus.to(mine, pjrt)
    for _ in range(2):
        check_equal(program(there), X + 1)
    assert (mine == X).all()


def test_program__takes_numbers_of_python_where_nothing_is_lost(any_pjrt):
    f = export(lambda i, x, b, c: (i, x, b, c), np.int8(0), np.float32(0),
               np.bool_(0), np.complex64(0))
    program = isthmus.jax.program(f, any_pjrt)
    got = [isthmus.to(t, "numpy").item() for t in program(-128, .5, True, 2j)]
    assert got == [-128, .5, True, 2j]
    for bad in ((128, .5, True, 2j), (1.0, .5, True, 2j), (1, 1, True, 2j),
                (1, .5, 1, 2j), (1, .5, True, 2.0)):
        with pytest.raises(isthmus.Error):
            program(*bad)


def test_program__mesh_of_one_device_is_no_sharding(pjrt):
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
    mesh = AbstractMesh((1,), ("i",))
    one = jax.jit(lambda x: x * 2,
                  in_shardings=NamedSharding(mesh, PartitionSpec("i")))
    exported = jax.export.export(one, platforms=("cpu",))(X)
    assert exported.nr_devices == 1
    check_equal(isthmus.jax.program(exported, pjrt)(X), X * 2)


def test_program__exports_of_exports_cross(pjrt):
    inner = export(lambda x: x.reshape(-1) * 2, symbolic("a, b"))
    outer = export(lambda x: inner.call(x), X)
    assert outer.uses_global_constants
    check_equal(isthmus.jax.program(outer, pjrt)(X), X.reshape(-1) * 2)


# ------------------------------------------------------------------ platforms

def test_program__platform_that_is_not_the_targets_is_refused(any_pjrt):
    exported = export(jnp.sin, X, platforms=("tpu", "cuda"))
    with pytest.raises(isthmus.Error, match=(
            r"exported for tpu, cuda, and the target's platform is cpu; needs "
            r"platform='tpu' .* platforms=\['cpu'\]")) as e:
        isthmus.jax.program(exported, any_pjrt)
    assert e.value.code == 216 and isinstance(e.value, BufferError)
    with pytest.raises(isthmus.Error, match="platform is rocm"):
        isthmus.jax.program(exported, any_pjrt, platform="rocm")


def test_program__platform_can_be_chosen(pjrt):
    both = lambda x: jax.lax.platform_dependent(
        x, cpu=lambda x: x + 1, tpu=lambda x: x + 2)
    exported = export(both, X, platforms=("tpu", "cpu"))
    check_equal(isthmus.jax.program(exported, pjrt)(X), X + 1)
    chosen = isthmus.jax.program(exported, pjrt, platform="tpu")
    assert chosen.platform == "tpu"
    check_equal(chosen(X), X + 2)
    only = isthmus.jax.program(
        export(both, X, platforms=("tpu",)), pjrt, platform="tpu")
    check_equal(only(X), X + 2)


def test_program__disabled_platform_check_is_obeyed(any_pjrt):
    exported = jax.export.export(
        jax.jit(jnp.sin), platforms=("tpu",),
        disabled_checks=[jax.export.DisabledSafetyCheck.platform()])(X)
    program = isthmus.jax.program(exported, any_pjrt)
    assert program.platform == "tpu"
    check_equal(program(X), np.sin(X))


# -------------------------------------------------------------- by their names

def changed(**fields):
    return dataclasses.replace(export(jnp.sin, X), **fields)


@pytest.mark.parametrize("make, message", [
    (lambda: changed(calling_convention_version=3),
     "its calling convention is version 3, and jax .* knows"),
    (lambda: changed(calling_convention_version=1000),
     "its calling convention is version 1000"),
    (lambda: changed(ordered_effects=("print",)),
     r"it has ordered effects \(print\)"),
    (lambda: changed(unordered_effects=("io",)),
     r"it has unordered effects \(io\)"),
    (lambda: changed(nr_devices=2), "it was exported for 2 devices"),
    (lambda: export(lambda k: jax.random.split(k), jax.random.key(0)),
     "an argument is of key<fry>.*jax.random.key_data"),
    (lambda: export(lambda x: jax.random.wrap_key_data(x),
                    np.zeros(2, "uint32")), "a result is of key<fry>"),
    (lambda: b"not an artifact", "does not read them"),
    (lambda: b"", "does not read them"),
    (lambda: bytearray(export(jnp.sin, X).serialize())[:100],
     "does not read them"),
    (lambda: export(jnp.sin, X).mlir_module_serialized,
     "they are bare StableHLO bytecode"),
])
def test_program__names_what_it_cannot_use(any_pjrt, make, message):
    with pytest.raises(isthmus.Error, match=message) as e:
        isthmus.jax.program(make(), any_pjrt)
    assert e.value.code == 216
    assert e.value.entry.slug == "artifact"


def test_program__names_the_custom_call_that_a_plugin_lacks(pjrt):
    exported = export(lambda x: jnp.linalg.eigvalsh(x), np.eye(3, dtype="f4"))
    with pytest.raises(isthmus.Error, match=(
            "the plugin has no custom call lapack_ssyevd_ffi; needs a plugin "
            "that registers it")) as e:
        isthmus.jax.program(exported, pjrt)
    assert e.value.code == 216 and e.value.__cause__.code == 213


def test_program__key_that_is_dropped_is_no_matter(any_pjrt):
    exported = export(lambda k, x: x + 1, jax.random.key(0), X)
    check_equal(isthmus.jax.program(exported, any_pjrt)(None.__class__, X),
                X + 1)


def test_program__damaged_module_is_an_error(any_pjrt):
    module = bytearray(export(jnp.sin, X).mlir_module_serialized)
    module[len(module) // 2:] = bytes(len(module) - len(module) // 2)
    with pytest.raises(isthmus.Error):
        isthmus.jax.program(changed(mlir_module_serialized=bytes(module)),
                            any_pjrt)


@pytest.mark.parametrize("call, code, message", [
    (lambda p: p(X), 113, r"its arguments have the structure .*; needs"),
    (lambda p: p(X, 0, X, 1), 113, "structure"),
    (lambda p: p(X, 0, y=X), 113, "structure"),
    (lambda p: p([X], 0, X), 116, None),
    (lambda p: p(X, 0, X[0]), 107,
     r"args\[2\] has the shape \(3,\); needs \(2, 3\)"),
    (lambda p: p(X.astype("float64"), 0, X), 108,
     r"args\[0\] is of float64; needs float32"),
    (lambda p: p("no", 0, X), 116, None),
])
def test_program__names_a_wrong_argument(any_pjrt, call, code, message):
    program = isthmus.jax.program(export(tree, X, np.zeros(7), X), any_pjrt)
    with pytest.raises(isthmus.Error, match=message) as e:
        call(program)
    assert e.value.code == code


def test_program__wrong_symbolic_shapes_are_named(any_pjrt):
    program = isthmus.jax.program(
        export(lambda x, y: x @ y.T, *jax.export.symbolic_args_specs(
            (X, X), "n, 2*n")), any_pjrt)
    with pytest.raises(isthmus.Error, match="Shape|shape|dimension") as e:
        program(np.zeros((2, 5), "float32"), np.zeros((2, 5), "float32"))
    assert e.value.code == 107
    with pytest.raises(isthmus.Error, match=r"has the shape \(2,\)") as e:
        program(np.zeros(2, "float32"), np.zeros((2, 4), "float32"))
    assert e.value.code == 107
    assert program(np.zeros((2, 4), "f4"), np.zeros((2, 4), "f4")).shape == (
        2, 2)


@pytest.mark.parametrize("args", [("text", "host"), (3, "host")])
def test_program__refuses_what_is_no_artifact(args):
    with pytest.raises(isthmus.Error) as e:
        isthmus.jax.program(*args)
    assert e.value.code == 101


def test_program__refuses_what_is_no_target():
    with pytest.raises(isthmus.Error) as e:
        isthmus.jax.program(export(jnp.sin, X), 3)
    assert e.value.code == 101
    with pytest.raises(isthmus.Error) as e:
        isthmus.jax.program(export(jnp.sin, X), "host", platform="cpu")
    assert e.value.code == 314  # it has no compiler


def test_program__is_closed_once(any_pjrt):
    program = isthmus.jax.program(export(jnp.sin, symbolic("n")), any_pjrt)
    result = program(X[0].copy())
    assert "on cpu" in repr(program)
    program.close()
    program.close()
    assert "closed" in repr(program)
    check_equal(result, np.sin(X[0]))
    with pytest.raises(isthmus.Error) as e:
        program(X[0].copy())
    assert e.value.code == 106


def test_program__keeps_its_backend_open():
    if ANY is None:
        pytest.skip("no plugin")
    with isthmus.open("pjrt:" + os.environ[ANY]) as backend:
        program = isthmus.jax.program(export(jnp.sin, symbolic("n")), backend)
    del backend
    gc.collect()
    check_equal(program(X[0].copy()), np.sin(X[0]))


def test_program__refinement_that_jax_has_elsewhere_is_named(
        any_pjrt, monkeypatch):
    from isthmus import _jax
    monkeypatch.setattr(_jax, "_refine", None)
    with pytest.raises(isthmus.Error, match="no shape refinement") as e:
        isthmus.jax.program(
            export(jnp.sin, X, platforms=("cpu", "tpu")), any_pjrt)
    assert e.value.code == 216


# --------------------------------------------------------------- without JAX

def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr


def test_program__without_jax_is_named():
    run("""
import sys
import isthmus
assert "jax" not in sys.modules and "numpy" not in sys.modules
isthmus.jax.program
assert "jax" not in sys.modules
sys.modules["jax"] = None
try:
    isthmus.jax.program(b"", "host")
except isthmus.Error as error:
    assert error.code == 405 and "pip install jax" in str(error), error
else:
    raise SystemExit("no error")
""")


def test_program__without_flatbuffers_is_named():
    run("""
import sys
import isthmus
sys.modules["flatbuffers"] = None
try:
    isthmus.jax.program(b"some bytes", "host")
except isthmus.Error as error:
    assert error.code == 405, error
    assert "pip install flatbuffers" in str(error), error
else:
    raise SystemExit("no error")
""")


@pytest.mark.parametrize("name", ["attach", "detach", "handles"])
def test_names_of_later_versions_say_so(name):
    assert not hasattr(isthmus.jax, name)
    with pytest.raises(isthmus.Error, match=f"isthmus.jax.{name}") as e:
        getattr(isthmus.jax, name)
    assert e.value.code == 102
    with pytest.raises(AttributeError):
        isthmus.jax.nothing
