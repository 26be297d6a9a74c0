# SPDX-License-Identifier: Apache-2.0
"""Every element type from every framework to every other, bit by bit, packed
and one to a byte; and the numbers of the list against the frameworks' own."""

import os
import random
import re
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")

import isthmus
from capsule_maker import Producer, capsule_name, read_versioned
from frameworks import address, reasons
from isthmus import _core
from isthmus._dtypes import BY_NAME, ROWS, SUB_BYTE

torch = pytest.importorskip("torch")
ml_dtypes = pytest.importorskip("ml_dtypes")
jax = pytest.importorskip("jax")

NAMES = [row.name for row in ROWS]
PADDED_FLAG = 4


def numpy_type(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def mask(name):
    """The bits of a container that an element of that type may set."""
    return 1 if name == "bool" else (1 << min(BY_NAME[name].bits, 63)) - 1


def patterns(name, shape, seed=0):
    """Random bits in the shape of containers: one unsigned integer, or two
    for 128 bits, to an element."""
    row = BY_NAME[name]
    width = min(max(row.bits, 8), 64)
    rng = np.random.default_rng(seed + row.number)
    count = shape + ((2,) if row.bits == 128 else ())
    return (rng.integers(0, 1 << 63, count, "u8") & mask(name)).astype(
        f"u{width // 8}")


def as_numpy(name, shape=(3, 4), seed=0):
    made = patterns(name, shape, seed).view(numpy_type(name))
    return made.reshape(shape)


def bits_of(x):
    """The bits of an array of any framework, one element to a container."""
    if isinstance(x, isthmus.Tensor):
        x = isthmus.to(x, "numpy")
    if isinstance(x, torch.Tensor):
        pairs = x.dtype == torch.float4_e2m1fn_x2
        x = x.contiguous().reshape(-1).view(torch.uint8).numpy()
        if pairs:
            return np.stack([x & 15, x >> 4], -1).tobytes()
        return x.tobytes()
    x = np.asarray(x)
    name = x.dtype.name
    x = np.ascontiguousarray(x).reshape(-1).view("u1")
    return (x & mask(name)).tobytes() if name in SUB_BYTE else x.tobytes()


def packed(x):
    """A Tensor of a NumPy array's elements, packed where that is a word."""
    row = BY_NAME[x.dtype.name]
    made = _core.empty(x.shape, row.name, 64)
    _core.copy_into(isthmus.from_dlpack(x), made, None)
    return made


def from_torch(x):
    row = BY_NAME[x.dtype.name]
    if row.torch is None:
        return None
    if row.torch_lanes == 2:
        pair = np.ascontiguousarray(x).view("u1")
        return torch.from_numpy(pair[..., ::2] | pair[..., 1::2] << 4).view(
            torch.float4_e2m1fn_x2)
    raw = torch.from_numpy(np.ascontiguousarray(x).view("u1"))
    return raw.view(getattr(torch, row.torch))


def from_jax(x):
    row = BY_NAME[x.dtype.name]
    if row.jax is None or isthmus_narrows(row.name):
        return None
    return jax.device_put(x, jax.devices("cpu")[0])


def isthmus_narrows(name):
    return name in ("int64", "uint64", "float64", "complex128") and (
        not jax.config.jax_enable_x64)


PRODUCERS = {
    "numpy": lambda x: x,
    "torch": from_torch,
    "jax": from_jax,
    "isthmus": isthmus.from_dlpack,
    "packed": packed,
}


def refusal(name, target, last):
    """The code with which a target refuses a type; 0 where it crosses."""
    row = BY_NAME[name]
    if target == "torch":
        if row.torch_lanes == 2 and last % 2:
            return 206
        return 0 if row.torch else 309
    if target == "jax":
        if isthmus_narrows(name):
            return 117
        return 0 if row.jax else 309
    return 0


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("producer", PRODUCERS)
@pytest.mark.parametrize("name", NAMES)
def test_dtypes__cross_bit_by_bit_or_say_why_not(name, producer):
    """jax-ml/jax#19352, jax-ml/jax#4719 (bool), dmlc/dlpack#156,
    vllm-project/tpu-inference#1943 (fp8), jax-ml/ml_dtypes#81,
    pytorch/pytorch#109873 (bf16), openxla/xla#16795 (int4),
    pytorch/pytorch#148791 (fp4)"""
    x = as_numpy(name)
    source = PRODUCERS[producer](x)
    if source is None:
        pytest.skip(f"{producer} has no {name}")
    for target in ("numpy", "torch", "jax"):
        code = refusal(name, target, 4)
        planned = isthmus.plan(source, target)
        if code:
            with pytest.raises(isthmus.Error) as e:
                isthmus.to(source, target)
            assert e.value.code == planned.code == code
            continue
        for copy in (None, True):
            result, receipt = isthmus.to(
                source, target, copy=copy, receipt=True)
            assert bits_of(result) == bits_of(x)
            assert receipt.hops == 0 or address(result) != address(source)
        result, receipt = isthmus.to(source, target, receipt=True)
        assert planned.route == receipt.route
        assert planned.bytes_moved == receipt.bytes_moved
        assert planned.reasons == receipt.reasons
        try:
            alias = isthmus.to(source, target, copy=False)
        except isthmus.Error as error:
            assert error.code == 104 and receipt.route != "alias"
        else:
            assert receipt.route == "alias" and bits_of(alias) == bits_of(x)


def test_dtypes__fp4_goes_round_all_three_by_its_bits():
    """pytorch/pytorch#148791, dmlc/dlpack#158: torch counts pairs, jax packs,
    NumPy keeps one to a byte."""
    x = as_numpy("float4_e2m1fn", (4, 6))
    pairs = isthmus.to(x, "torch")
    assert pairs.dtype == torch.float4_e2m1fn_x2 and pairs.shape == (4, 3)
    tensor, receipt = isthmus.from_dlpack(pairs), isthmus.plan(pairs, "torch")
    assert tensor.shape == (4, 6) and tensor.strides == (6, 1)
    assert str(tensor.dtype) == "float4_e2m1fn" and tensor.dtype.lanes == 1
    assert tensor.address == pairs.data_ptr() and receipt.route == "alias"
    array, receipt = isthmus.to(pairs, "jax", receipt=True)
    assert array.dtype == x.dtype and array.shape == (4, 6)
    assert reasons(receipt)[-1] == "uncarried"
    back, receipt = isthmus.to(array, "torch", receipt=True)
    assert back.dtype == pairs.dtype and back.shape == (4, 3)
    assert receipt.route == "alias" and address(array) == back.data_ptr()
    assert bits_of(isthmus.to(back, "numpy")) == bits_of(x)
    assert np.array_equal(isthmus.to(back, "numpy").astype("f4"),
                          x.astype("f4"), equal_nan=True)


def test_dtypes__pairs_of_any_layout_cross_or_are_one_copy():
    """pytorch/pytorch#148791"""
    base = isthmus.to(as_numpy("float4_e2m1fn", (4, 8)), "torch")
    views = [base[1:], base[::2], base[:, 1:3], base[:, :1], base[2],
             base[1:1], base[:, None], base[:0, :2]]
    for x in views:
        assert isthmus.to(x, "torch").data_ptr() == x.data_ptr()
        assert bits_of(isthmus.to(x, "numpy")) == bits_of(x)
    for x in (base.T, base[:, ::2], base.T[1:, ::2]):
        plain = x.view(torch.uint8).contiguous().view(x.dtype)
        result, receipt = isthmus.to(x, "numpy", receipt=True)
        assert bits_of(result) == bits_of(plain)
        assert receipt.route == "stage"  # gathered by pairs, then unpacked
        assert reasons(receipt) == ["packed", "pairs_apart"]
        planned = isthmus.plan(x, "numpy")
        assert planned.reasons == receipt.reasons
        assert planned.bytes_moved == receipt.bytes_moved
        assert bits_of(isthmus.from_dlpack(x)) == bits_of(plain)
        with pytest.raises(isthmus.Error, match="copy=None") as e:
            isthmus.to(x, "numpy", copy=False)
        assert e.value.code == 104
    with pytest.raises(isthmus.Error, match="reshape") as e:
        isthmus.from_dlpack(base[0, 0])
    assert e.value.code == 206


@pytest.mark.parametrize("shape", [(3,), (4, 1), (2, 0, 5), ()])
def test_dtypes__an_odd_dimension_has_no_pairs(shape):
    """pytorch/pytorch#148791"""
    x = as_numpy("float4_e2m1fn", shape)
    with pytest.raises(BufferError, match="even extent") as e:
        isthmus.to(x, "torch")
    assert e.value.code == 206
    assert reasons(isthmus.plan(x, "torch")) == ["odd"]


@pytest.mark.parametrize("name", sorted(SUB_BYTE))
def test_dtypes__packed_unpacks_by_one_copy_and_says_so(name):
    """dmlc/dlpack#158"""
    x = as_numpy(name, (3, 5))
    tensor = packed(x)
    assert not tensor.padded
    assert tensor.nbytes == -(-15 * BY_NAME[name].bits // 8)
    result, receipt = isthmus.to(tensor, "numpy", receipt=True)
    assert result.dtype == x.dtype and bits_of(result) == bits_of(x)
    assert reasons(receipt)[0] == "packed"
    assert (receipt.route, receipt.hops, receipt.bytes_moved) == ("copy", 1, 15)
    with pytest.raises(BufferError) as e:
        isthmus.to(tensor, "numpy", copy=False)
    assert e.value.code == 104 and "one to a byte" in str(e.value)
    assert "copy=None" in e.value.hint or "copy" in e.value.hint
    out = np.zeros((3, 5), x.dtype)
    assert isthmus.to(tensor, "numpy", out=out) is out
    assert bits_of(out) == bits_of(x)
    again = isthmus.from_dlpack(isthmus.from_dlpack(x), copy=True)
    assert again.padded and bits_of(again) == bits_of(x)


@pytest.mark.parametrize("name", sorted(SUB_BYTE))
def test_dtypes__capsules_say_how_they_pack(name):
    """dmlc/dlpack#158: the flag is written, and decides when it is read."""
    x = as_numpy(name, (3, 5))
    for tensor in (packed(x), isthmus.from_dlpack(x)):
        capsule = tensor.__dlpack__(max_version=(1, 3))
        flags = read_versioned(capsule).flags
        assert bool(flags & PADDED_FLAG) == tensor.padded
        back = isthmus.from_dlpack(capsule, source_packing="packed")
        assert back.padded == tensor.padded and bits_of(back) == bits_of(x)
    capsule = packed(x).__dlpack__()
    assert capsule_name(capsule) == "dltensor"
    for take in (isthmus.from_dlpack, lambda c: isthmus.to(c, "numpy")):
        with pytest.raises(BufferError, match="may be packed") as e:
            take(capsule)
        assert e.value.code == 215 and capsule_name(capsule) == "dltensor"
    assert bits_of(isthmus.from_dlpack(capsule, source_packing="packed")) == (
        bits_of(x))


def test_dtypes__a_legacy_capsule_is_refused_unless_it_tells():
    """dmlc/dlpack#158"""
    unknown = Producer(shape=(6,), dtype=(0, 4, 1), legacy=True)
    with pytest.raises(BufferError) as e:
        isthmus.from_dlpack(unknown)
    assert e.value.code == 215 and "source_packing=" in e.value.hint
    for word, nbytes in (("packed", 3), ("padded", 6)):
        tensor = isthmus.from_dlpack(unknown, source_packing=word)
        assert tensor.nbytes == nbytes
        assert tensor.padded == (word == "padded")
    for word in ("pairs", "x", 1, True):
        with pytest.raises(isthmus.Error) as e:
            isthmus.from_dlpack(unknown, source_packing=word)
        assert e.value.code == 101
    one = Producer(shape=(1,), dtype=(0, 4, 1), legacy=True)
    assert isthmus.from_dlpack(one).nbytes == 1
    pairs = Producer(shape=(3,), dtype=(17, 4, 2), legacy=True)
    assert isthmus.from_dlpack(pairs).shape == (6,)
    x = jax.device_put(as_numpy("float4_e2m1fn"))
    assert not isthmus.from_dlpack(x).padded  # jax is known to pack


@pytest.mark.parametrize("name", sorted(SUB_BYTE))
def test_from_dlpack__packs_and_unpacks_when_asked(name):
    x = as_numpy(name, (3, 5))
    small = isthmus.from_dlpack(x, packing="packed")
    assert not small.padded and small.copied and bits_of(small) == bits_of(x)
    assert bits_of(small) == bits_of(packed(x))
    wide = isthmus.from_dlpack(small, packing="padded")
    assert wide.padded and wide.copied and bits_of(wide) == bits_of(x)
    kept = isthmus.from_dlpack(x)
    for same, word in ((kept, "padded"), (small, "packed"), (kept, None)):
        again = isthmus.from_dlpack(same, packing=word)
        assert again.address == same.address
    with pytest.raises(BufferError) as e:
        isthmus.from_dlpack(x, packing="packed", copy=False)
    assert e.value.code == 104
    with pytest.raises(isthmus.Error, match="^packing could not"):
        isthmus.from_dlpack(x, packing="pairs")


def test_empty__counts_pairs_only_by_torch_s_name():
    for dtype, values in (
            ("float4_e2m1fn", 4), (ml_dtypes.float4_e2m1fn, 4),
            ("float4_e2m1fn_x2", 8), ("torch.float4_e2m1fn_x2", 8),
            (torch.float4_e2m1fn_x2, 8)):
        x = isthmus.empty((3, 4), dtype)
        assert x.dtype == ml_dtypes.float4_e2m1fn and x.shape == (3, values)
        y = isthmus.empty((3, 4), dtype, like="torch")
        assert y.dtype == torch.float4_e2m1fn_x2
        assert tuple(y.shape) == (3, values // 2)
    with pytest.raises(isthmus.Error, match="names none"):
        isthmus.empty(3, 32)


def test_load__takes_dtype_objects(tmp_path):
    np.save(tmp_path / "x.npy", as_numpy("int4"))
    for dtype in ("int4", ml_dtypes.int4, np.dtype(ml_dtypes.int4)):
        assert isthmus.load(tmp_path / "x.npy", dtype=dtype).dtype == "int4"


def test_dtypes__complex_in_two_lanes_is_one_number():
    values = np.arange(8, dtype="f4")
    two = Producer(values, shape=(4,), dtype=(5, 32, 2))
    tensor = isthmus.from_dlpack(two)
    assert str(tensor.dtype) == "complex64" and tensor.shape == (4,)
    assert isthmus.to(tensor, "numpy").tolist() == values.view("c8").tolist()
    for dtype in ((5, 64, 2), (2, 32, 4), (5, 32, 3), (0, 4, 2)):
        with pytest.raises(BufferError) as e:
            isthmus.from_dlpack(Producer(values, shape=(1,), dtype=dtype))
        assert e.value.code == 206


TORCH_BITS = [f"{kind}{n}" for kind in ("int", "uint") for n in range(1, 8)
              if hasattr(torch, f"{kind}{n}")]


@pytest.mark.parametrize("name", TORCH_BITS + [
    "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2"])
def test_dtypes__torch_bits_are_refused_and_not_relabelled(name):
    """torch exports them as 8-bit integers; nothing says how they lie."""
    wide = torch.zeros(4, dtype=torch.uint8)
    x = wide.view(torch.uint8 if name != "bits16" else torch.int16).view(
        getattr(torch, name))
    for target in ("numpy", "jax", "torch"):
        with pytest.raises(BufferError, match="view.torch.uint8") as e:
            isthmus.to(x, target)
        assert e.value.code == 205
    assert isthmus.to(x.view(torch.uint8), "numpy").dtype == "uint8"


@pytest.mark.parametrize("name", ["int1", "uint1"])
def test_dtypes__jax_bits_are_refused_and_not_relabelled(name):
    """jax's capsule says that they are bools (jax-ml/jax#4719)."""
    try:
        x = jax.device_put(np.array([0, 1, 1, 0]).astype(name))
    except Exception:
        pytest.skip(f"this jax has no {name}")
    for target in ("numpy", "torch", "jax"):
        with pytest.raises(BufferError, match=name) as e:
            isthmus.to(x, target)
        assert e.value.code == 205
    with pytest.raises(BufferError, match=name):
        isthmus.from_dlpack(x)


PLACES = ["template"] + [f"pjrt:{os.environ[key]}" for key in (
    "ISTHMUS_P1", "ISTHMUS_P2", "ISTHMUS_P3") if key in os.environ]


@pytest.mark.parametrize("place", PLACES, ids=os.path.basename)
def test_dtypes__devices_pack_and_numpy_unpacks(place):
    """dmlc/dlpack#158, openxla/xla#16795"""
    backend = isthmus.open(place)
    crossed = 0
    for name in sorted(SUB_BYTE):
        x = as_numpy(name, (3, 5))
        if isthmus.plan(x, backend).route == "refuse":
            assert isthmus.plan(x, backend).code == 309
            continue
        there = isthmus.to(x, backend)
        assert not there.padded and there.nbytes == -(
            -15 * BY_NAME[name].bits // 8)
        result, receipt = isthmus.to(there, "numpy", receipt=True)
        assert bits_of(result) == bits_of(x)
        assert reasons(receipt)[0] == "packed" and receipt.hops == 1
        out = np.zeros((3, 5), x.dtype)
        _, receipt = isthmus.to(there, "numpy", out=out, receipt=True)
        assert bits_of(out) == bits_of(x) and receipt.bytes_moved == 15
        crossed += 1
    assert crossed >= 4


# ------------------------------------------------------------ random layouts

def random_view(rng, x):
    """A view of x by random slices, steps, permutations and broadcasts."""
    for _ in range(rng.randrange(4)):
        act = rng.randrange(5)
        if act == 0 and x.ndim:
            x = x.transpose(rng.sample(range(x.ndim), x.ndim))
        elif act == 1 and x.ndim < 5:
            x = x[(slice(None),) * rng.randrange(x.ndim + 1) + (None,)]
        elif act == 2 and x.ndim:
            axis = rng.randrange(x.ndim)
            cut = slice(rng.randrange(3) or None, None, rng.choice(
                [1, 2, 3, -1, -2]))
            x = x[(slice(None),) * axis + (cut,)]
        elif act == 3 and x.ndim and x.size < 400:
            shape = tuple(rng.randrange(1, 4) if n == 1 else n
                          for n in x.shape)
            x = np.broadcast_to(x, shape)
        elif x.ndim:
            axis = rng.randrange(x.ndim)
            at = rng.randrange(x.shape[axis]) if x.shape[axis] else 0
            if x.shape[axis]:
                x = x[(slice(None),) * axis + (at,)]
    return x


LAYOUTS = int(os.environ.get("ISTHMUS_DTYPE_LAYOUTS", "8"))


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("name", NAMES)
def test_dtypes__every_layout_keeps_its_bits(name):
    rng = random.Random(name)
    for turn in range(LAYOUTS):
        shape = tuple(rng.randrange(1, 9) for _ in range(rng.randrange(5)))
        x = random_view(rng, as_numpy(name, shape, turn))
        wanted = bits_of(x)
        tensor = isthmus.from_dlpack(x)
        assert tensor.shape == x.shape and bits_of(tensor) == wanted
        dense = packed(x)
        assert bits_of(dense) == wanted
        other = np.zeros(x.shape[::-1], x.dtype).T
        isthmus.to(dense, "numpy", out=other)
        assert bits_of(other) == wanted
        last = x.shape[-1] if x.ndim else 1
        for target in ("numpy", "torch", "jax"):
            for source in (x, dense):
                code = refusal(name, target, last)
                if code:
                    assert isthmus.plan(source, target).code == code
                else:
                    result = isthmus.to(source, target)
                    assert bits_of(result) == wanted, (turn, target)


# ------------------------------------------------------------------ the list

def test_dtypes__numpy_and_ml_dtypes_have_every_name():
    for row in ROWS:
        found = numpy_type(row.name)
        assert found.name == row.name
        assert found.itemsize == max(1, row.bits // 8)
        if row.npy:
            assert found.str[1:] == row.npy
            assert _core.wrap(None, 4096, found.str, (1,), None, True,
                              False).dtype == row.name
        else:
            assert found.type.__module__ == "ml_dtypes"
        if row.format and row.name not in ("complex64", "complex128"):
            assert np.dtype(row.format) == found


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_dtypes__torch_and_jax_have_the_names_that_are_theirs():
    shared = {row.torch for row in ROWS if row.torch}
    assert all(hasattr(torch, name) for name in shared)
    own = {str(t).rpartition(".")[2] for t in vars(torch).values()
           if isinstance(t, torch.dtype)}
    left = {name for name in own - shared
            if not re.match(r"u?int[1-7]$|bits|q", name)}
    assert left == set()
    for row in ROWS:
        if row.torch:
            x = torch.zeros(4, dtype=torch.uint8).view(
                torch.uint8)[:0].view(getattr(torch, row.torch))
            assert 8 * x.itemsize == row.bits * row.torch_lanes
            parsed = isthmus.from_dlpack(
                torch.empty(2, dtype=getattr(torch, row.torch)))
            assert parsed.dtype.name == row.name
        if row.jax and not isthmus_narrows(row.name):
            assert jax.numpy.zeros(2, row.jax).dtype == row.name


def test_dtypes__numbers_are_those_of_dlpack_upstream():
    """The header of the ABI's own project, where a wheel carries it."""
    tvm_ffi = pytest.importorskip("tvm_ffi")
    header = Path(tvm_ffi.__file__).parent / "include/dlpack/dlpack.h"
    text = header.read_text()
    body = text.partition("} DLDataTypeCode")[0].rpartition("enum {")[2]
    codes = {name.lower(): int(number) for name, number in re.findall(
        r"kDL(\w+) = (\d+)U", body)}
    kinds = {"int": "int", "uint": "uint", "float": "float",
             "bfloat": "bfloat", "complex": "complex", "bool": "bool"}
    for row in ROWS:
        name = row.name.rstrip("0123456789")
        assert row.code == codes.get(row.name, codes.get(kinds.get(name)))
    seen = {row.code for row in ROWS}
    assert set(codes.values()) - seen == {codes["opaquehandle"]}
    body = text.partition("} DLDeviceType")[0]
    devices = {int(n) for n in re.findall(r"kDL\w+ = (\d+),", body)}
    ours = {int(kind) for kind in isthmus.DeviceType}
    assert ours - devices == {19, 20, 21} and devices <= ours


# PJRT_Buffer_Type, by the C API's names and numbers.
PJRT = ("PRED S8 S16 S32 S64 U8 U16 U32 U64 F16 F32 F64 BF16 C64 C128 F8E5M2 "
        "F8E4M3FN F8E4M3B11FNUZ F8E5M2FNUZ F8E4M3FNUZ S4 U4 TOKEN S2 U2 "
        "F8E4M3 F8E3M4 F8E8M0FNU F4E2M1FN S1 U1 F6E2M3FN F6E3M2FN").split()


def test_dtypes__numbers_are_those_of_pjrt():
    names = {"bool": "PRED", "bfloat16": "BF16"}
    for row in ROWS:
        short = names.get(row.name)
        if short is None:
            kind, width = re.match(r"([a-z]+)(\d+.*)", row.name).groups()
            letter = {"int": "S", "uint": "U", "float": "F", "complex": "C"}
            short = (letter[kind] + width.replace("_", "")).upper()
            short = re.sub(r"^F([468])E", r"F\1E", short)
        wanted = PJRT.index(short) + 1 if short in PJRT else 0
        assert row.pjrt == wanted, row.name
    assert {row.pjrt for row in ROWS} == (
        set(range(len(PJRT) + 1)) - {PJRT.index("TOKEN") + 1})


def test_dtypes__wide_types_are_narrowed_to_their_halves():
    from isthmus import _jax
    assert _jax.NARROW == {"int64": "int32", "uint64": "uint32",
                           "float64": "float32", "complex128": "complex64"}


@pytest.mark.parametrize("text,name", [
    ("float32", "float32"), ("<f4", "float32"), ("|b1", "bool"),
    (torch.bfloat16, "bfloat16"), (np.dtype("int16"), "int16"),
    (ml_dtypes.bfloat16, "bfloat16"), ("float4_e2m1fn", "float4_e2m1fn")])
def test_dtypes__empty_takes_the_words_of_frameworks(text, name):
    assert isthmus.empty((2, 2), text).dtype == numpy_type(name)


@pytest.mark.parametrize("text", ["f4", "half", ">f4", "float", "int128"])
def test_dtypes__a_word_of_two_meanings_is_refused(text):
    with pytest.raises(isthmus.Error) as e:
        isthmus.empty(2, text)
    assert e.value.code == 205
