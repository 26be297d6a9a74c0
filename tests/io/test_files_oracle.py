# SPDX-License-Identifier: Apache-2.0
"""NumPy and the safetensors wheel say what files mean: what they write is read
equal, what is written here they read equal, and no file means one thing to
them and another here."""

import io
import json
import random
import struct

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from files_library import Files, Refused

NUMPY = [np.dtype(t) for t in
         ("?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", "f", "d", "F", "D")]
SMALL = ["bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
         "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
         "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
         "int4", "uint4", "int2", "uint2"]
SHAPES = [(), (1,), (7,), (0,), (2, 3), (3, 0, 2), (2, 3, 4), (1, 5, 1)]
FILE_FORMAT, FILE_TRUNCATED, FILE_DTYPE = 210, 211, 212


@pytest.fixture
def files():
    made = Files()
    yield made
    made.close()


def one(files, path, dtype=None):
    tensors = files.load(path, dtype)
    assert list(tensors) == [""]
    return tensors[""]


def sample(dtype, shape, seed=1):
    raw = np.random.default_rng(seed).bytes(
        int(np.prod(shape, dtype=int)) * dtype.itemsize)
    return np.frombuffer(raw, dtype).reshape(shape)


def in_file_order(array):
    """The bytes that a tensor of the same strides shows."""
    column = array.flags.f_contiguous and not array.flags.c_contiguous
    return array.tobytes("F" if column else "C")


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("dtype", NUMPY, ids=str)
def test_npy_of_numpy_is_read_equal(files, tmp_path, dtype, version):
    for shape in SHAPES:
        for order in "CF":
            for sign in "<>":
                array = np.asarray(
                    sample(dtype, shape).astype(dtype.newbyteorder(sign)),
                    order=order)
                with open(tmp_path / "a.npy", "wb") as out:
                    np.lib.format.write_array(out, array, version)
                tensor = one(files, tmp_path / "a.npy")
                assert tensor.shape == shape
                assert tensor.dtype == dtype.name
                native = array.astype(dtype)
                assert tensor.bytes() == in_file_order(
                    np.asarray(native, order=order))
                tensor.close()


@pytest.mark.parametrize("dtype", NUMPY, ids=str)
def test_npy_written_is_byte_for_byte_that_of_numpy(files, tmp_path, dtype):
    for shape in [*SHAPES, (100000,), (2, 100000)]:
        for order in "CF":
            array = np.asarray(sample(dtype, shape), order=order)
            np.save(tmp_path / "theirs.npy", array)
            tensor = one(files, tmp_path / "theirs.npy")
            files.save(tmp_path / "ours.npy", {"": tensor})
            tensor.close()
            assert ((tmp_path / "ours.npy").read_bytes()
                    == (tmp_path / "theirs.npy").read_bytes())


