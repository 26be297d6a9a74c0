# SPDX-License-Identifier: Apache-2.0
"""isthmus.astype: the bits of ml_dtypes and NumPy for every pair of
floating-point dtypes, from any layout and framework, and what is refused."""

import warnings

import pytest

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

import isthmus
from frameworks import reasons

# Name and bits, the widest first.
FLOATS = {
    "float64": 64, "float32": 32, "float16": 16, "bfloat16": 16,
    "float8_e3m4": 8, "float8_e4m3": 8, "float8_e4m3b11fnuz": 8,
    "float8_e4m3fn": 8, "float8_e4m3fnuz": 8, "float8_e5m2": 8,
    "float8_e5m2fnuz": 8, "float8_e8m0fnu": 8, "float6_e2m3fn": 6,
    "float6_e3m2fn": 6, "float4_e2m1fn": 4,
}
NARROW = [name for name, bits in FLOATS.items() if bits <= 16]
CODE = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}

# NumPy tells of NaN and infinity, which are the point here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def codes_of(array):
    return array.view(CODE[array.dtype.itemsize])


def every_code(name):
    dtype = dtype_of(name)
    codes = np.arange(1 << FLOATS[name], dtype=CODE[dtype.itemsize])
    return codes.view(dtype)


def converted(x, name, **how):
    """The codes that astype makes, one to an element."""
    padded = FLOATS[name] < 8
    made = isthmus.astype(x, name, padded=padded, **how)
    assert str(made.dtype) == name and made.padded == padded
    assert made.copied and not made.read_only and made.address % 64 == 0
    return codes_of(np.asarray(isthmus.to(made, "numpy")))


