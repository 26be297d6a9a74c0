# SPDX-License-Identifier: Apache-2.0
"""isthmus.Tensor: its attributes, its exports, its buffer, its text."""

import array
import weakref

import pytest

import isthmus
from capsule_maker import Producer, capsule_name, read_versioned


def floats(count=6):
    return array.array("f", range(count))


def matrix():
    view = memoryview(floats()).cast("B").cast("f", (2, 3))
    return isthmus.from_dlpack(view)


def test_tensor__has_the_attributes_of_the_contract():
    t = matrix()
    assert t.shape == (2, 3) and t.strides == (3, 1) and t.ndim == 2
    assert t.byte_offset == 0 and t.nbytes == 24
    assert str(t.dtype) == "float32" and t.dtype == "float32"
    assert (t.dtype.code, t.dtype.bits, t.dtype.lanes) == (2, 32, 1)
    assert t.read_only is False and t.owner_alive is True
    assert hash(t.dtype) == hash("float32")


def test_tensor__device_equals_the_pair_of_dlpack_device():
    t = matrix()
    assert t.__dlpack_device__() == (1, 0)
    assert t.device == t.__dlpack_device__()
    assert (t.device.type, t.device.id) == t.__dlpack_device__()
    assert t.device.type is isthmus.DeviceType.cpu
    assert str(t.device.type) == "cpu"
    assert t.device == matrix().device and t.device != (2, 0)
    assert hash(t.device) == hash((1, 0))
    assert t.device.backend.name == "host"


