# SPDX-License-Identifier: Apache-2.0
"""NumPy's own cases: ml_dtypes, byte order, odd items, masks, scalars."""

import sys

import pytest

np = pytest.importorskip("numpy")

import isthmus
from frameworks import address, aligned, reasons

torch = pytest.importorskip("torch")
ml_dtypes = pytest.importorskip("ml_dtypes")
jax = pytest.importorskip("jax")

WHOLE_BYTES = ("bfloat16", "float8_e3m4", "float8_e4m3",
               "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
               "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu")
IN_TORCH = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
            "float8_e5m2fnuz", "float8_e8m0fnu")


def bits(x):
    return np.asarray(x).view(f"u{np.asarray(x).itemsize}").tolist()


@pytest.mark.parametrize("name", WHOLE_BYTES)
def test_numpy__ml_dtypes_cross_to_numpy_and_jax_by_their_bits(name):
    x = aligned(np.array([1, 2, 0.5, 4]).astype(name))
    tensor = isthmus.from_dlpack(x)
    assert str(tensor.dtype) == name and tensor.dtype == x.dtype
    assert tensor.address == address(x)
    back, receipt = isthmus.to(tensor, "numpy", receipt=True)
    assert back.dtype == x.dtype and bits(back) == bits(x)
    assert address(back) == address(x) and receipt.route == "alias"
    result, receipt = isthmus.to(x, "jax", receipt=True)
    assert str(result.dtype) == name and bits(result) == bits(x)
    assert address(result) == address(x) and receipt.route == "alias"
    assert bits(isthmus.to(result, "numpy")) == bits(x)


@pytest.mark.parametrize("name", IN_TORCH)
def test_numpy__ml_dtypes_cross_to_torch_and_back(name):
    """jax-ml/ml_dtypes#81"""
    x = np.array([[1, 2], [0.5, 4]]).astype(name)
    there, receipt = isthmus.to(x, "torch", receipt=True)
    assert str(there.dtype) == f"torch.{name}"
    assert there.data_ptr() == address(x) and receipt.route == "alias"
    assert there.view(getattr(torch, f"uint{8 * x.itemsize}")).tolist() == (
        bits(x))
    back, receipt = isthmus.to(there, "numpy", receipt=True)
    assert back.dtype == x.dtype and bits(back) == bits(x)
    assert address(back) == address(x) and receipt.route == "alias"


def test_numpy__refuses_bfloat16_without_ml_dtypes_by_name(monkeypatch):
    x = torch.ones(3, dtype=torch.bfloat16)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(isthmus.Error, match="pip install ml_dtypes") as e:
        isthmus.to(x, "numpy")
    assert e.value.code == 405


def test_numpy__ml_dtypes_keep_strides_and_read_only():
    x = np.arange(6).reshape(2, 3).astype("bfloat16")[::-1, ::2]
    x.flags.writeable = False
    tensor = isthmus.from_dlpack(x)
    assert tensor.strides == (-3, 2) and tensor.read_only
    back = isthmus.to(tensor, "numpy")
    assert np.array_equal(back, x) and not back.flags.writeable


@pytest.mark.parametrize("target", ["numpy", "torch", "jax"])
def test_numpy__foreign_byte_order_is_one_copy(target):
    x = np.arange(5, dtype=">i4")
    result, receipt = isthmus.to(x, target, receipt=True)
    assert np.array_equal(np.asarray(result), x)
    assert reasons(receipt) == ["byte_order"]
    assert (receipt.route, receipt.bytes_moved, receipt.hops) == (
        "copy", 20, 1)
    with pytest.raises(BufferError) as e:
        isthmus.to(x, target, copy=False)
    assert e.value.code == 104
    assert isthmus.from_dlpack(x).shape == (5,)
    with pytest.raises(BufferError):
        isthmus.from_dlpack(x, copy=False)


@pytest.mark.parametrize("target", ["numpy", "torch", "jax"])
def test_numpy__items_off_their_size_are_one_copy(target):
    odd = np.frombuffer(bytearray(25), "uint8")[1:].view("float32")
    odd[...] = range(6)
    fields = np.zeros(4, [("a", "u1"), ("b", "<f4")])["b"]
    fields[...] = range(4)
    for x in (odd, fields):
        result, receipt = isthmus.to(x, target, receipt=True)
        assert np.array_equal(np.asarray(result), x)
        assert reasons(receipt) == ["item_unaligned"] and receipt.hops == 1
        with pytest.raises(BufferError):
            isthmus.to(x, target, copy=False)


