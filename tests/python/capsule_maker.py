# SPDX-License-Identifier: Apache-2.0
"""Hand-made DLPack producers for the tests: any numbers, and deleters that
count themselves."""

import ctypes

CPU = 1


class Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", Device),
                ("ndim", ctypes.c_int32), ("dtype", DataType),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Legacy(ctypes.Structure):
    pass


LegacyDeleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Legacy))
Legacy._fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p),
                   ("deleter", LegacyDeleter)]


class Versioned(ctypes.Structure):
    pass


VersionedDeleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(Versioned))
Versioned._fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                      ("context", ctypes.c_void_p),
                      ("deleter", VersionedDeleter),
                      ("flags", ctypes.c_uint64), ("tensor", Tensor)]

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p,
                               ctypes.c_void_p]
_api.PyCapsule_GetName.restype = ctypes.c_char_p
_api.PyCapsule_GetName.argtypes = [ctypes.py_object]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def capsule_name(capsule):
    return _api.PyCapsule_GetName(capsule).decode()


def read_versioned(capsule):
    """The struct in a capsule that nobody has taken."""
    pointer = _api.PyCapsule_GetPointer(capsule, b"dltensor_versioned")
    return Versioned.from_address(pointer)


def aligned_memory(size, offset=0):
    """A buffer object and an address in it, at offset from a multiple of 64."""
    raw = ctypes.create_string_buffer(size + 128)
    base = ctypes.addressof(raw)
    return raw, base + (-base % 64) + offset


# A capsule does not keep its producer, so that all of them are kept: their
# callbacks must outlive whatever a garbage collection frees first.
_kept = []


class Producer:
    """One tensor with chosen numbers. ``freed`` counts its deleter's calls.
    ``capsule()`` and ``__dlpack__`` give a new capsule of it each time."""

    def __init__(self, values=(1.0, 2.0, 3.0, 4.0), *, shape=None,
                 strides=None, data=0, device=(CPU, 0), dtype=(2, 32, 1),
                 ndim=None, byte_offset=0, flags=0, version=(1, 3),
                 legacy=False, deleter=True, offset=0):
        self.memory, address = aligned_memory(4 * len(values), offset)
        (ctypes.c_float * len(values)).from_address(address)[:] = values
        self.address = address
        self.freed = 0
        shape = (len(values),) if shape is None else shape
        self._shape = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self._strides = None
        if strides is not None:
            self._strides = (ctypes.c_int64 * max(len(strides), 1))(*strides)
        tensor = Tensor(
            address if data == 0 else data, Device(*device),
            len(shape) if ndim is None else ndim, DataType(*dtype),
            ctypes.cast(self._shape, ctypes.POINTER(ctypes.c_int64)),
            ctypes.cast(self._strides, ctypes.POINTER(ctypes.c_int64)),
            byte_offset)
        kind = LegacyDeleter if legacy else VersionedDeleter
        self._deleter = kind(self._count) if deleter else kind()
        if legacy:
            self.struct = Legacy(tensor, None, self._deleter)
        else:
            self.struct = Versioned(
                version[0], version[1], None, self._deleter, flags, tensor)
        _kept.append(self)
        self._name = b"dltensor" if legacy else b"dltensor_versioned"

    def _count(self, pointer):
        self.freed += 1

    def capsule(self):
        return _api.PyCapsule_New(
            ctypes.addressof(self.struct), self._name, None)

    def __dlpack__(self, **asked):
        self.asked = asked
        return self.capsule()

    def __dlpack_device__(self):
        return (CPU, 0)
