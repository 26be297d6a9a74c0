# SPDX-License-Identifier: Apache-2.0
"""isthmus.to between every pair of frameworks: values, dtypes, addresses and
receipts agree."""

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")

import isthmus
from frameworks import address, aligned, check_receipt, reasons, values_of

FRAMEWORKS = ("numpy", "torch", "jax")
# What jax has with its 64-bit types off, and NumPy without ml_dtypes.
DTYPES = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32",
          "float16", "float32", "complex64")

LAYOUTS = {
    "row_major": lambda a: a,
    "permuted": lambda a: a.T,
    "cut": lambda a: a[:, :2],
    "stepped": lambda a: a[::2],
    "one_row": lambda a: a[1:2],
    "empty": lambda a: a[:0],
    "scalar": lambda a: a[1, 1],
}


def make(framework, dtype, layout):
    base = aligned(np.arange(24).reshape(6, 4) % 2 + 1, dtype)
    if framework == "numpy":
        made = LAYOUTS[layout](base)
        return made if isinstance(made, np.ndarray) else base[1, 1, ...]
    if framework == "torch":
        return LAYOUTS[layout](torch.from_numpy(base))
    return LAYOUTS[layout](jax.numpy.asarray(base))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("source", FRAMEWORKS)
@pytest.mark.parametrize("target", FRAMEWORKS)
def test_exchange__keeps_values_dtype_and_shape(source, target, layout, dtype):
    x = make(source, dtype, layout)
    result, receipt = isthmus.to(x, target, receipt=True)
    assert type(result).__module__.startswith(target)
    assert str(result.dtype).rpartition(".")[2] == dtype
    assert tuple(result.shape) == tuple(x.shape)
    assert np.array_equal(values_of(result), values_of(x))
    assert receipt.source == source and receipt.target == target
    if result.size if target != "torch" else result.numel():
        check_receipt(receipt, address(x), result, values_of(x).nbytes)


@pytest.mark.parametrize("source", FRAMEWORKS)
@pytest.mark.parametrize("target", FRAMEWORKS)
def test_exchange__aliases_aligned_row_major_memory(source, target):
    x = make(source, "float32", "row_major")
    result, receipt = isthmus.to(x, target, copy=False, receipt=True)
    assert receipt.route == "alias" and address(result) == address(x)


@pytest.mark.parametrize("source", FRAMEWORKS)
@pytest.mark.parametrize("target", FRAMEWORKS)
def test_exchange__with_copy_true_is_private(source, target):
    """jax-ml/jax#37830"""
    x = make(source, "float32", "row_major")
    before = values_of(x)
    result, receipt = isthmus.to(x, target, copy=True, receipt=True)
    check_receipt(receipt, address(x), result, before.nbytes)
    assert reasons(receipt) == ["copy_asked"]
    if source != "jax":
        x[...] = 99
        assert np.array_equal(values_of(result), before)


@pytest.mark.parametrize("target", FRAMEWORKS)
@pytest.mark.parametrize("wish", [None, True, False])
def test_plan__says_what_to_does_and_does_nothing(target, wish):
    for layout in LAYOUTS:
        for source in FRAMEWORKS:
            x = make(source, "float32", layout)
            plan = isthmus.plan(x, target, copy=wish)
            try:
                _, receipt = isthmus.to(x, target, copy=wish, receipt=True)
            except BufferError as error:
                assert plan.route == "refuse" and plan.code == error.code
                assert plan.bytes_moved == 0 and plan.reasons
            else:
                assert plan.json() == receipt.json()


def test_plan__never_consumes_a_capsule():
    from capsule_maker import Producer, capsule_name
    for legacy in (False, True):
        producer = Producer(legacy=legacy)
        capsule = producer.capsule()
        name = capsule_name(capsule)
        assert isthmus.plan(capsule, "numpy").route == "alias"
        assert isthmus.plan(capsule, "numpy", copy=True).route == "copy"
        assert capsule_name(capsule) == name and producer.freed == 0


