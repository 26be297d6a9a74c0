# SPDX-License-Identifier: Apache-2.0
"""The files of isthmus from Python, through its C library and ctypes alone, so
that other libraries' readers and writers can be held against them."""

import ctypes as c
import math
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("ISTHMUS_BUILD") or ROOT / "build")


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("native", c.c_int32),
                ("message", c.c_char * 504)]


class DLTensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device_type", c.c_int),
                ("device_id", c.c_int32), ("ndim", c.c_int32),
                ("code", c.c_uint8), ("bits", c.c_uint8),
                ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64)]


class FileOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("dtype", c.c_char_p)]


class Refused(Exception):
    """What the library said; code is its ist_code."""

    def __init__(self, err):
        super().__init__(err.message.decode())
        self.code = err.code


def load_library():
    library = c.CDLL(str(BUILD / "libisthmus.so"))
    library.ist_file_name.restype = c.c_char_p
    library.ist_file_count.restype = c.c_size_t
    library.ist_tensor_view.restype = c.POINTER(DLTensor)
    library.ist_tensor_view.argtypes = [c.c_void_p]
    library.ist_file_count.argtypes = [c.c_void_p]
    library.ist_file_name.argtypes = [c.c_void_p, c.c_size_t]
    for name in ("ist_file_release", "ist_tensor_release",
                 "ist_context_release"):
        getattr(library, name).argtypes = [c.c_void_p]
        getattr(library, name).restype = None
    return library


class Tensor:
    """A tensor of a file: its facts, and its dense bytes."""

    def __init__(self, library, handle):
        self.library, self.handle = library, handle
        view = library.ist_tensor_view(handle).contents
        self.shape = tuple(view.shape[i] for i in range(view.ndim))
        self.strides = tuple(view.strides[i] for i in range(view.ndim))
        name = c.create_string_buffer(64)
        dtype = c.c_uint32(view.code | view.bits << 8 | view.lanes << 16)
        assert library.ist_dtype_name(dtype, name, c.c_size_t(64)) == 0
        self.dtype, self.bits = name.value.decode(), view.bits
        self.address = (view.data or 0) + view.byte_offset

    def bytes(self, padded=False):
        bits = 8 if padded else self.bits
        size = (math.prod(self.shape) * bits + 7) // 8
        return c.string_at(self.address, size) if size else b""

    def close(self):
        self.library.ist_tensor_release(self.handle)


class Files:
    """A context of the library."""

    def __init__(self):
        self.library = load_library()
        self.context = c.c_void_p()
        assert self.library.ist_context_create(
            None, c.byref(self.context), None) == 0

    def close(self):
        self.library.ist_context_release(self.context)

    def check(self, code, err):
        assert code == err.code
        if code != 0:
            raise Refused(err)

    def load(self, path, dtype=None):
        """All tensors of a file by name; close each."""
        err, file = Error(), c.c_void_p()
        options = FileOptions(c.sizeof(FileOptions),
                              dtype and dtype.encode())
        self.check(self.library.ist_file_open(
            self.context, os.fsencode(path), c.byref(options), c.byref(file),
            c.byref(err)), err)
        tensors = {}
        for i in range(self.library.ist_file_count(file)):
            name = self.library.ist_file_name(file, i)
            handle = c.c_void_p()
            self.check(self.library.ist_file_tensor(
                file, name, c.byref(handle), c.byref(err)), err)
            tensors[name.decode()] = Tensor(self.library, handle)
        self.library.ist_file_release(file)
        return tensors

    def load_one(self, path, name):
        """The tensor of a name, or with None the only one."""
        err, file, handle = Error(), c.c_void_p(), c.c_void_p()
        self.check(self.library.ist_file_open(
            self.context, os.fsencode(path), None, c.byref(file),
            c.byref(err)), err)
        code = self.library.ist_file_tensor(
            file, name and name.encode(), c.byref(handle), c.byref(err))
        self.library.ist_file_release(file)
        self.check(code, err)
        return Tensor(self.library, handle)

    def parse_place(self, text):
        """Only whether a place's name is understood."""
        err, place = Error(), c.create_string_buffer(8192)
        place[:8] = (8192).to_bytes(8, sys.byteorder)
        self.check(self.library.ist_place_parse(
            text.encode(), place, c.byref(err)), err)

    def save(self, path, tensors):
        count, err = len(tensors), Error()
        names = (c.c_char_p * count)(*[n.encode() for n in tensors])
        handles = (c.c_void_p * count)(*[t.handle for t in tensors.values()])
        self.check(self.library.ist_file_save(
            os.fsencode(path), names, handles, c.c_size_t(count),
            c.byref(err)), err)
