# SPDX-License-Identifier: Apache-2.0
"""__array_interface__: dicts of anybody's making."""

import array

import pytest

import isthmus


class Has:
    """An object with a chosen __array_interface__ over real memory."""

    def __init__(self, **changes):
        self.memory = array.array("f", range(8))
        self.dict = {
            "version": 3, "typestr": "<f4", "shape": (8,),
            "data": (self.memory.buffer_info()[0], False)}
        self.dict.update(changes)
        for key in [k for k, v in changes.items() if v is KeyError]:
            del self.dict[key]

    @property
    def __array_interface__(self):
        return self.dict


def test_interface__views_its_memory():
    source = Has()
    tensor = isthmus.from_dlpack(source)
    assert tensor.address == source.memory.buffer_info()[0]
    assert memoryview(tensor).tolist() == list(range(8))
    assert not tensor.read_only


def test_interface__keeps_its_object_alive():
    source = Has()
    memory = source.memory
    tensor = isthmus.from_dlpack(source)
    del source
    assert memoryview(tensor).tolist() == memory.tolist()


def test_interface__takes_strides_in_bytes_and_read_only():
    source = Has(strides=(-8,), shape=(4,))
    source.dict["data"] = (source.dict["data"][0] + 28, True)
    tensor = isthmus.from_dlpack(source)
    assert tensor.strides == (-2,) and tensor.read_only
    assert memoryview(tensor).tolist() == [7, 5, 3, 1]


def test_interface__takes_memory_from_a_buffer_object():
    tensor = isthmus.from_dlpack(
        Has(data=array.array("f", [1, 2, 3, 4]), shape=(2,), offset=8))
    assert memoryview(tensor).tolist() == [3, 4]


HOSTILE = {
    "version_missing": dict(version=KeyError),
    "version_old": dict(version=2),
    "version_text": dict(version="3"),
    "version_huge": dict(version=2**80),
    "typestr_missing": dict(typestr=KeyError),
    "typestr_number": dict(typestr=4),
    "typestr_object": dict(typestr="|O8"),
    "typestr_void": dict(typestr="|V4"),
    "typestr_swapped": dict(typestr=">f4"),
    "typestr_three_bytes": dict(typestr="<f3"),
    "typestr_huge": dict(typestr="<f99999999999"),
    "typestr_trailing": dict(typestr="<f4x"),
    "typestr_surrogate": dict(typestr="\ud800"),
    "shape_missing": dict(shape=KeyError),
    "shape_list": dict(shape=[8]),
    "shape_negative": dict(shape=(-8,)),
    "shape_float": dict(shape=(8.0,)),
    "shape_huge": dict(shape=(2**80,)),
    "shape_overflows": dict(shape=(2**40, 2**40)),
    "shape_deep": dict(shape=(1,) * 65),
    "strides_short": dict(strides=()),
    "strides_text": dict(strides="4"),
    "strides_uneven": dict(strides=(3,)),
    "strides_huge": dict(strides=(2**62,)),
    "data_short": dict(data=(64,)),
    "data_text": dict(data=("64", False)),
    "data_negative": dict(data=(-64, False)),
    "data_huge": dict(data=(2**64, False)),
    "data_null": dict(data=(0, False)),
    "data_misaligned": dict(data=(4097, False)),
    "data_missing": dict(data=KeyError),
    "data_no_buffer": dict(data=object()),
    "buffer_short": dict(data=b"\0" * 31),
    "buffer_offset_outside": dict(data=bytearray(64), offset=40),
    "buffer_offset_negative": dict(data=bytearray(64), offset=-4),
    "buffer_offset_huge": dict(data=bytearray(64), offset=2**64),
    "buffer_offset_text": dict(data=bytearray(64), offset="4"),
    "buffer_stride_below": dict(data=bytearray(64), strides=(-4,)),
    "mask": dict(mask=object()),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_interface__refuses_hostile_dicts(case):
    with pytest.raises(isthmus.Error) as e:
        isthmus.from_dlpack(Has(**HOSTILE[case]))
    assert isinstance(e.value, BufferError)
    assert "needs" in str(e.value) and "\n" not in str(e.value)


@pytest.mark.parametrize("it", [None, 3, [], ()])
def test_interface__refuses_what_is_no_dict(it):
    class Bad:
        __array_interface__ = it

    with pytest.raises(isthmus.Error):
        isthmus.from_dlpack(Bad())


def test_interface__makes_its_failure_the_cause():
    class Bad:
        @property
        def __array_interface__(self):
            raise RuntimeError("not today")

    with pytest.raises(isthmus.Error) as e:
        isthmus.from_dlpack(Bad())
    assert isinstance(e.value.__cause__, RuntimeError)


def test_interface__agrees_with_numpy():
    np = pytest.importorskip("numpy")

    class Wraps:
        def __init__(self, array):
            self.__array_interface__ = array.__array_interface__
            self.array = array

    for dtype in "?bhiqBHIQefdFD":
        for source in (np.arange(12).astype(dtype).reshape(3, 4),
                       np.arange(12).astype(dtype).reshape(3, 4).T[::-1]):
            tensor = isthmus.from_dlpack(Wraps(source))
            back = isthmus.to(tensor, "numpy")
            assert back.dtype == source.dtype
            assert np.array_equal(back, source)
            assert back.strides == source.strides