def test_exchange__refuses_a_capsule_without_consuming_it():
    from capsule_maker import Producer, capsule_name
    producer = Producer(strides=(-1,), shape=(1,), offset=4)
    capsule = producer.capsule()
    with pytest.raises(BufferError) as e:
        isthmus.to(capsule, "jax", copy=False)
    assert e.value.code == 104
    assert capsule_name(capsule) == "dltensor_versioned"
    assert producer.freed == 0
    assert isthmus.to(capsule, "jax").tolist() == [1.0]


@pytest.mark.parametrize("legacy", [False, True])
def test_exchange__consumes_a_capsule_into_out_only_when_it_fits(legacy):
    from capsule_maker import Producer, capsule_name
    read_only = np.zeros(4, "float32")
    read_only.flags.writeable = False
    producer = Producer(legacy=legacy)
    capsule = producer.capsule()
    name = capsule_name(capsule)
    for out in (np.zeros(3, "float32"), np.zeros(4), read_only, [0] * 4):
        with pytest.raises(isthmus.Error):
            isthmus.to(capsule, "numpy", out=out)
        assert capsule_name(capsule) == name and producer.freed == 0
    with pytest.raises(isthmus.Error):
        isthmus.to(capsule, "numpy", copy=False, out=np.zeros(4, "float32"))
    assert capsule_name(capsule) == name and producer.freed == 0
    out = np.zeros(4, "float32")
    _, receipt = isthmus.to(capsule, "numpy", out=out, receipt=True)
    assert out.tolist() == [1, 2, 3, 4] and receipt.source == "capsule"
    assert capsule_name(capsule) == "used_" + name and producer.freed == 1


@pytest.mark.parametrize("target", ["tensorflow", "cupy", "paddle", "mlx",
                                    "tvm_ffi"])
def test_exchange__says_which_targets_come_later(target):
    x = np.zeros(2)
    with pytest.raises(isthmus.Error, match="not in this version") as e:
        isthmus.to(x, target)
    assert e.value.code == 102 and isinstance(e.value, BufferError)
    assert isthmus.plan(x, target).route == "refuse"


@pytest.mark.parametrize("target", ["nump", 3, None, object()])
def test_exchange__refuses_targets_that_are_none(target):
    for call in (isthmus.to, isthmus.plan):
        with pytest.raises(isthmus.Error) as e:
            call(np.zeros(2), target)
        assert e.value.code == 101


@pytest.fixture
def adapters_only():
    """Everything through the adapters in Python, which tests may replace."""
    from isthmus import _core
    was = _core.slow(True)
    yield
    _core.slow(was)


def test_exchange__makes_a_consumers_refusal_the_cause(
        monkeypatch, adapters_only):
    from isthmus import _torch
    for own in (RuntimeError("its own\nwords"), ValueError()):
        def refuse(*arguments, error=own):
            raise error

        monkeypatch.setattr(_torch, "accept", refuse)
        with pytest.raises(isthmus.Error) as e:
            isthmus.to(np.zeros(2), "torch")
        assert e.value.code == 319 and isinstance(e.value, BufferError)
        assert e.value.__cause__ is own and "\n" not in str(e.value)


def test_exchange__passes_on_that_memory_has_run_out(
        monkeypatch, adapters_only):
    from isthmus import _torch

    def refuse(*arguments):
        raise MemoryError()

    monkeypatch.setattr(_torch, "accept", refuse)
    with pytest.raises(MemoryError):
        isthmus.to(np.zeros(2), "torch")


@pytest.mark.parametrize("wish", [
    dict(copy="yes"), dict(read_only="maybe"), dict(mutable_source="x")])
def test_exchange__refuses_wishes_that_it_does_not_know(wish):
    with pytest.raises(isthmus.Error) as e:
        isthmus.to(np.zeros(2), "numpy", **wish)
    assert e.value.code == 101


def test_exchange__takes_devices_of_torch_and_jax_on_the_host():
    x = aligned(np.arange(4.0), "float32")
    assert isinstance(isthmus.to(x, torch.device("cpu")), torch.Tensor)
    device = jax.devices("cpu")[0]
    result = isthmus.to(x, device)
    assert result.devices() == {device}
    with pytest.raises(isthmus.Error, match="not in this version"):
        isthmus.to(x, torch.device("meta"))