def oracle(x, name):
    """What ml_dtypes makes; for the pairs that it lacks by way of float32,
    which holds every number of either."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return codes_of(x.astype(dtype_of(name)))
        except TypeError:
            return codes_of(x.astype("float32").astype(dtype_of(name)))


def assert_codes(got, wanted, x):
    wrong = np.flatnonzero(got.ravel() != wanted.ravel())
    if wrong.size:
        n = wrong[0]
        pytest.fail(f"{wrong.size} differ, the first: {x.ravel()[n]!r} became "
                    f"{got.ravel()[n]:#x}, not {wanted.ravel()[n]:#x}")


def boundaries():
    """Every number of at most 16 bits, and what lies halfway between two, with
    the float32 next to each."""
    found = []
    for name in NARROW:
        values = np.unique(every_code(name).astype("float32"))
        values = values[np.isfinite(values)].astype("float64")
        for exact in (values, (values[1:] + values[:-1]) / 2):
            codes = codes_of(exact.astype("float32"))
            found += [codes, codes + 1, codes - 1]
    return np.unique(np.concatenate(found).astype("uint32")).view("float32")


@pytest.fixture(scope="module")
def singles():
    """A million random float32, and the boundaries."""
    random = np.random.default_rng(20261130)
    codes = random.integers(0, 1 << 32, 1_000_000, dtype="uint32")
    return np.concatenate([codes.view("float32"), boundaries()])


@pytest.fixture(scope="module")
def doubles():
    """Random float64 of all exponents and of those of float32, and the
    boundaries with the float64 next to each."""
    random = np.random.default_rng(1985)
    codes = random.integers(0, 1 << 64, 200_000, dtype="uint64")
    edges = codes_of(boundaries().astype("float64"))
    return np.concatenate([
        codes.view("float64"), random.standard_normal(200_000),
        edges.view("float64"), (edges + 1).view("float64"),
        (edges - 1).view("float64")])


def rounded_to_odd(x):
    """float32 from which a second rounding gives what one rounding of x does:
    ml_dtypes rounds arrays of float64 twice."""
    near = x.astype("float32")
    back = near.astype("float64")
    codes = codes_of(near).copy()
    codes[np.abs(back) > np.abs(x)] -= 1
    codes[(back != x) & ~np.isnan(x)] |= 1
    return codes.view("float32")


@pytest.mark.parametrize("source", NARROW)
def test_astype__equals_ml_dtypes_on_every_code(source):
    x = every_code(source)
    for target in FLOATS:
        assert_codes(converted(x, target), oracle(x, target), x)


@pytest.mark.parametrize("target", FLOATS)
def test_astype__equals_ml_dtypes_on_a_million_floats(singles, target):
    assert_codes(converted(singles, target), oracle(singles, target), singles)


@pytest.mark.parametrize("target", FLOATS)
def test_astype__rounds_doubles_once(doubles, target):
    once = doubles
    if target not in ("float64", "float32", "float16"):
        once = rounded_to_odd(doubles)
    assert_codes(converted(doubles, target), oracle(once, target), doubles)


def test_astype__rounds_a_double_as_the_constructor_of_ml_dtypes():
    x = 1 + 2.0**-4 + 2.0**-45
    assert converted(np.array([x]), "float8_e4m3fn")[0] == 0x39
    assert ml_dtypes.float8_e4m3fn(x) == 1.125


# ---- saturate

def largest(name):
    return float(ml_dtypes.finfo(dtype_of(name)).max)


@pytest.mark.parametrize("target", FLOATS)
def test_astype__saturates_to_the_largest_number(singles, target):
    got = converted(singles, target, saturate=True)
    plain = converted(singles, target)
    high = singles >= np.float32(min(largest(target), 3.4028235e38))
    if target == "float8_e8m0fnu":
        low = np.zeros_like(high)
    else:
        low = singles <= -np.float32(min(largest(target), 3.4028235e38))
    if target == "float64":
        high, low = singles == np.inf, singles == -np.inf
    values = got.view(dtype_of(target)).astype("float64")
    assert (values[high] == largest(target)).all()
    assert (values[low] == -largest(target)).all()
    # Nothing else changes, NaN among it.
    rest = ~(high | low)
    assert_codes(got[rest], plain[rest], singles[rest])
    assert not np.isinf(values).any()


# ---- layouts, packing, frameworks

LAYOUTS = {
    "transposed": lambda a: a.T,
    "stepped": lambda a: a[::2, ::3],
    "reversed": lambda a: a[::-1, ::-1],
    "cut": lambda a: a[3:, 5:-2],
    "broadcast": lambda a: np.broadcast_to(a[7], (300, a.shape[1])),
    "one_column": lambda a: a[:, 4],
    "scalar": lambda a: a[2, 3, ...],
    "empty": lambda a: a[:0],
    "cube": lambda a: a[:200, :130].reshape(20, 10, 130).transpose(2, 0, 1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("source,target", [
    ("float32", "bfloat16"), ("float32", "float8_e4m3fn"),
    ("float64", "float16"), ("bfloat16", "float32"),
    ("float8_e5m2", "float64"), ("float16", "float4_e2m1fn"),
    ("float4_e2m1fn", "float32")])
def test_astype__takes_any_layout(source, target, layout):
    random = np.random.default_rng(3)
    x = random.standard_normal((257, 190)).astype(dtype_of(source))
    x = LAYOUTS[layout](x)
    got = converted(x, target)
    assert got.shape == x.shape
    assert_codes(got, oracle(np.ascontiguousarray(x).reshape(x.shape), target),
                 x)


@pytest.mark.parametrize("name", ["float6_e2m3fn", "float6_e3m2fn",
                                  "float4_e2m1fn"])
@pytest.mark.parametrize("count", [1, 2, 7, 8, 5000])
def test_astype__packs_and_unpacks(name, count):
    random = np.random.default_rng(11)
    x = (4 * random.standard_normal(count)).astype("float32")
    packed = isthmus.astype(x, name)
    assert not packed.padded
    assert packed.nbytes == (count * FLOATS[name] + 7) // 8
    wanted = x.astype(dtype_of(name)).astype("float32")
    assert np.array_equal(np.asarray(isthmus.astype(packed, "float32")), wanted)
    again = isthmus.astype(packed, name, padded=True)
    assert np.array_equal(codes_of(isthmus.to(again, "numpy")),
                          codes_of(x.astype(dtype_of(name))))


def test_astype__takes_tensors_of_torch_and_jax():
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    x = np.linspace(-500, 500, 4001, dtype="float32")
    wanted = oracle(x, "bfloat16")
    for array in (torch.from_numpy(x), jax.numpy.asarray(x),
                  isthmus.from_dlpack(x)):
        assert_codes(converted(array, "bfloat16"), wanted, x)
    half = torch.from_numpy(x).to(torch.float8_e5m2)
    back = isthmus.to(isthmus.astype(half, torch.float32), "torch")
    assert torch.equal(back, half.float())
    flipped = torch.complex(torch.ones(3), torch.ones(3)).conj().imag
    assert isthmus.to(isthmus.astype(flipped, "float16"), "torch").tolist() == [
        -1, -1, -1]


def test_astype__takes_dtypes_of_every_framework():
    torch = pytest.importorskip("torch")
    jnp = pytest.importorskip("jax.numpy")
    x = np.ones(3, "float32")
    for dtype in ("bfloat16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16),
                  torch.bfloat16, jnp.bfloat16, jnp.ones(1, "bfloat16").dtype,
                  isthmus.astype(x, "bfloat16").dtype):
        assert str(isthmus.astype(x, dtype).dtype) == "bfloat16"
    assert str(isthmus.astype(x, np.float64).dtype) == "float64"


def test_astype__takes_torchs_name_of_pairs_for_their_values():
    torch = pytest.importorskip("torch")
    x = np.linspace(-6, 6, 24, dtype="float32").reshape(4, 6)
    wanted = oracle(x, "float4_e2m1fn")
    for dtype in (torch.float4_e2m1fn_x2, "torch.float4_e2m1fn_x2",
                  "float4_e2m1fn_x2", "float4_e2m1fnx2"):
        made = isthmus.astype(x, dtype)
        assert str(made.dtype) == "float4_e2m1fn" and made.shape == (4, 6)
        assert np.array_equal(codes_of(isthmus.to(made, "numpy")), wanted)
        pairs = isthmus.to(made, "torch")
        assert pairs.dtype == torch.float4_e2m1fn_x2 and pairs.shape == (4, 3)
    with pytest.raises(isthmus.Error) as info:
        isthmus.astype(x, "float32x2")
    assert info.value.entry.name == "IST_ERR_LANES"


def test_astype__does_not_see_flushed_subnormals(singles):
    torch = pytest.importorskip("torch")
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor does not flush subnormals")
    try:
        got = {name: converted(singles, name)
               for name in ("float64", "float16", "bfloat16", "float8_e8m0fnu")}
    finally:
        torch.set_flush_denormal(False)
    for name, codes in got.items():
        assert_codes(codes, oracle(singles, name), singles)


# ---- what it is

def test_astype__gives_private_memory_and_an_honest_receipt():
    x = np.arange(24, dtype="float32").reshape(4, 6)
    made, receipt = isthmus.astype(x, "float16", receipt=True)
    assert (receipt.route, receipt.hops, receipt.bytes_moved) == ("copy", 1, 48)
    assert reasons(receipt) == ["converted"]
    assert (receipt.source, receipt.target) == ("numpy", "host")
    x[...] = 0
    assert np.asarray(made)[3, 5] == 23
    same, receipt = isthmus.astype(made, "float16", receipt=True)
    assert reasons(receipt) == ["same_dtype"]
    assert same.address != made.address and same.copied


def test_astype__copies_the_same_dtype_bit_by_bit():
    x = np.array([0x7f800001, 0xffc12345, 1], "uint32").view("float32")
    assert np.array_equal(converted(x, "float32"), codes_of(x))


def test_astype__copies_out_what_lies_on_a_device():
    x = np.arange(24, dtype="float32").reshape(4, 6)
    with isthmus.open("template", options={"addressable": False}) as backend:
        there = isthmus.to(x, backend)
        made, receipt = isthmus.astype(there, "bfloat16", receipt=True)
    assert receipt.hops == 2 and receipt.bytes_moved == 96 + 48
    assert reasons(receipt) == ["converted", "staged"]
    assert_codes(converted(made, "float32"), codes_of(x), x)


def test_astype__says_what_an_adapter_copied_before():
    x = np.arange(4, dtype=">f4")
    made, receipt = isthmus.astype(x, "float64", receipt=True)
    assert "byte_order" in reasons(receipt) and receipt.hops == 2
    assert np.asarray(made).tolist() == [0, 1, 2, 3]


def test_astype__tells_progress_and_stops():
    x = np.zeros((2000, 3000), "float32").T
    told = []
    isthmus.astype(x, "bfloat16",
                   progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, 2 * x.size) and told[-1] == (2 * x.size, 2 * x.size)
    with pytest.raises(isthmus.Error) as info:
        isthmus.astype(x, "bfloat16", progress=lambda done, total: False)
    assert info.value.entry.name == "IST_ERR_CANCELLED"


# ---- what is refused

@pytest.mark.parametrize("x,dtype", [
    (np.arange(3), "float32"), (np.ones(3, "float32"), "int32"),
    (np.ones(3, bool), "float32"), (np.ones(3, "complex64"), "float32"),
    (np.ones(3, "float32"), "complex64"), (np.ones(3, "float32"), np.int8),
    (np.arange(3), "int64"), (np.ones(3, "float32"), "bool")])
def test_astype__refuses_what_is_no_float(x, dtype):
    with pytest.raises(isthmus.Error) as info:
        isthmus.astype(x, dtype)
    assert info.value.entry.name == "IST_ERR_DTYPE_MISMATCH"
    assert "needs floating-point dtypes on both sides" in str(info.value)
    assert "isthmus.astype" in info.value.hint


@pytest.mark.parametrize("dtype,name", [
    ("float", "DTYPE"), ("float31", "DTYPE"), ("f4", "DTYPE"),
    ("float32\0", "ARGUMENT"), (float, "ARGUMENT"), (int, "ARGUMENT"),
    (None, "ARGUMENT"), (3, "ARGUMENT"), (object(), "ARGUMENT")])
def test_astype__guesses_no_dtype(dtype, name):
    with pytest.raises(isthmus.Error) as info:
        isthmus.astype(np.ones(3, "float32"), dtype)
    assert info.value.entry.name == f"IST_ERR_{name}"


def test_astype__refuses_what_requires_grad():
    torch = pytest.importorskip("torch")
    with pytest.raises(isthmus.Error) as info:
        isthmus.astype(torch.ones(3, requires_grad=True), "float16")
    assert info.value.entry.name == "IST_ERR_REQUIRES_GRAD"


def test_astype__consumes_a_capsule_only_when_it_converts():
    x = np.ones(3, "float32")
    capsule = x.__dlpack__()
    for dtype in ("int8", "nonsense"):
        with pytest.raises(isthmus.Error):
            isthmus.astype(capsule, dtype)
    assert np.asarray(isthmus.astype(capsule, "float64")).tolist() == [1, 1, 1]
    with pytest.raises(isthmus.Error) as info:
        isthmus.astype(capsule, "float64")
    assert info.value.entry.name == "IST_ERR_CONSUMED"


def test_astype__takes_no_objects_without_a_tensor():
    with pytest.raises(isthmus.Error):
        isthmus.astype([1.0, 2.0], "float16")
