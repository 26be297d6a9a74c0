# SPDX-License-Identifier: Apache-2.0
"""What is said of files has the form of its catalog entry, so that isthmus
explain finds the entry from the text."""

import json
import pathlib
import re
import struct
import tomllib

import numpy as np
import pytest

from files_library import Files, Refused, ROOT

PATTERNS = {int(path.name[:3]): tomllib.loads(path.read_text())["messagePattern"]
            for path in (ROOT / "catalog" / "isthmus").glob("*.toml")}


def npy(header):
    return (b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header
            + bytes(64))


def items(descr, shape="(2,)"):
    return npy(b"{'descr': %s, 'fortran_order': False, 'shape': %s}"
               % (descr.encode(), shape.encode()))


def safetensors(header, size):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(size)


def entry(dtype, shape, *offsets):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


BAD = {
    "empty.npy": b"",
    "text.txt": b"hello there",
    "archive.npz": b"PK\3\4 and so on",
    "text.npy": b"hello there",
    "version.npy": b"\x93NUMPY\4\0",
    "cut.npy": b"\x93NUMPY\1",
    "keys.npy": npy(b"{}"),
    "object.npy": items("'|O'"),
    "fields.npy": items("[('a', 'f4')]"),
    "raw.npy": items("'<V2'"),
    "short.npy": items("'<f8'", "(200,)"),
    "huge.npy": items("'<f8'", "(2000000000000000000,)"),
    "cut.safetensors": b"abc",
    "length.safetensors": b"\xff" * 8 + b"{}",
    "short.safetensors": b"\x40" + bytes(7) + b"{}",
    "list.safetensors": safetensors(b"[]", 0),
    "json.safetensors": safetensors(b'{"a":}', 4),
    "overlap.safetensors": safetensors(
        {"a": entry("U8", [4], 0, 4), "b": entry("U8", [4], 2, 6)}, 6),
    "after.safetensors": safetensors({"a": entry("U8", [4], 0, 4)}, 6),
    "end.safetensors": safetensors({"a": entry("U8", [4], 0, 4)}, 3),
    "dtype.safetensors": safetensors({"a": entry("F9", [4], 0, 4)}, 4),
    "number.safetensors": safetensors({"a": 1}, 0),
    "size.safetensors": safetensors({"a": entry("U8", [5], 0, 4)}, 4),
    "product.safetensors": safetensors(
        {"a": entry("U8", [2**40, 2**40], 0, 4)}, 4),
    "metadata.safetensors": safetensors(b'{"__metadata__":1}', 0),
    "twice.safetensors": safetensors(
        b'{"a":%s,"a":%s}' % (
            (b'{"dtype":"U8","shape":[0],"data_offsets":[0,0]}',) * 2), 0),
}


def assert_has_its_form(error):
    found = [code for code, pattern in PATTERNS.items()
             if re.fullmatch(pattern, str(error))]
    assert found == [error.code], str(error)


@pytest.fixture
def files():
    made = Files()
    yield made
    made.close()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_told_in_the_form_of_its_entry(files, tmp_path, name):
    (tmp_path / name).write_bytes(BAD[name])
    with pytest.raises(Refused) as caught:
        files.load(tmp_path / name)
    assert_has_its_form(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize("name", ["none.npy", "."])
def test_a_missing_file_is_told_in_the_form_of_its_entry(files, tmp_path,
                                                         name):
    with pytest.raises(Refused) as caught:
        files.load(tmp_path / name)
    assert_has_its_form(caught.value)


@pytest.mark.parametrize("name", ["no/folder.npy", "folder.npy", "a.txt"])
def test_a_bad_output_is_told_in_the_form_of_its_entry(files, tmp_path, name):
    (tmp_path / "folder.npy").mkdir()
    np.save(tmp_path / "good.npy", np.zeros(3))
    (tensor,) = files.load(tmp_path / "good.npy").values()
    with pytest.raises(Refused) as caught:
        files.save(tmp_path / name, {"": tensor})
    tensor.close()
    assert_has_its_form(caught.value)


def test_a_missing_name_is_told_in_the_form_of_its_entry(files, tmp_path):
    one = entry("U8", [1], 0, 1), entry("U8", [1], 1, 2)
    (tmp_path / "a.safetensors").write_bytes(
        safetensors(dict(zip("ab", one)), 2))
    for name in (None, "c"):
        with pytest.raises(Refused) as caught:
            files.load_one(tmp_path / "a.safetensors", name)
        assert_has_its_form(caught.value)


@pytest.mark.parametrize("text", ["cuda:0", "opencl:1", "pjrt:x#y", "a.npy:w",
                                  "pjrt:", "template#x", "a.safetensors:"])
def test_a_bad_place_is_told_in_the_form_of_its_entry(files, text):
    with pytest.raises(Refused) as caught:
        files.parse_place(text)
    assert_has_its_form(caught.value)