def test_exchange__takes_devices_and_backends_of_isthmus():
    x = np.arange(6.0).reshape(2, 3)
    with isthmus.open("host") as host:
        for target in (host, host.devices[0], (1, 0)):
            tensor, receipt = isthmus.to(x, target, receipt=True)
            assert isinstance(tensor, isthmus.Tensor)
            assert receipt.route == "alias" and tensor.address == address(x)


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_exchange__fills_out(framework):
    x = np.arange(6, dtype="float32").reshape(2, 3)
    out = isthmus.empty((2, 3), "float32", like=framework)
    where = address(out)
    result, receipt = isthmus.to(x, framework, out=out, receipt=True)
    assert result is out and address(out) == where
    assert np.array_equal(values_of(out), x)
    assert receipt.route == "copy" and receipt.bytes_moved == 24
    assert reasons(receipt) == ["into"]


def test_exchange__fills_strided_out_and_nothing_beside_it():
    out = np.full((4, 6), -1.0)
    isthmus.to(np.arange(6.0).reshape(2, 3), "numpy", out=out[::2, ::-2])
    assert np.array_equal(out[::2, ::-2], np.arange(6.0).reshape(2, 3))
    assert (out[1::2] == -1).all() and (out[:, ::2] == -1).all()


def test_exchange__fills_out_that_overlaps_its_source():
    x = np.arange(8.0)
    isthmus.to(x[:-1], "numpy", out=x[1:])
    assert x.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]


def test_exchange__refuses_out_that_does_not_fit():
    x = np.arange(6.0)
    read_only = np.zeros(6)
    read_only.flags.writeable = False
    for out, code in ((np.zeros(5), 107), (np.zeros(6, "float32"), 108),
                      (read_only, 105), (np.broadcast_to(np.zeros(1), 6), 105),
                      (torch.zeros(6, dtype=torch.float64), 101),
                      ([0] * 6, 101)):
        with pytest.raises(isthmus.Error) as e:
            isthmus.to(x, "numpy", out=out)
        assert e.value.code == code
    with pytest.raises(isthmus.Error) as e:
        isthmus.to(np.zeros(6, "float32"), "jax",
                   out=jax.numpy.zeros(6, "float32"))
    assert e.value.code == 105
    assert not read_only.any()


def test_tree__keeps_the_shape_of_nested_containers():
    x, y = np.arange(3.0), torch.ones(2)
    tree = {"a": [x, (y, x)], "b": {"n": 3, "s": "text", "none": None}}
    result, receipts = isthmus.to_tree(tree, "torch", receipt=True)
    assert torch.equal(result["a"][0], torch.arange(3.0).double())
    assert result["a"][1][1] is result["a"][0]
    assert isinstance(result["a"][1], tuple)
    assert result["b"] == {"n": 3, "s": "text", "none": None}
    assert receipts["a"][1][0].route == "alias"
    assert receipts["b"] == {"n": None, "s": None, "none": None}


def test_tree__crosses_a_state_dict():
    layer = torch.nn.Linear(3, 2)
    result = isthmus.to_tree(layer.state_dict(), "numpy")
    assert set(result) == {"weight", "bias"}
    assert address(result["weight"]) == layer.weight.data_ptr()


def test_tree__keeps_named_tuples():
    import collections
    Pair = collections.namedtuple("Pair", "left right")
    result = isthmus.to_tree(Pair(np.ones(1), 2), "torch")
    assert type(result) is Pair and result.right == 2


def test_tree__says_where_a_refused_leaf_is():
    tree = {"layer": [np.ones(2, "float32"), (np.ones(2, "int64"),)]}
    with pytest.raises(isthmus.Error) as e:
        isthmus.to_tree(tree, "jax")
    assert e.value.__notes__ == ["in the tree at ['layer'][1][0]"]
    with pytest.raises(isthmus.Error) as e:
        isthmus.to_tree(object(), "jax")
    assert not hasattr(e.value, "__notes__")


def test_exchange__names_both_ends_in_a_refusal():
    x = np.arange(6, dtype="float32")[::-1]
    for call in (isthmus.to, isthmus.to_tree):
        with pytest.raises(isthmus.Error) as e:
            call(x, "torch", copy=False)
        assert " could not cross from numpy to torch: " in str(e.value)
    with pytest.raises(isthmus.Error) as e:
        isthmus.to(x, isthmus.open("template"), copy=False)
    assert " could not cross from numpy to template#0: " in str(e.value)