def test_numpy__an_unaligned_array_reaches_jax_by_one_copy_of_ours():
    x = aligned(np.arange(8), "float32", offset=4)
    result, receipt = isthmus.to(x, "jax", receipt=True)
    assert address(result) % 64 == 0
    assert (receipt.route, receipt.bytes_moved, receipt.hops) == (
        "copy", 32, 1)
    assert reasons(receipt) == ["unaligned"]
    assert "64" in dict(receipt.reasons)["unaligned"]
    with pytest.raises(BufferError) as e:
        isthmus.to(x, "jax", copy=False)
    assert e.value.code == 104


@pytest.mark.parametrize("x", [
    np.array(["a"]), np.array([b"a"]), np.array([object()]),
    np.array(["2020-01-01"], "M8[D]"), np.zeros(2, "m8[s]"),
    np.zeros(2, [("a", "i4")]), np.zeros(2, "V3"), np.zeros(2, "longdouble"),
    np.zeros(2, "clongdouble")], ids=lambda x: str(x.dtype))
def test_numpy__refuses_items_that_are_no_numbers_by_name(x):
    with pytest.raises(isthmus.Error) as e:
        isthmus.from_dlpack(x)
    assert e.value.code == 205 and isinstance(e.value, BufferError)
    assert isthmus.plan(x, "torch").route == "refuse"


def test_numpy__refuses_masks():
    x = np.ma.masked_array([1.0, 2.0], [True, False])
    with pytest.raises(isthmus.Error, match="filled"):
        isthmus.from_dlpack(x)


def test_numpy__subclasses_cross_as_arrays():
    x = np.arange(4.0)
    own = x.view(type("Own", (np.ndarray,), {}))
    assert isthmus.to(own, "torch").data_ptr() == address(x)


def test_numpy__scalars_cross():
    tensor = isthmus.from_dlpack(np.float32(2.5))
    assert tensor.shape == () and memoryview(tensor).tolist() == 2.5


def test_numpy__zero_dimensions_with_an_offset_cross():
    x = np.arange(4.0)[2:3].reshape(())
    for target in ("numpy", "torch"):
        result = isthmus.to(x, target)
        assert address(result) == address(x) and float(result) == 2.0


def test_numpy__a_tensor_is_an_array_to_numpy():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    tensor = isthmus.from_dlpack(x)
    assert address(np.asarray(tensor)) == address(x)
    assert address(np.from_dlpack(tensor)) == address(x)
    assert np.array(tensor, copy=True).base is None or (
        address(np.array(tensor, copy=True)) != address(x))
    assert np.asarray(tensor, dtype="int64").dtype == "int64"
    assert np.array_equal(np.asarray(tensor, dtype="int64"), x)
    narrow = isthmus.from_dlpack(np.ones(3, "bfloat16"))
    assert np.asarray(narrow).dtype == "bfloat16"
    assert narrow.__array__("float32").dtype == "float32"
    with pytest.raises(isthmus.Error):
        narrow.__array__("float32", copy=False)


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "float4_e2m1fn",
                                  "float6_e3m2fn"])
def test_numpy__sub_byte_items_cross_one_to_a_byte(name):
    x = np.array([[0, 1, 1], [1, 0, 1]]).astype(name)[:, ::-1]
    tensor = isthmus.from_dlpack(x)
    assert str(tensor.dtype) == name and tensor.padded
    back, receipt = isthmus.to(tensor, "numpy", receipt=True)
    assert back.dtype == x.dtype and bits(back) == bits(x)
    assert address(back) == address(x) and receipt.route == "alias"
    private = isthmus.to(x, "numpy", copy=True)
    assert private.dtype == x.dtype and bits(private) == bits(x)


@pytest.mark.parametrize("target", ["numpy", "torch", "jax", "template"])
def test_numpy__unaligned_items_of_ml_dtypes_are_one_copy(target):
    """Found by attack: the copy went to NumPy's DLPack, which has no bfloat16."""
    raw = np.arange(64, dtype="uint8")
    x = raw[1:33].view(ml_dtypes.bfloat16)
    place = isthmus.open("template") if target == "template" else target
    result, receipt = isthmus.to(x, place, receipt=True)
    assert "item_unaligned" in reasons(receipt)
    assert isthmus.plan(x, place).route == receipt.route == "copy"
    assert np.asarray(isthmus.to(result, "numpy")).tobytes() == x.tobytes()


@pytest.mark.parametrize("scalar", [np.longdouble(3), np.datetime64(3, "s"),
                                    np.str_("a"), np.void(b"ab")])
def test_numpy__scalars_are_refused_as_arrays_are(scalar):
    for x in (scalar, np.asarray(scalar)):
        with pytest.raises(isthmus.Error) as e:
            isthmus.to(x, "numpy")
        assert e.value.code == 205


def test_numpy__scalars_of_ml_dtypes_cross():
    assert isthmus.to(ml_dtypes.bfloat16(2), "numpy") == 2
