# SPDX-License-Identifier: Apache-2.0
"""The C sides of the copy bench, loaded from bench_copy.c: the public door,
the engine behind it and memcpy. Also says what the ends of a copy are."""

import ctypes
from dataclasses import dataclass

import numpy as np
from bench_native import compile_bench

# DLPack's code and bits of each dtype that a case uses.
DTYPES = {
    "int4": (0, 4), "uint8": (1, 8), "float32": (2, 32), "bfloat16": (4, 16),
    "float8_e4m3fn": (10, 8), "float8_e5m2": (12, 8),
}


@dataclass
class End:
    """One end of a copy: memory and how its elements lie there. memory is the
    whole buffer; view is what NumPy sees of it, its first byte element 0."""

    memory: np.ndarray
    view: np.ndarray
    dtype: str = "float32"
    shape: tuple = ()
    strides: tuple = ()  # in elements
    padded: bool = False
    foreign: bool = False  # bytes in the other order

    def __post_init__(self):
        if not self.shape:
            self.shape = self.view.shape
            self.strides = tuple(step // self.view.itemsize
                                 for step in self.view.strides)

    @property
    def nbytes(self):
        """Bytes of the elements, of a broadcast as if it were dense."""
        bits = 8 if self.padded else DTYPES[self.dtype][1]
        return (int(np.prod(self.shape)) * bits + 7) // 8


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p),
                ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Ends(ctypes.Structure):
    _fields_ = [("source", DLTensor), ("target", DLTensor),
                ("source_padded", ctypes.c_bool),
                ("target_padded", ctypes.c_bool),
                ("swap", ctypes.c_bool)]


def tensor_of(end):
    code, bits = DTYPES[end.dtype]
    numbers = ctypes.c_int64 * len(end.shape)
    return DLTensor(data=end.view.ctypes.data, device_type=1,
                    ndim=len(end.shape), code=code, bits=bits, lanes=1,
                    shape=numbers(*end.shape), strides=numbers(*end.strides))


def load_library():
    library = ctypes.CDLL(str(compile_bench("copy", shared=True)))
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.bench_copy_open.restype = pointer
    library.bench_copy_open.argtypes = [ctypes.POINTER(Ends), ctypes.c_int32]
    library.bench_copy_close.restype = None
    library.bench_copy_close.argtypes = [pointer]
    for name in ("door", "engine"):
        function = getattr(library, f"bench_copy_{name}")
        function.restype = ctypes.c_double
        function.argtypes = [pointer, size]
    library.bench_copy_memcpy.restype = ctypes.c_double
    library.bench_copy_memcpy.argtypes = [pointer, pointer, size, size]
    return library


class NativeCopy:
    """One copy, ready to be repeated. door and engine do it a number of times
    and return the nanoseconds of one."""

    def __init__(self, library, source, target, threads=1):
        self.library = library
        self.kept = source, target  # their memory, as long as the handle
        self.ends = Ends(tensor_of(source), tensor_of(target), source.padded,
                         target.padded, source.foreign)
        self.handle = library.bench_copy_open(ctypes.byref(self.ends),
                                              threads)
        # What the public door for copies into given memory does.
        self.has_door = (source.dtype, source.padded, source.foreign) == (
            target.dtype, target.padded, target.foreign)

    def door(self, times):
        return self.library.bench_copy_door(self.handle, times)

    def engine(self, times):
        return self.library.bench_copy_engine(self.handle, times)

    @property
    def best(self):
        return self.door if self.has_door else self.engine

    def close(self):
        self.library.bench_copy_close(self.handle)


def memcpy_side(library, target, source):
    """memcpy of all of target's bytes from the start of source."""
    assert source.nbytes >= target.nbytes
    def run(times):
        return library.bench_copy_memcpy(target.ctypes.data,
                                         source.ctypes.data, target.nbytes,
                                         times)
    return run
