# SPDX-License-Identifier: Apache-2.0
"""torch's own cases: bits, grad, tensors without memory, negative strides."""

import gc

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
jax = pytest.importorskip("jax")

import isthmus
from frameworks import address, aligned, reasons, values_of


@pytest.mark.parametrize("flip", [
    lambda a: a[::-1], lambda a: a[:, ::-1], lambda a: a[::-2, ::-1]])
def test_torch__negative_strides_are_one_copy_not_an_abort(flip):
    """pytorch/pytorch#188023"""
    x = flip(np.arange(12.0).reshape(4, 3))
    result, receipt = isthmus.to(x, "torch", receipt=True)
    assert np.array_equal(result.numpy(), x)
    assert (receipt.route, receipt.bytes_moved) == ("copy", x.nbytes)
    assert reasons(receipt)[0] in ("negative", "gaps")
    with pytest.raises(BufferError) as e:
        isthmus.to(x, "torch", copy=False)
    assert e.value.code == 104


@pytest.mark.parametrize("make", [
    lambda z: z.conj(), lambda z: z.conj().imag, lambda z: z.conj() * 1,
    lambda z: torch._neg_view(z)])
@pytest.mark.parametrize("target", ["numpy", "jax", "torch"])
def test_torch__neg_and_conj_bits_are_resolved(make, target):
    """pytorch/pytorch#57110"""
    x = make(torch.tensor([1 + 2j, 3 + 4j]))
    expected = x.resolve_conj().resolve_neg()
    lazy = x.is_conj() or x.is_neg()
    result, receipt = isthmus.to(x, target, receipt=True)
    assert values_of(result).tolist() == expected.tolist()
    assert ("resolved" in reasons(receipt)) == lazy
    assert (receipt.route == "copy") or not lazy
    assert isthmus.plan(x, target).json() == receipt.json()
    if lazy:
        assert receipt.bytes_moved >= expected.nbytes
        for wish in (dict(resolve=False), dict(copy=False)):
            with pytest.raises(BufferError):
                isthmus.to(x, target, **wish)
            assert isthmus.plan(x, target, **wish).route == "refuse"


def test_torch__from_dlpack_resolves_bits_too():
    x = torch.tensor([1 + 2j]).conj()
    assert isthmus.to(isthmus.from_dlpack(x), "numpy").tolist() == [1 - 2j]
    with pytest.raises(BufferError):
        isthmus.from_dlpack(x, copy=False)


@pytest.mark.parametrize("x", [
    torch.ones(4, requires_grad=True), torch.nn.Parameter(torch.ones(4)),
    torch.ones(4, requires_grad=True) * 2], ids=["leaf", "parameter", "node"])
def test_torch__grad_is_refused_with_the_way_out(x):
    """ROCm/aiter#5307"""
    for call in (isthmus.from_dlpack, lambda t: isthmus.to(t, "numpy")):
        with pytest.raises(isthmus.Error, match="detach=True") as e:
            call(x)
        assert e.value.code == 115 and isinstance(e.value, BufferError)
        assert "detach" in e.value.hint
    assert isthmus.plan(x, "numpy").route == "refuse"
    assert reasons(isthmus.plan(x, "numpy")) == ["requires_grad"]
    result, receipt = isthmus.to(x, "numpy", detach=True, receipt=True)
    assert address(result) == x.data_ptr() and receipt.route == "alias"


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        return torch.ones(3)


def shrunk():
    x = torch.ones(3)
    x.untyped_storage().resize_(0)
    return x


