# SPDX-License-Identifier: Apache-2.0
"""Element types and device kinds, by DLPack's names and numbers."""

from __future__ import annotations

import enum


class DeviceType(enum.IntEnum):
    """DLPack's kinds of device."""

    cpu = 1
    cuda = 2
    cuda_host = 3
    opencl = 4
    vulkan = 7
    metal = 8
    vpi = 9
    rocm = 10
    rocm_host = 11
    ext_dev = 12
    cuda_managed = 13
    oneapi = 14
    webgpu = 15
    hexagon = 16
    maia = 17
    trn = 18
    tpu = 19
    tpu_host = 20
    ascend = 21

    def __str__(self) -> str:
        return self.name


class DType:
    """An element type. ``str()`` gives DLPack's name, which is ml_dtypes' too;
    it equals that name and any object whose ``str()`` or ``name`` is it."""

    __slots__ = ("name", "code", "bits", "lanes")

    name: str
    code: int
    bits: int
    lanes: int

    def __init__(self, name: str, code: int, bits: int, lanes: int) -> None:
        self.name = name
        self.code = code
        self.bits = bits
        self.lanes = lanes

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"DType({self.name})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return (self.code, self.bits, self.lanes) == (
                other.code, other.bits, other.lanes)
        if isinstance(other, str):
            return self.name == other
        name = getattr(other, "name", None)
        if isinstance(name, str):
            return self.name == name
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)
