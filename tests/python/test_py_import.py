# SPDX-License-Identifier: Apache-2.0
"""isthmus.from_dlpack: capsules, producers old and new, buffers."""

import array

import pytest

import isthmus
from capsule_maker import Producer, capsule_name

NAN_DEVICE = 99


def test_import__views_the_memory_of_a_versioned_capsule():
    producer = Producer()
    tensor = isthmus.from_dlpack(producer.capsule())
    assert tensor.address == producer.address
    assert tensor.shape == (4,) and tensor.strides == (1,)
    assert str(tensor.dtype) == "float32" and tensor.nbytes == 16
    assert not tensor.read_only
    assert memoryview(tensor).tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("legacy", [False, True])
def test_import__renames_the_capsule_and_frees_its_source_exactly_once(legacy):
    producer = Producer(legacy=legacy)
    capsule = producer.capsule()
    name = capsule_name(capsule)
    tensor = isthmus.from_dlpack(capsule)
    assert capsule_name(capsule) == "used_" + name
    del capsule
    assert producer.freed == 0
    del tensor
    assert producer.freed == 1


def test_import__refuses_a_capsule_whose_name_is_no_text():
    producer = Producer()
    producer._name = b"\xff\xfe"
    for call in (isthmus.from_dlpack, lambda x: isthmus.to(x, "numpy")):
        for source in (producer, producer.capsule()):
            with pytest.raises(isthmus.Error, match="it is named") as e:
                call(source)
            assert e.value.code == 116
    assert producer.freed == 0


def test_import__refuses_a_capsule_that_was_taken():
    """cupy/cupy#3611"""
    producer = Producer()
    capsule = producer.capsule()
    tensor = isthmus.from_dlpack(capsule)
    with pytest.raises(isthmus.Error, match="used_dltensor_versioned") as e:
        isthmus.from_dlpack(capsule)
    assert e.value.code == 110 and isinstance(e.value, BufferError)
    del tensor
    assert producer.freed == 1


def test_import__takes_raw_capsules_as_well_as_producers():
    """jax-ml/jax#15686"""
    for producer in (Producer(), Producer(legacy=True)):
        assert isthmus.from_dlpack(producer).address == producer.address
        assert (isthmus.from_dlpack(producer.capsule()).address
                == producer.address)


def test_import__gives_a_refused_capsule_back_untouched():
    producer = Producer(shape=(-4,))
    capsule = producer.capsule()
    with pytest.raises(isthmus.Error):
        isthmus.from_dlpack(capsule)
    assert capsule_name(capsule) == "dltensor_versioned"
    assert producer.freed == 0


def test_import__of_another_major_version_renames_then_deletes_once():
    producer = Producer(version=(2, 0), shape=(-4,), ndim=-1)
    capsule = producer.capsule()
    with pytest.raises(isthmus.Error, match="2.0") as e:
        isthmus.from_dlpack(capsule)
    assert e.value.code == 208 and isinstance(e.value, BufferError)
    assert capsule_name(capsule) == "used_dltensor_versioned"
    assert producer.freed == 1
    del capsule
    assert producer.freed == 1


def test_import__counts_a_legacy_capsule_as_read_only():
    """wjakob/nanobind#1122"""
    assert isthmus.from_dlpack(Producer(legacy=True)).read_only
    assert isthmus.from_dlpack(Producer(flags=1)).read_only
    assert not isthmus.from_dlpack(Producer()).read_only


