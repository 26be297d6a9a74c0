# SPDX-License-Identifier: Apache-2.0
"""Capsules with wrong numbers, by every door of the package: refused in one
line before they are consumed, and freed exactly once by whoever had them."""

import array
import ctypes
import gc

import pytest

import isthmus
from capsule_maker import (CPU, Legacy, Producer, Versioned,
                           capsule_name)

_api = ctypes.pythonapi
_destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_api.PyCapsule_New.restype = ctypes.py_object
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p,
                                ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p,
                         _destructor)(("PyCapsule_New", _api))


@_destructor
def _destroy(capsule):
    """What a producer's capsule does when nobody took its tensor."""
    for name, kind in ((b"dltensor", Legacy), (b"dltensor_versioned",
                                               Versioned)):
        if _is_valid(capsule, name):
            managed = kind.from_address(_pointer_of(capsule, name))
            if managed.deleter:
                managed.deleter(ctypes.pointer(managed))


class Owner(Producer):
    """A producer whose capsules free what nobody took, as real ones do."""

    def capsule(self):
        return _new(ctypes.addressof(self.struct), self._name, _destroy)


HUGE = 2**31 - 1
HOSTILE = {
    "ndim_negative": (dict(ndim=-1), 201),
    "ndim_above_the_most": (dict(ndim=65), 201),
    "ndim_seventy__matx_1204": (dict(shape=(1,) * 70), 201),
    "ndim_huge": (dict(ndim=HUGE), 201),
    "ndim_least": (dict(ndim=-2**31), 201),
    "shape_null": (dict(null_shape=True), 202),
    "extent_negative__matx_1204": (dict(shape=(-4,)), 202),
    "extent_least": (dict(shape=(-2**63,)), 202),
    "extent_negative_beside_empty": (dict(shape=(0, -1)), 202),
    "count_overflows__mohu_328": (dict(shape=(2**62, 4)), 203),
    "bytes_overflow": (dict(shape=(2**61,)), 203),
    "empty_with_strides_that_cannot_be": (dict(shape=(0, 2**62, 4)), 203),
    "stride_overflows": (dict(shape=(2,), strides=(2**62,)), 203),
    "stride_least": (dict(shape=(2,), strides=(-2**63,)), 203),
    "strides_sum_overflows": (
        dict(shape=(2, 2), strides=(2**59, 2**59)), 203),
    "stride_below_memory": (dict(shape=(2,), strides=(-2**58,)), 203),
    "offset_wraps": (dict(byte_offset=2**64 - 4), 203),
    "offset_odd_and_wraps": (dict(byte_offset=2**64 - 1), 203),
    "offset_beyond": (dict(byte_offset=2**63), 203),
    "offset_misaligned": (dict(byte_offset=2), 207),
    "data_null__jax_37303": (dict(data=None), 204),
    "data_null_with_offset": (dict(data=None, byte_offset=64), 204),
    "data_wraps": (dict(data=2**64 - 8), 203),
    "data_misaligned": (dict(offset=1), 207),
    "bits_none": (dict(dtype=(2, 0, 1)), 205),
    "bits_three": (dict(dtype=(0, 3, 1)), 205),
    "bits_most": (dict(dtype=(1, 255, 1)), 205),
    "code_of_handles": (dict(dtype=(3, 64, 1)), 205),
    "code_unreleased": (dict(dtype=(18, 32, 1)), 205),
    "code_most": (dict(dtype=(255, 32, 1)), 205),
    "lanes_none": (dict(dtype=(2, 32, 0)), 206),
    "lanes_four": (dict(dtype=(2, 32, 4)), 206),
    "lanes_most": (dict(dtype=(2, 32, 65535)), 206),
    "device_none": (dict(device=(0, 0)), 209),
    "device_gap": (dict(device=(5, 0)), 209),
    "device_negative": (dict(device=(-1, 0)), 209),
    "device_huge": (dict(device=(HUGE, 0)), 209),
    "device_metal": (dict(device=(8, 0)), 316),
}


def make(kind, legacy, numbers):
    numbers = dict(numbers)
    null_shape = numbers.pop("null_shape", False)
    producer = kind(legacy=legacy, **numbers)
    if null_shape:
        producer.struct.tensor.shape = None
    return producer


