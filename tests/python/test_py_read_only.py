# SPDX-License-Identifier: Apache-2.0
"""Who may write through an alias: the table of the contract, row by row."""

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")

import isthmus
from capsule_maker import Producer
from frameworks import address, aligned, reasons


def marked():
    x = aligned(np.arange(4), "float32")
    x.flags.writeable = False
    return x


def broadcast():
    return np.broadcast_to(aligned(np.ones(1), "float32"), (4,))


def unknown():
    return Producer(legacy=True)


READ_ONLY = [marked, broadcast, unknown]


def where(x):
    return x.address if isinstance(x, Producer) else address(x)


@pytest.mark.parametrize("target", ["numpy", "jax"])
def test_read_only__writable_memory_is_shared_and_the_receipt_says_so(target):
    x = aligned(np.arange(4), "float32")
    result, receipt = isthmus.to(x, target, receipt=True)
    assert reasons(receipt) == ["writes_show", "viewed"]
    x[0] = 9
    assert float(result[0]) == 9
    private, receipt = isthmus.to(
        x, target, mutable_source="copy", receipt=True)
    assert reasons(receipt) == ["private_asked"]
    x[0] = 5
    assert float(private[0]) == 9


def test_read_only__writable_memory_is_shared_with_torch():
    x = aligned(np.arange(4), "float32")
    result = isthmus.to(x, "torch")
    result[1] = 7
    assert x[1] == 7


@pytest.mark.parametrize("make", READ_ONLY)
def test_read_only__memory_stays_so_in_numpy(make):
    """data-apis/array-api#191"""
    x = make()
    result, receipt = isthmus.to(x, "numpy", receipt=True)
    assert address(result) == where(x) and receipt.route == "alias"
    assert not result.flags.writeable and receipt.read_only
    assert "kept_read_only" in reasons(receipt)


@pytest.mark.parametrize("make", READ_ONLY)
def test_read_only__memory_is_copied_for_torch_unless_allowed(make):
    x = make()
    result, receipt = isthmus.to(x, "torch", receipt=True)
    assert result.data_ptr() != where(x) and receipt.route == "copy"
    assert reasons(receipt) == ["read_only_copy"]
    result[0] = 99
    result, receipt = isthmus.to(
        make(), "torch", read_only="copy", receipt=True)
    assert receipt.route == "copy"
    x = make()
    result, receipt = isthmus.to(
        x, "torch", read_only="allow", receipt=True)
    assert result.data_ptr() == where(x)
    assert "write_allowed" in reasons(receipt)
    with pytest.raises(BufferError) as e:
        isthmus.to(make(), "torch", read_only="refuse")
    assert e.value.code == 105
    with pytest.raises(BufferError) as e:
        isthmus.to(make(), "torch", copy=False)
    assert e.value.code == 104


def test_read_only__jax_arrays_alias_into_torch_with_a_reason():
    """jax-ml/jax#19123"""
    x = jax.numpy.arange(4.0)
    result, receipt = isthmus.to(x, "torch", receipt=True)
    assert result.data_ptr() == address(x)
    assert "write_would_break" in reasons(receipt)
    result, receipt = isthmus.to(x, "torch", read_only="copy", receipt=True)
    assert result.data_ptr() != address(x) and receipt.route == "copy"
    result[0] = 9
    assert float(x[0]) == 0
    with pytest.raises(BufferError) as e:
        isthmus.to(x, "torch", read_only="refuse")
    assert e.value.code == 105


def test_read_only__read_only_numpy_reaches_jax_by_alias():
    x = marked()
    result, receipt = isthmus.to(x, "jax", receipt=True)
    assert address(result) == address(x)
    assert "kept_read_only" in reasons(receipt)


def test_read_only__is_written_and_read_in_capsules():
    from capsule_maker import read_versioned
    for x, flag in ((marked(), 1), (aligned(np.ones(4)), 0)):
        capsule = isthmus.from_dlpack(x).__dlpack__(max_version=(1, 0))
        assert read_versioned(capsule).flags & 1 == flag


def test_read_only__a_capsule_without_a_version_does_not_lend_it():
    x = marked()
    tensor = isthmus.from_dlpack(x)
    result = torch.from_dlpack(tensor.__dlpack__())
    assert result.data_ptr() != address(x)
    with pytest.raises(BufferError):
        tensor.__dlpack__(copy=False)