HOSTILE = {
    "negative_extent": (dict(shape=(-4,)), 202),
    "element_count_overflows__matx_1204": (dict(shape=(2**62, 4)), 203),
    "too_many_dimensions": (dict(shape=(1,) * 65), 201),
    "negative_ndim": (dict(ndim=-1), 201),
    "null_data__jax_37303": (dict(data=None), 204),
    "unknown_dtype": (dict(dtype=(77, 8, 1)), 205),
    "odd_bits": (dict(dtype=(2, 31, 1)), 205),
    "lanes": (dict(dtype=(2, 32, 2)), 206),
    "misaligned": (dict(offset=2), 207),
    "unknown_device": (dict(device=(NAN_DEVICE, 0)), 209),
    "byte_offset_overflows": (dict(byte_offset=2**64 - 1), None),
    "strides_overflow": (dict(shape=(2,), strides=(2**62,)), 203),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("legacy", [False, True])
def test_import__refuses_hostile_numbers(case, legacy):
    numbers, code = HOSTILE[case]
    producer = Producer(legacy=legacy, **numbers)
    with pytest.raises(isthmus.Error) as e:
        isthmus.from_dlpack(producer.capsule())
    assert isinstance(e.value, BufferError)
    assert code is None or e.value.code == code
    assert "needs" in str(e.value) and "\n" not in str(e.value)
    assert producer.freed == 0


@pytest.mark.parametrize("code", [2, 4, 7, 8, 12, 14, 17, 18])
def test_import__refuses_a_device_that_no_backend_serves(code):
    producer = Producer(device=(code, 0))
    with pytest.raises(BufferError) as e:
        isthmus.from_dlpack(producer.capsule())
    assert e.value.code in (309, 316)


@pytest.mark.parametrize("code", [3, 11, 13])
def test_import__reads_pinned_memory_as_host_memory(code):
    """jax-ml/jax#22346"""
    producer = Producer(device=(code, 0))
    tensor = isthmus.from_dlpack(producer.capsule())
    assert tensor.address == producer.address
    assert tensor.device == (1, 0)


def test_import__accepts_no_strides_and_always_gives_some():
    """dmlc/dlpack#178"""
    tensor = isthmus.from_dlpack(Producer(range(8), shape=(2, 4)))
    assert tensor.strides == (4, 1)


def test_import__obeys_byte_offset():
    """pytorch/pytorch#170432"""
    producer = Producer(range(8), shape=(4,), byte_offset=16)
    tensor = isthmus.from_dlpack(producer)
    assert memoryview(tensor).tolist() == [4.0, 5.0, 6.0, 7.0]
    assert tensor.address == producer.address + 16


def test_import__accepts_a_null_deleter():
    """dmlc/dlpack#39"""
    producer = Producer(deleter=False)
    tensor = isthmus.from_dlpack(producer)
    assert memoryview(tensor).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_import__frees_an_empty_tensor_with_null_data_once():
    """pytorch/pytorch#117273"""
    producer = Producer(shape=(0,), data=None)
    tensor = isthmus.from_dlpack(producer)
    assert tensor.shape == (0,) and tensor.nbytes == 0
    del tensor
    assert producer.freed == 1


class NoKeywords:
    """A producer of the first days."""

    def __init__(self):
        self.producer = Producer(legacy=True)

    def __dlpack__(self):
        return self.producer.capsule()


class OnlyVersioned:
    """A producer that insists on a version."""

    def __init__(self):
        self.producer = Producer()

    def __dlpack__(self, *, max_version):
        assert max_version[0] >= 1
        return self.producer.capsule()


@pytest.mark.parametrize("kind", [NoKeywords, OnlyVersioned])
@pytest.mark.parametrize("copy", [None, False])
def test_import__negotiates_keywords_with_old_and_new_producers(kind, copy):
    """torchpipe/torchpipe#65: at run time, never by a header's version."""
    source = kind()
    tensor = isthmus.from_dlpack(source, copy=copy)
    assert tensor.address == source.producer.address


def test_import__asks_for_version_one_and_never_for_a_copy():
    producer = Producer()
    isthmus.from_dlpack(producer)
    assert producer.asked == {"max_version": (1, 3)}
    isthmus.from_dlpack(producer, copy=True)
    assert producer.asked == {"max_version": (1, 3)}


def test_import__refuses_a_producer_that_copied_against_the_wish():
    producer = Producer(flags=2)
    with pytest.raises(BufferError) as e:
        isthmus.from_dlpack(producer, copy=False)
    assert e.value.code == 104


@pytest.mark.parametrize("legacy", [False, True])
def test_import__with_copy_true_is_private_and_frees_the_source(legacy):
    producer = Producer(legacy=legacy)
    tensor = isthmus.from_dlpack(producer, copy=True)
    assert producer.freed == 1
    assert tensor.address != producer.address and tensor.copied
    assert not tensor.read_only
    assert memoryview(tensor).tolist() == [1.0, 2.0, 3.0, 4.0]


class Raises:
    def __init__(self, error):
        self.error = error

    def __dlpack__(self, **asked):
        raise self.error


def test_import__makes_a_producers_failure_the_cause():
    error = ValueError("the producer's own words")
    with pytest.raises(isthmus.Error) as e:
        isthmus.from_dlpack(Raises(error))
    assert e.value.code == 214 and isinstance(e.value, BufferError)
    assert e.value.__cause__ is error


def test_import__lets_an_interrupt_through():
    with pytest.raises(KeyboardInterrupt):
        isthmus.from_dlpack(Raises(KeyboardInterrupt()))


class GivesNonsense:
    def __dlpack__(self, **asked):
        return 17


@pytest.mark.parametrize("x", [GivesNonsense(), object(), 3, "text", None,
                               [1, 2]])
def test_import__refuses_what_is_no_tensor(x):
    with pytest.raises(isthmus.Error) as e:
        isthmus.from_dlpack(x)
    assert isinstance(e.value, BufferError)
    assert e.value.code in (116, 205, 214)


class Cuda:
    __cuda_array_interface__ = {"version": 3}


def test_import__says_that_cuda_array_interface_is_not_in_this_version():
    with pytest.raises(isthmus.Error, match="not in this version") as e:
        isthmus.from_dlpack(Cuda())
    assert e.value.code == 102


@pytest.mark.parametrize("typecode, name", [
    ("b", "int8"), ("B", "uint8"), ("h", "int16"), ("H", "uint16"),
    ("i", "int32"), ("I", "uint32"), ("l", "int64"), ("L", "uint64"),
    ("q", "int64"), ("Q", "uint64"), ("f", "float32"), ("d", "float64")])
def test_import__views_python_buffers(typecode, name):
    source = array.array(typecode, [1, 2, 3])
    tensor = isthmus.from_dlpack(source)
    assert str(tensor.dtype) == name
    assert tensor.address == source.buffer_info()[0]
    source[1] = 7
    assert list(memoryview(tensor)) == [1, 7, 3]
    assert not tensor.read_only


def test_import__locks_a_buffer_until_the_last_view_is_gone():
    source = bytearray(8)
    tensor = isthmus.from_dlpack(source)
    view = memoryview(tensor)
    del tensor
    with pytest.raises(BufferError):
        source.append(1)
    del view
    source.append(1)


def test_import__of_bytes_is_read_only():
    assert isthmus.from_dlpack(b"abcd").read_only


def test_import__of_a_strided_buffer_keeps_its_strides():
    view = memoryview(array.array("i", range(8)))[::-2]
    tensor = isthmus.from_dlpack(view)
    assert tensor.strides == (-2,)
    assert memoryview(tensor).tolist() == [7, 5, 3, 1]


@pytest.mark.parametrize("bad", [dict(copy=3), dict(device=7),
                                 dict(device=(2, 0)), dict(device="gpu")])
def test_import__refuses_wishes_that_it_does_not_know(bad):
    producer = Producer()
    with pytest.raises(isthmus.Error):
        isthmus.from_dlpack(producer, **bad)
    assert producer.freed == 0


def test_import__takes_its_argument_by_name_too():
    producer = Producer()
    assert isthmus.from_dlpack(x=producer).address == producer.address
    with pytest.raises(TypeError):
        isthmus.from_dlpack(producer, x=producer)


def test_import__refuses_unknown_keywords():
    with pytest.raises(TypeError):
        isthmus.from_dlpack(Producer(), wish=1)
    with pytest.raises(TypeError):
        isthmus.from_dlpack()