@pytest.mark.parametrize("version, name", [
    (None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned"),
    ((1, 3), "dltensor_versioned"), ((7, 1), "dltensor_versioned")])
def test_tensor__gives_the_kind_of_capsule_that_is_asked_for(version, name):
    assert capsule_name(matrix().__dlpack__(max_version=version)) == name


def test_tensor__writes_strides_version_and_flags_into_capsules():
    t = matrix()
    capsule = t.__dlpack__(max_version=(1, 0))
    struct = read_versioned(capsule)
    assert (struct.major, struct.minor) == (1, 3) and struct.flags == 0
    assert struct.tensor.strides[:2] == [3, 1]
    assert struct.tensor.data == t.address
    copied = t.__dlpack__(max_version=(1, 0), copy=True)
    struct = read_versioned(copied)
    assert struct.flags == 2 and struct.tensor.data != t.address


def test_tensor__exports_by_alias_or_by_copy_as_asked():
    t = matrix()
    for copy, same in ((None, True), (False, True), (True, False)):
        other = isthmus.from_dlpack(t.__dlpack__(max_version=(1, 0),
                                                 copy=copy))
        assert (other.address == t.address) is same


@pytest.mark.parametrize("bad, error", [
    (dict(stream=1), isthmus.Error), (dict(stream=0), isthmus.Error),
    (dict(stream="x"), isthmus.Error), (dict(dl_device=(2, 0)), BufferError),
    (dict(dl_device=3), isthmus.Error), (dict(dl_device=(1,)), isthmus.Error),
    (dict(max_version=1), isthmus.Error), (dict(copy=1), isthmus.Error),
    (dict(wish=1), TypeError)])
def test_tensor__refuses_what_it_cannot_export(bad, error):
    with pytest.raises(error):
        matrix().__dlpack__(**bad)


@pytest.mark.parametrize("good", [
    dict(stream=None), dict(stream=-1), dict(dl_device=(1, 0)),
    dict(dl_device=None), dict(dl_device=[1, 0], copy=True)])
def test_tensor__takes_the_keywords_of_the_array_api(good):
    t = matrix()
    other = isthmus.from_dlpack(t.__dlpack__(max_version=(1, 1), **good))
    assert memoryview(other).tolist() == memoryview(t).tolist()


def test_tensor__capsules_that_nobody_takes_free_their_source_once():
    producer = Producer()
    t = isthmus.from_dlpack(producer)
    capsules = [t.__dlpack__(max_version=(1, 0)), t.__dlpack__(copy=True)]
    del t
    assert producer.freed == 0
    del capsules
    assert producer.freed == 1


def test_tensor__lends_its_memory_by_the_buffer_protocol():
    source = floats()
    t = isthmus.from_dlpack(source)
    view = memoryview(t)
    view[2] = 9
    assert source[2] == 9 and not view.readonly and view.format == "f"
    assert bytes(t) == source.tobytes()


def test_tensor__does_not_lend_read_only_memory_for_writing():
    import io
    t = isthmus.from_dlpack(b"ab")
    assert memoryview(t).readonly
    with pytest.raises((BufferError, TypeError)):
        io.BytesIO(b"xx").readinto(t)
    assert bytes(t) == b"ab"


def test_tensor__lends_strided_memory_only_to_who_can_walk_it():
    t = isthmus.from_dlpack(memoryview(floats())[::-2])
    assert memoryview(t).tolist() == [5, 3, 1]
    assert t.nbytes == 12
    with pytest.raises(BufferError):
        import hashlib
        hashlib.sha256(t)


def test_tensor__keeps_its_memory_for_its_buffers_after_close():
    producer = Producer()
    t = isthmus.from_dlpack(producer)
    view = memoryview(t)
    t.close()
    assert producer.freed == 0 and view.tolist() == [1, 2, 3, 4]
    view.release()
    assert producer.freed == 1


def test_tensor__has_no_buffer_of_a_type_without_a_format():
    producer = Producer(dtype=(4, 16, 1))
    t = isthmus.from_dlpack(producer)
    assert str(t.dtype) == "bfloat16"
    with pytest.raises(BufferError) as e:
        memoryview(t)
    assert e.value.code == 205


def test_tensor__shows_the_values_of_small_ones():
    text = repr(matrix())
    assert "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]" in text
    assert "shape=(2, 3)" in text and "float32" in text and "host" in text
    big = repr(isthmus.from_dlpack(floats(65)))
    assert "65" in big and "1.0" not in big
    assert "read_only" in repr(isthmus.from_dlpack(b"a"))
    assert "bfloat16" in repr(
        isthmus.from_dlpack(Producer(dtype=(4, 16, 1))))


def test_tensor__is_a_context_that_closes():
    producer = Producer()
    with isthmus.from_dlpack(producer) as t:
        assert t.owner_alive
    assert producer.freed == 1 and not t.owner_alive
    assert "closed" in repr(t)
    t.close()
    for use in (lambda: t.shape, lambda: t.__dlpack__(), lambda: t.wait(),
                lambda: memoryview(t), lambda: isthmus.from_dlpack(t),
                lambda: t.__enter__(), lambda: t.device,
                lambda: t.__dlpack_device__(), lambda: t.nbytes):
        with pytest.raises(isthmus.Error) as e:
            use()
        assert e.value.code == 106


def test_tensor__of_a_tensor_is_the_same_memory_with_a_life_of_its_own():
    producer = Producer()
    first = isthmus.from_dlpack(producer)
    second = isthmus.from_dlpack(first)
    first.close()
    assert second.address == producer.address and producer.freed == 0
    second.close()
    assert producer.freed == 1


def test_tensor__can_be_referred_to_weakly_and_not_be_made():
    t = matrix()
    ref = weakref.ref(t)
    assert ref() is t
    del t
    assert ref() is None
    with pytest.raises(TypeError):
        isthmus.Tensor()


def test_tensor__waits_and_gives_itself():
    t = matrix()
    assert t.wait() is t


def test_tensor__names_what_its_strides_do():
    def named(shape, strides, **more):
        producer = Producer(range(16), shape=shape, strides=strides, **more)
        return isthmus.from_dlpack(producer).layout

    assert named((2, 3), (3, 1)) == ()
    assert named((2, 3), (1, 2)) == ("permuted",)
    assert named((2, 3), (4, 1)) == ("gaps",)
    assert named((2, 3), (-3, 1), byte_offset=12) == ("negative",)
    assert named((2, 3), (0, 1)) == ("overlap",)
    # Interleaved, and no address twice: it may be written.
    assert named((2, 3), (3, 2)) == ("gaps",)
    assert named((2, 0, 3), (-1, 7, 0)) == ()
    assert named((1, 3), (99, 1)) == ()
    t = isthmus.from_dlpack(Producer(range(16), shape=(2, 3), strides=(3, 2)))
    assert not t.read_only