def halved(x):
    x.untyped_storage().resize_(x.untyped_storage().nbytes() // 2)
    return x


WITHOUT_MEMORY = {
    "fake": fake,
    "meta__array_api_tests_433": lambda: torch.ones(3, device="meta"),
    "sparse": lambda: torch.ones(3).to_sparse(),
    "csr": lambda: torch.ones(3, 3).to_sparse_csr(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2)]),
    "jagged": lambda: torch.nested.nested_tensor(
        [torch.ones(2)], layout=torch.jagged),
    "quantised": lambda: torch.quantize_per_tensor(
        torch.ones(3), 0.1, 0, torch.qint8),
    "storage_resized_to_zero": shrunk,
    "storage_halved": lambda: halved(torch.zeros(1 << 12)),
    "storage_halved_under_an_end": lambda: halved(torch.zeros(1 << 12)[-3:]),
    "storage_halved_under_steps": lambda: halved(
        torch.zeros(64, 64)[::2, ::3].T),
    "storage_halved_of_conjugates": lambda: halved(
        torch.zeros(64, dtype=torch.complex64).conj()),
    "int4": lambda: torch.zeros(4, dtype=torch.uint8).view(torch.int4),
    "uint4": lambda: torch.zeros(4, dtype=torch.uint8).view(torch.uint4),
    "int1": lambda: torch.zeros(4, dtype=torch.uint8).view(torch.int1),
    "float4_of_no_dimension": lambda: torch.zeros(
        (), dtype=torch.uint8).view(torch.float4_e2m1fn_x2),
    "bits8": lambda: torch.zeros(4, dtype=torch.uint8).view(torch.bits8),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", WITHOUT_MEMORY)
def test_torch__refuses_what_a_capsule_would_get_wrong(kind):
    x = WITHOUT_MEMORY[kind]()
    with pytest.raises(isthmus.Error) as e:
        isthmus.from_dlpack(x)
    assert isinstance(e.value, BufferError)
    assert "needs" in str(e.value) and "\n" not in str(e.value)
    for target in ("numpy", "jax", "torch"):
        with pytest.raises(BufferError):
            isthmus.to(x, target, detach=True)
        assert isthmus.plan(x, target).route == "refuse"


def test_torch__elements_inside_a_halved_storage_still_cross():
    x = torch.arange(64.0)
    inside = x[:32], x[:32:3], x[5:6].expand(7), x[40:40], x[:16].view(4, 4).T
    halved(x)
    for part in inside:
        assert isthmus.to(part, "numpy", copy=False).tolist() == part.tolist()


def test_torch__refuses_tensors_inside_vmap_and_grad():
    seen = []

    def look(x):
        with pytest.raises(isthmus.Error, match="vmap or grad"):
            isthmus.to(x, "numpy", detach=True)
        seen.append(1)
        return x.sum()

    torch.vmap(look)(torch.ones(2, 3))
    torch.func.grad(look)(torch.ones(3))
    assert len(seen) == 2


def test_torch__is_imported_by_its_c_exchange_api(monkeypatch):
    x = torch.arange(4.0)
    assert hasattr(torch.Tensor, "__dlpack_c_exchange_api__")

    def never(*args, **kwargs):
        raise AssertionError("__dlpack__ was called")

    monkeypatch.setattr(torch.Tensor, "__dlpack__", never)
    tensor = isthmus.from_dlpack(x)
    assert tensor.address == x.data_ptr() and not tensor.read_only


def test_torch__without_the_exchange_api_goes_by_dlpack():
    class Has:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **asked):
            return self.tensor.__dlpack__(**asked)

    x = torch.arange(4.0)
    assert isthmus.from_dlpack(Has(x)).address == x.data_ptr()


def test_torch__exchange_apis_of_others_are_checked():
    class Bad:
        __dlpack_c_exchange_api__ = 17

        def __dlpack__(self, **asked):
            return torch.ones(2).__dlpack__(**asked)

    assert isthmus.from_dlpack(Bad()).shape == (2,)
    capsule = torch.Tensor.__dlpack_c_exchange_api__

    class Lies:
        __dlpack_c_exchange_api__ = capsule

    with pytest.raises(isthmus.Error) as e:
        isthmus.from_dlpack(Lies())
    assert e.value.code == 214 and e.value.__cause__ is not None


