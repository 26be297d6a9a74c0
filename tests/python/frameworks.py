# SPDX-License-Identifier: Apache-2.0
"""Addresses and aligned arrays of the frameworks, for the tests."""

import isthmus

ALIGNED = 64


def address(x):
    """Where element 0 is, by the framework's own word."""
    name = type(x).__module__.partition(".")[0]
    if name == "numpy":
        return x.__array_interface__["data"][0]
    if name == "torch":
        return x.data_ptr()
    if name.startswith("jax"):
        return x.unsafe_buffer_pointer()
    return x.address


def aligned(values, dtype=None, offset=0):
    """A NumPy array of values at offset bytes from a multiple of 64."""
    import numpy as np
    values = np.asarray(values, dtype)
    raw = np.zeros(values.nbytes + 2 * ALIGNED, "uint8")
    start = -address(raw) % ALIGNED + offset
    array = raw[start:start + values.nbytes].view(values.dtype)
    array = array.reshape(values.shape)
    array[...] = values
    return array


def reasons(receipt):
    return [name for name, _ in receipt.reasons]


def check_receipt(receipt, source_address, result, nbytes):
    """The receipt and the addresses tell the same."""
    if receipt.route == "alias":
        assert (receipt.bytes_moved, receipt.hops) == (0, 0)
        assert address(result) == source_address
    else:
        assert receipt.route == "copy"
        assert (receipt.bytes_moved, receipt.hops) == (nbytes, 1)
        assert address(result) != source_address


def values_of(x):
    """The values as a NumPy array, by the framework's own way."""
    import numpy as np
    if type(x).__module__.startswith("torch"):
        if str(x.dtype).startswith(("torch.bfloat", "torch.float8")):
            x = x.float()
        return x.resolve_conj().resolve_neg().numpy().copy()
    if isinstance(x, isthmus.Tensor):
        return np.array(x, copy=True)
    return np.array(x)