def test_tree__keeps_the_types_of_dicts_lists_and_tuples():
    import collections

    class Layers(list):
        pass

    class Config(dict):
        name = None

    ordered = collections.OrderedDict(b=np.ones(1), a=2)
    ordered._metadata = "kept"
    counted = collections.defaultdict(list, x=np.ones(2))
    layers = Layers([np.ones(3), 4])
    config = Config(x=layers)
    config.name = "mine"
    result, receipts = isthmus.to_tree(
        [ordered, counted, config, torch.Size([1, 2])], "torch", receipt=True)
    assert type(result[0]) is collections.OrderedDict
    assert list(result[0]) == ["b", "a"] and result[0]._metadata == "kept"
    assert result[1]["new"] == [] and torch.is_tensor(result[1]["x"])
    assert type(result[2]) is Config and result[2].name == "mine"
    assert type(result[2]["x"]) is Layers and result[2]["x"][1] == 4
    assert torch.is_tensor(result[2]["x"][0]) and len(layers) == 2
    assert isinstance(layers[0], np.ndarray)
    assert result[3] == torch.Size([1, 2]) and type(result[3]) is torch.Size
    assert receipts[2]["x"][0].route == "alias"
    assert receipts[3] == (None, None)


def test_tree__refuses_leaves_that_are_no_tensors():
    with pytest.raises(isthmus.Error):
        isthmus.to_tree({"a": object()}, "numpy")
    with pytest.raises(isthmus.Error):
        isthmus.to_tree([np.ones(1)], "numpy", out=np.ones(1))


def test_exchange__takes_producers_of_any_package():
    tvm_ffi = pytest.importorskip("tvm_ffi")
    x = aligned(np.arange(8), "float32")
    foreign = tvm_ffi.from_dlpack(x)
    for target in FRAMEWORKS:
        result, receipt = isthmus.to(foreign, target, receipt=True)
        assert receipt.source == "tvm_ffi" and receipt.route == "alias"
        assert address(result) == address(x)
    back = tvm_ffi.from_dlpack(isthmus.from_dlpack(x))
    assert isthmus.from_dlpack(back).address == address(x)
    assert isthmus.plan(b"abc", "numpy").source == "bytes"


@pytest.mark.parametrize("name", ["\ud800", "a\nb", "\u00e9" * 90, "", 7])
def test_exchange__names_no_producer_by_more_than_plain_text(name):
    import json
    hostile = type("Hostile", (), {"__module__": name})
    hostile.memory = np.ones(3)
    hostile.__array_interface__ = hostile.memory.__array_interface__
    x = hostile()
    result, receipt = isthmus.to(x, "numpy", receipt=True)
    assert result.tolist() == [1, 1, 1]
    assert "\n" not in receipt.source and "\n" not in repr(receipt)
    assert json.loads(receipt.json())["route"] == "alias"
    assert isthmus.plan(x, "numpy").source == receipt.source


@pytest.mark.parametrize("like", ["numpy", "torch"])
@pytest.mark.parametrize("align", [64, 128, 4096])
def test_empty__is_memory_that_jax_can_alias(like, align):
    x = isthmus.empty((3, 5), "float32", align=align, like=like)
    assert address(x) % align == 0
    assert not values_of(x).any()
    x[1, 2] = 7
    result, receipt = isthmus.to(x, "jax", copy=False, receipt=True)
    assert receipt.route == "alias" and float(result[1, 2]) == 7


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("int16"), "bool",
                                   torch.float64])
def test_empty__takes_the_frameworks_own_dtypes(dtype):
    x = isthmus.empty(4, dtype)
    assert x.shape == (4,)
    assert str(x.dtype) in ("float32", "int16", "bool", "float64")


@pytest.mark.parametrize("bad", [
    dict(shape=(-1,)), dict(shape=(2.0,)), dict(shape=(2**62, 4)),
    dict(dtype="float31"), dict(align=3), dict(align=-64), dict(like="jax")])
def test_empty__refuses_what_cannot_be(bad):
    with pytest.raises(isthmus.Error):
        isthmus.empty(**{"shape": (2,), "dtype": "float32", **bad})