@pytest.mark.parametrize("name", SMALL)
def test_npy_of_ml_dtypes_is_read_and_written_equal(files, tmp_path, name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    bits = ml_dtypes.iinfo(dtype).bits if "int" in name else None
    array = np.random.default_rng(3).integers(
        0, 4 if bits == 2 else 8, (3, 5)).astype(dtype)
    np.save(tmp_path / "theirs.npy", array)
    theirs = (tmp_path / "theirs.npy").read_bytes()
    tensor = one(files, tmp_path / "theirs.npy", name)
    assert tensor.dtype == name and tensor.shape == (3, 5)
    assert tensor.bytes(padded=True)[:15] == array.tobytes()[:15]
    files.save(tmp_path / "ours.npy", {"": tensor})
    tensor.close()
    # NumPy itself cannot read back the '<f1' that it writes for one of them.
    assert ((tmp_path / "ours.npy").read_bytes()
            == theirs.replace(b"'<f1'", b"'<V1'"))
    back = np.load(tmp_path / "ours.npy")
    assert back.dtype.itemsize == dtype.itemsize
    assert back.view(dtype).tobytes() == array.tobytes()


@pytest.mark.parametrize("array, words", [
    (np.array([{}], object), "Python objects"),
    (np.array([b"abc"]), "byte strings"),
    (np.array(["abc"]), "unicode strings"),
    (np.array(["2020-01-01"], "M8[D]"), "dates (datetime64)"),
    (np.array([1], "m8[ns]"), "time spans (timedelta64)"),
    (np.zeros(2, "f4,i4"), "structured"),
    (np.zeros(2, np.longdouble), "long doubles"),
    (np.zeros(2, np.clongdouble), "complex long doubles"),
    (np.zeros(2, "V3"), "raw bytes"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_npy_of_other_items_is_refused_by_name(files, tmp_path, array, words):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(Refused) as caught:
        files.load(tmp_path / "a.npy")
    assert caught.value.code == FILE_DTYPE
    assert words in str(caught.value)


def npy_bytes(text, data=b"\0" * 64):
    header = text + b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + data


def mutate(rng, text):
    """One or two small changes of a header."""
    tokens = [b"'", b"(", b")", b",", b" ", b"{", b"}", b":", b"0", b"3", b"-",
              b"True", b"None", b"<", b">", b"|", b"f4", b"i8", b"L", b"\\",
              b'"', b"[", b"]", b".", b"e", b"1", b"\n", b"null", b"F32",
              b"\xff", b"\0", b"u0061", b"true"]
    for _ in range(rng.randint(1, 2)):
        at, kind = rng.randrange(len(text)), rng.randrange(4)
        if kind == 0:
            text = text[:at] + text[at + rng.randint(1, 3):]
        elif kind == 1:
            text = text[:at] + rng.choice(tokens) + text[at:]
        elif kind == 2:
            text = text[:at] + rng.choice(tokens) + text[at + 1:]
        else:
            other = rng.randrange(len(text))
            text = text[:at] + text[other:other + 4] + text[at:]
        text = text or b"{"
    return text


def test_npy_read_here_means_the_same_to_numpy(files, tmp_path):
    rng, accepted = random.Random(20), 0
    seed = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    for _ in range(1500):
        data = npy_bytes(mutate(rng, seed))
        (tmp_path / "a.npy").write_bytes(data)
        try:
            tensor = one(files, tmp_path / "a.npy")
        except Refused:
            continue
        accepted += 1
        array = np.load(io.BytesIO(data))
        assert array.shape == tensor.shape, data
        assert array.dtype.newbyteorder("=").name == tensor.dtype, data
        assert in_file_order(array) == tensor.bytes(), data
        tensor.close()
    assert accepted > 20


def test_npy_above_four_gibibytes_is_mapped(files, tmp_path):
    size = (5 << 30) + 3
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }"
    path = tmp_path / "a.npy"
    path.write_bytes(npy_bytes(header % size, b""))
    begin = path.stat().st_size
    with open(path, "r+b") as out:
        out.truncate(begin + size)  # a hole: takes no room
        out.seek(begin + size - 1)
        out.write(b"\7")
    tensor = one(files, path)
    assert tensor.shape == (size,)
    tensor.address += size - 1
    tensor.shape = (1,)
    assert tensor.bytes() == b"\7"
    tensor.close()
    with open(path, "r+b") as out:
        out.truncate(begin + size - 1)
    with pytest.raises(Refused) as caught:
        files.load(path)
    assert caught.value.code == FILE_TRUNCATED
    assert str(begin + size) in str(caught.value)


SAFETENSORS_NUMPY = [d for d in NUMPY if d.char != "D"]


def random_arrays(seed):
    rng = random.Random(seed)
    return {f"layer.{i}/w:é\"{i}": sample(rng.choice(SAFETENSORS_NUMPY),
                                          rng.choice(SHAPES), seed + i)
            for i in range(rng.randint(0, 12))}


@pytest.mark.parametrize("seed", range(20))
def test_safetensors_of_the_wheel_are_read_equal(files, tmp_path, seed):
    arrays = random_arrays(seed)
    safetensors.numpy.save_file(arrays, tmp_path / "a.safetensors",
                                metadata={"made by": "a test"})
    tensors = files.load(tmp_path / "a.safetensors")
    assert set(tensors) == set(arrays)
    for name, array in arrays.items():
        assert tensors[name].shape == array.shape
        assert tensors[name].dtype == array.dtype.name
        assert tensors[name].bytes() == array.tobytes()
        tensors[name].close()


@pytest.mark.parametrize("seed", range(20))
def test_safetensors_written_are_read_equal_by_the_wheel(files, tmp_path, seed):
    arrays = random_arrays(100 + seed)
    safetensors.numpy.save_file(arrays, tmp_path / "theirs.safetensors")
    tensors = files.load(tmp_path / "theirs.safetensors")
    files.save(tmp_path / "ours.safetensors", tensors)
    back = safetensors.numpy.load_file(tmp_path / "ours.safetensors")
    assert set(back) == set(arrays)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()
        tensors[name].close()


def entry(dtype, shape, begin, end, **more):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end],
            **more}


def safetensors_bytes(text, size):
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    return struct.pack("<Q", len(text)) + text + bytes(range(size))


WHEEL_DTYPES = [
    ("BOOL", 8), ("F4", 4), ("F6_E2M3", 6), ("F6_E3M2", 6), ("U8", 8),
    ("I8", 8), ("F8_E5M2", 8), ("F8_E4M3", 8), ("F8_E8M0", 8),
    ("F8_E4M3FNUZ", 8), ("F8_E5M2FNUZ", 8), ("I16", 16), ("U16", 16),
    ("F16", 16), ("BF16", 16), ("I32", 32), ("U32", 32), ("F32", 32),
    ("C64", 64), ("F64", 64), ("I64", 64), ("U64", 64)]


@pytest.mark.parametrize("name, bits", WHEEL_DTYPES)
def test_every_dtype_of_the_wheel_is_read_and_written(files, tmp_path, name,
                                                      bits):
    data = safetensors_bytes({"w": entry(name, [2, 4], 0, bits)}, bits)
    (theirs,) = safetensors.deserialize(data)
    (tmp_path / "a.safetensors").write_bytes(data)
    tensors = files.load(tmp_path / "a.safetensors")
    assert tensors["w"].bytes() == bytes(theirs[1]["data"])
    assert tensors["w"].bits == bits
    files.save(tmp_path / "b.safetensors", tensors)
    tensors["w"].close()
    (back,) = safetensors.deserialize(
        (tmp_path / "b.safetensors").read_bytes())
    assert back == theirs


def wheel_reads(data):
    try:
        return {n: (tuple(t["shape"]), t["dtype"], bytes(t["data"]))
                for n, t in safetensors.deserialize(data)}
    except safetensors.SafetensorError:
        return None


# What the format's text forbids or a C string cannot hold, though the wheel
# reads it: refused here on purpose.
STRICTER = {
    "a name twice": b'{"a":%s,"a":%s}',
    "a name with a NUL": b'{"a\\u0000":%s,"b":%s}',
    "blanks before {": b' {"a":%s,"b":%s}',
    "metadata that is null": b'{"__metadata__":null,"a":%s,"b":%s}',
}


@pytest.mark.parametrize("why", STRICTER)
def test_files_refused_only_here_are_few_and_known(files, tmp_path, why):
    parts = (b'{"dtype":"U8","shape":[1],"data_offsets":[0,1]}',
             b'{"dtype":"U8","shape":[1],"data_offsets":[1,2]}')
    data = safetensors_bytes(STRICTER[why] % parts, 2)
    (tmp_path / "a.safetensors").write_bytes(data)
    with pytest.raises(Refused) as caught:
        files.load(tmp_path / "a.safetensors")
    assert caught.value.code == FILE_FORMAT


def test_safetensors_mean_the_same_here_and_to_the_wheel(files, tmp_path):
    rng, accepted = random.Random(21), 0
    seed = json.dumps({"__metadata__": {"k": "v"}, "a": entry("U8", [3], 0, 3),
                       "b": entry("F32", [1, 2], 3, 11)}).encode()
    for _ in range(2000):
        data = safetensors_bytes(mutate(rng, seed), 11)
        (tmp_path / "a.safetensors").write_bytes(data)
        theirs = wheel_reads(data)
        try:
            tensors = files.load(tmp_path / "a.safetensors")
        except Refused as error:
            # Of the mutations above only these are read by the wheel alone.
            if theirs is not None:
                assert any(words in str(error) for words in (
                    "two tensors named", "does not begin with {",
                    "__metadata__", "NUL in its name")), (data, str(error))
            continue
        accepted += 1
        assert theirs is not None, data
        ours = {name: (t.shape, t.bytes()) for name, t in tensors.items()}
        assert ours == {n: (s, b) for n, (s, _, b) in theirs.items()}, data
        for tensor in tensors.values():
            tensor.close()
    assert accepted > 20


BAD_PLACES = {
    "overlap": {"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 2, 6)},
    "hole": {"a": entry("U8", [4], 0, 4), "b": entry("U8", [1], 5, 6)},
    "begin": {"a": entry("U8", [5], 1, 6)},
    "end": {"a": entry("U8", [5], 0, 5)},
    "size": {"a": entry("F32", [2], 0, 6)},
    "backwards": {"a": entry("U8", [6], 6, 0)},
    "beyond": {"a": entry("U8", [7], 0, 7)},
    "huge": {"a": entry("U8", [2**63], 0, 2**63)},
    "product": {"a": entry("U8", [2**32, 2**32], 0, 6)},
    "dtype": {"a": entry("F128", [6], 0, 6)},
    "bits": {"a": entry("F4", [11], 0, 6)},
}


@pytest.mark.parametrize("why", BAD_PLACES)
def test_bad_places_are_refused_as_the_wheel_refuses(files, tmp_path, why):
    data = safetensors_bytes(BAD_PLACES[why], 6)
    assert wheel_reads(data) is None
    (tmp_path / "a.safetensors").write_bytes(data)
    with pytest.raises(Refused) as caught:
        files.load(tmp_path / "a.safetensors")
    assert caught.value.code in (FILE_FORMAT, FILE_TRUNCATED, FILE_DTYPE)
    assert "a.safetensors" in str(caught.value)


def test_an_offset_above_two_to_the_fifty_third_is_exact(files, tmp_path):
    # As doubles both ends are 2**53 and the size would be right.
    text = {"a": entry("U8", [0], 2**53, 2**53 + 1)}
    (tmp_path / "a.safetensors").write_bytes(safetensors_bytes(text, 0))
    with pytest.raises(Refused, match="data_offsets of 1 bytes; needs 0"):
        files.load(tmp_path / "a.safetensors")