DOORS = {
    "from_dlpack": isthmus.from_dlpack,
    "from_dlpack_copy": lambda x: isthmus.from_dlpack(x, copy=True),
    "to": lambda x: isthmus.to(x, "numpy"),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("door", DOORS)
def test_hostile__numbers_leave_the_capsule_as_it_was(case, legacy, door):
    numbers, code = HOSTILE[case]
    producer = make(Owner, legacy, numbers)
    capsule = producer.capsule()
    name = capsule_name(capsule)
    with pytest.raises(isthmus.Error) as e:
        DOORS[door](capsule)
    assert isinstance(e.value, BufferError) and e.value.code == code
    assert "needs" in str(e.value) and "\n" not in str(e.value)
    assert capsule_name(capsule) == name
    assert producer.freed == 0
    del capsule, e
    gc.collect()
    assert producer.freed == 1


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("legacy", [False, True])
def test_hostile__producers_are_freed_exactly_once(case, legacy):
    numbers, code = HOSTILE[case]
    producer = make(Owner, legacy, numbers)
    with pytest.raises(isthmus.Error) as e:
        isthmus.from_dlpack(producer)
    assert e.value.code == code
    del e
    gc.collect()
    assert producer.freed == 1


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile__a_plan_never_consumes(case):
    producer = make(Owner, False, HOSTILE[case][0])
    capsule = producer.capsule()
    try:
        receipt = isthmus.plan(capsule, "numpy")
        assert receipt.route == "refuse"
    except isthmus.Error as error:
        assert error.code == HOSTILE[case][1]
    assert capsule_name(capsule) == "dltensor_versioned"
    assert producer.freed == 0


OUT = isthmus.empty((4,), "float32")


@pytest.mark.parametrize("version", [(0, 8), (2, 0), (255, 255), (2**32 - 1, 0)])
@pytest.mark.parametrize("door", [*DOORS, "into"])
def test_hostile__other_major_versions_are_deleted_once(version, door):
    """dmlc/dlpack: nothing after version, context and deleter is read."""
    producer = Owner(version=version, ndim=-1, dtype=(255, 255, 65535))
    capsule = producer.capsule()
    doors = dict(DOORS, into=lambda x: isthmus.to(x, "numpy", out=OUT))
    with pytest.raises(isthmus.Error) as e:
        doors[door](capsule)
    assert e.value.code == 208
    assert capsule_name(capsule) == "used_dltensor_versioned"
    assert producer.freed == 1
    del capsule, e
    gc.collect()
    assert producer.freed == 1


@pytest.mark.parametrize("name", [
    b"", b"DLTENSOR", b"dltensor ", b"dltensor_versioned2", b"used_",
    b"used_dltensor_versioned_", b"dltensor\n", b"\xff\xfe", b"x" * 4000])
def test_hostile__names_of_nobody_are_refused_in_one_line(name):
    """NVIDIA/cutlass#3359: a struct is what its capsule's name says."""
    producer = Producer()
    producer._name = name
    capsule = producer.capsule()
    with pytest.raises(isthmus.Error) as e:
        isthmus.from_dlpack(capsule)
    assert e.value.code == 116 and producer.freed == 0
    assert len(str(e.value)) < 400


@pytest.mark.parametrize("legacy", [False, True])
def test_hostile__a_taken_name_is_never_taken_again(legacy):
    """cupy/cupy#3611"""
    producer = Producer(legacy=legacy)
    name = producer._name
    producer._name = b"used_" + name
    with pytest.raises(isthmus.Error) as e:
        isthmus.from_dlpack(producer.capsule())
    assert e.value.code == 110 and producer.freed == 0


ODD = {
    "flags_of_later_versions": dict(flags=2**64 - 8, version=(1, 2**32 - 1)),
    "scalar_without_arrays": dict(shape=(), strides=None),
    "nothing_with_wild_strides__onnxruntime_27450": dict(
        shape=(1, 8, 0, 128), strides=(-2**63, 2**63 - 1, 0, -7), data=None,
        byte_offset=2**64 - 1),
    "one_row_with_a_wild_stride__pytorch_99803": dict(
        shape=(1, 4), strides=(-2**63, 1)),
    "no_strides__cupy_2095": dict(shape=(2, 2), strides=None),
    "no_deleter__dlpack_39": dict(deleter=False),
    "device_number": dict(device=(CPU, 7)),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("door", DOORS)
def test_hostile__what_only_looks_odd_crosses(case, legacy, door):
    numbers = dict(ODD[case])
    if legacy:
        numbers.pop("version", None)
        numbers.pop("flags", None)
    producer = Owner(legacy=legacy, **numbers)
    result = DOORS[door](producer.capsule())
    assert tuple(result.shape) == tuple(numbers.get("shape", (4,)))
    del result
    gc.collect()
    assert producer.freed == (1 if numbers.get("deleter", True) else 0)


def test_hostile__strides_are_written_normal():
    """pytorch/pytorch#163282: compact by shape, not all ones."""
    t = isthmus.from_dlpack(Producer(range(128), shape=(1, 128),
                                     strides=(-3, 1)))
    assert t.strides == (128, 1)
    t = isthmus.from_dlpack(Producer(range(128), shape=(128, 1),
                                     strides=(1, 99)))
    assert t.strides == (1, 1)


class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_float)]


def released():
    view = memoryview(b"abc")
    view.release()
    return view


BUFFERS = {
    "swapped": ((ctypes.c_int32.__ctype_be__ * 3)(), 205),
    "structs": ((Pair * 2)(), 205),
    "characters": (memoryview(b"abcd").cast("c"), 205),
    "pointers": ((ctypes.c_void_p * 2)(), 205),
    "long_doubles": ((ctypes.c_longdouble * 2)(), 205),
    "letters": (array.array("u", "ab"), 205),
    "released": (released(), 214),
    "off_its_item": (memoryview(bytearray(9))[1:].cast("i"), 207),
}


@pytest.mark.parametrize("case", BUFFERS)
def test_hostile__buffers_that_are_no_plain_numbers_are_refused(case):
    source, code = BUFFERS[case]
    with pytest.raises(isthmus.Error) as e:
        isthmus.from_dlpack(source)
    assert e.value.code == code and isinstance(e.value, BufferError)
    assert "needs" in str(e.value) and "\n" not in str(e.value)


@pytest.mark.parametrize("legacy", [False, True])
def test_hostile__an_offset_is_folded_when_it_leaves_again(legacy):
    """NVIDIA/cuda-python#2592: not lost, and not counted twice."""
    producer = Producer(range(8), shape=(4,), byte_offset=16, legacy=legacy)
    t = isthmus.from_dlpack(isthmus.from_dlpack(producer))
    for version in (None, (1, 3)):
        again = isthmus.from_dlpack(t.__dlpack__(max_version=version))
        # What came by a legacy capsule is read-only, which none can say.
        if version is not None or not legacy:
            assert again.address == producer.address + 16
        assert memoryview(again).tolist() == [4.0, 5.0, 6.0, 7.0]