@pytest.mark.filterwarnings("ignore")
def test_torch__takes_every_dtype_that_it_shares():
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
                 "uint32", "uint64", "float16", "bfloat16", "float32",
                 "float64", "complex32", "complex64", "complex128",
                 "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
                 "float8_e5m2fnuz", "float8_e8m0fnu"):
        x = torch.zeros(4, dtype=getattr(torch, name))
        tensor = isthmus.from_dlpack(x)
        assert str(tensor.dtype) == name
        result = isthmus.to(tensor, "torch")
        assert result.dtype == x.dtype and result.data_ptr() == x.data_ptr()


def test_torch__says_which_dtypes_the_others_lack():
    x = torch.zeros(4, dtype=torch.complex32)
    with pytest.raises(BufferError) as e:
        isthmus.to(x, "jax")
    assert e.value.code == 309


def test_torch__subclasses_without_dispatch_cross():
    class Own(torch.Tensor):
        pass

    x = torch.arange(4.0).as_subclass(Own)
    assert address(isthmus.to(x, "numpy")) == x.data_ptr()


def test_torch__strides_of_size_one_dimensions_are_normal():
    """pytorch/pytorch#99803"""
    x = torch.arange(77, dtype=torch.int32).reshape(1, 77)
    assert isthmus.from_dlpack(x).strides == (77, 1)
    assert isthmus.to(isthmus.from_dlpack(x), "torch").stride() == (77, 1)


def test_torch__aligned_arrays_of_jax_size_one_dims_are_row_major():
    """jax-ml/jax#24680"""
    x = torch.zeros(3, 1, 6, 2, dtype=torch.int16)
    result = isthmus.to(x, "jax")
    assert not bool(jax.numpy.all(result))
    assert not bool(jax.numpy.any(result + result))


def test_torch__unaligned_slices_reach_jax_by_one_copy(capfd):
    """jax-ml/jax#29810"""
    base = isthmus.empty(9, "float32", like="torch")
    base += torch.arange(9.0)
    result, receipt = isthmus.to(base[1:], "jax", receipt=True)
    assert result.tolist() == list(range(1, 9))
    assert reasons(receipt) == ["unaligned"] and receipt.hops == 1
    assert capfd.readouterr() == ("", "")
    assert aligned([1.0]).shape == (1,)


def _set_data(x):
    x.data = torch.zeros(8)


@pytest.mark.parametrize("replace", [
    _set_data, lambda x: x.set_(torch.zeros(8))], ids=["data", "set_"])
@pytest.mark.parametrize("kind", ["to", "from_dlpack", "subclass"])
def test_torch__a_view_outlives_the_memory_that_its_source_leaves(
        replace, kind):
    """torch's own capsule frees that memory: np.from_dlpack(x) dangles."""
    x = torch.arange(8.0)
    if kind == "subclass":
        x = x.as_subclass(type("Mine", (torch.Tensor,), {}))
    cross = isthmus.from_dlpack if kind == "from_dlpack" else (
        lambda x: isthmus.to(x, "numpy"))
    view = cross(x)
    assert address(view) == x.data_ptr()
    held = x.untyped_storage()
    pointer = held.data_ptr()
    del held
    replace(x)
    gc.collect()
    # Had its memory been freed, the next tensor of that size would be there.
    others = [torch.full((8,), 7.0) for _ in range(64)]
    assert pointer not in [y.data_ptr() for y in others]
    assert values_of(view).tolist() == list(range(8))


def test_torch__a_tensor_that_torch_func_captured_crosses():
    """A handle made by an operation would be traced, and refused."""
    x = torch.arange(3.0)
    seen = []

    def loss(w):
        seen.append(isthmus.to(x, "numpy"))
        return (w * x).sum()

    torch.func.grad(loss)(torch.ones(3))
    assert address(seen[0]) == x.data_ptr()


def test_torch__a_tensor_crosses_while_a_mode_fakes_operations():
    from torch._subclasses.fake_tensor import FakeTensorMode
    x = torch.arange(3.0)
    for lax in (False, True):
        with FakeTensorMode(allow_non_fake_inputs=lax):
            view = isthmus.to(x, "numpy")
            same = isthmus.from_dlpack(x)
        assert address(view) == address(same) == x.data_ptr()
