# SPDX-License-Identifier: Apache-2.0
"""Writes the corpora under seeds/: small inputs that reach what each target
is about. Inputs that once broke a promise are added by hand, under a name that
says which, and stay as they are.

  python tests/fuzz/make_seeds.py
"""

import json
import pathlib
import struct

SEEDS = pathlib.Path(__file__).resolve().parent / "seeds"
LEAST = -2**63


def numbers(ndim=2, device=1, offset=0, address=4096, flags=0, major=1,
            minor=3, lanes=1, code=2, bits=32, strides=1, shape=(2, 3),
            steps=(3, 1), packing=0):
    head = struct.pack("<iiQQQIIHBBBBxx", ndim, device, offset, address, flags,
                       major, minor, lanes, code, bits, packing, strides)
    arrays = [*shape, *[0] * (65 - len(shape)), *steps]
    return head + struct.pack(f"<{len(arrays)}q", *arrays)


def imports():
    yield "dense", numbers()
    yield "no_strides", numbers(strides=0)
    yield "scalar", numbers(ndim=0, shape=(), steps=())
    yield "reversed", numbers(address=65536, steps=(-3, -1))
    yield "broadcast", numbers(steps=(0, 1))
    yield "interleaved", numbers(steps=(3, 2))
    yield "empty_wild", numbers(shape=(0, 7), steps=(LEAST, 2**63 - 1),
                                address=0)
    yield "packed", numbers(code=17, bits=4, shape=(3, 5), steps=(5, 1))
    yield "padded", numbers(code=17, bits=4, flags=4)
    yield "pairs", numbers(code=17, bits=4, lanes=2)
    for packing in range(1, 5):
        yield f"packed_wish_{packing}", numbers(code=17, bits=4, shape=(3, 6),
                                                steps=(6, 1), packing=packing)
        yield f"padded_wish_{packing}", numbers(code=17, bits=4, flags=4,
                                                packing=packing)
        yield f"apart_wish_{packing}", numbers(code=17, bits=4, shape=(2, 2),
                                               steps=(1, 2), packing=packing)
    yield "read_only", numbers(flags=1)
    yield "metal", numbers(device=8, offset=64)
    yield "negative_extent", numbers(shape=(-4, 3))
    yield "count_overflows", numbers(shape=(2**62, 4))
    yield "stride_overflows", numbers(steps=(LEAST, 1))
    yield "offset_wraps", numbers(offset=2**64 - 4)
    yield "null_data", numbers(address=0)
    yield "misaligned", numbers(address=4098)
    yield "other_major", numbers(major=2, ndim=-1)
    yield "rank_64", numbers(ndim=64, shape=(1,) * 64, steps=(7,) * 64)
    yield "rank_65", numbers(ndim=65, shape=(1,) * 65)


def small(accepted, *dims):
    """Extent and stride of each dimension."""
    body = b"".join(bytes((e - 1, s + 128)) for e, s in dims)
    return bytes((0, accepted, len(dims))) + body


def tiled(shape, order, tiles):
    """Small tiles; 255 joins."""
    at = list(range(len(shape)))
    swaps = []
    for i in range(len(shape) - 1, -1, -1):  # as the target undoes them
        swaps.append(at.index(order[i]))
        at[i], at[swaps[-1]] = at[swaps[-1]], at[i]
    body = [2, len(shape), len(tiles), *(e - 1 for e in shape), *swaps[::-1]]
    for tile in tiles:
        body += [len(tile) - 1, *(255 if t is None else t - 1 for t in tile)]
    return bytes(body)


def layouts():
    yield "permuted", small(0, (2, 1), (3, 2))
    yield "interleaved", small(2, (2, 3), (3, 2))
    yield "meets", small(15, (3, 3), (4, 2))
    yield "three_steps", small(0, (2, 4), (2, 6), (2, 5))
    yield "broadcast_reversed", small(4, (4, 0), (3, -1))
    yield "unit_extents", small(0, (1, 99), (4, 1), (1, -5))
    wild = struct.pack("<qqBqqB", 2**62, LEAST, 2, 3, 2**63 - 1, 1)
    yield "wild_overflow", bytes((1, 0, 2, 7)) + wild
    dims = b"".join(struct.pack("<BqB", 2, 1 << (i % 40) << 16, i + 1)
                    for i in range(64))
    yield "wild_rank_64", bytes((1, 2, 64, 0)) + dims
    yield "tiles_plain", tiled((4, 6), (1, 0), [(2, 6)])
    yield "tiles_split", tiled((4, 6), (1, 0), [(2, 3)])
    yield "tiles_padded", tiled((5, 7), (1, 0), [(2, 3)])
    yield "tiles_of_tiles", tiled((4, 6), (0, 1), [(4, 6), (2, 1)])
    yield "tiles_joined", tiled((2, 3, 4), (2, 1, 0), [(None, 3, 2)])
    yield "tiles_longer_than_shape", tiled((5,), (0,), [(2, 2, 4)])
    yield "wild_tiles", bytes((3, 1, 2)) + struct.pack(
        "<qBB", 2**62, 1, 2) + bytes((8, *[255] * 8, 3, 250)) + b"\x01" * 20


def capability(can, accepts, alignment=1, dtypes=2**64 - 1, device=1):
    return struct.pack("<QIIQQii", 0, can, accepts, alignment, dtypes, device,
                       0)


def routes():
    host = capability(1 | 2 | 4 | 8 | 16 | 32 | 128, 15)
    def offer(layout, grant, order=0, dtype=4, nbytes=24, pairs=0, count=0):
        return (bytes((layout, dtype, grant - 1)) + struct.pack("<Q", 4096)
                + struct.pack("<IHBI", nbytes, order, pairs, count))

    def wish(copy=0, read_only=0, mutable=0, packing=0):
        return bytes((copy, read_only, mutable, packing))

    whole = b"\xff" * 4
    ends = {
        "host": host,
        "ignorer": capability(4 | 16, 11),
        "aligned": capability(1 | 4 | 8 | 16, 1, 64),
        "copies_only": capability(1 | 2, 0),
        "nothing": capability(0, 0, device=2),
    }
    for name, end in ends.items():
        yield f"to_{name}", b"\0" + host + end + offer(0, 1) + wish() + (
            b"\0" + whole)
        yield f"from_{name}", b"\0" + end + host + offer(1, 2) + wish() + (
            b"\0" + whole)
    yield "never_permuted", (b"\0" + host + capability(4 | 16, 0)
                             + offer(1, 1, 0x012) + wish(1) + b"\0" + whole)
    card, padder = capability(1 | 2, 0), capability(1 | 2 | 128, 0)
    for packing in range(4):  # 101 of 4 bits: 51 bytes, or 101
        for name, source, end in (("host", host, host),
                                  ("card", card, card),
                                  ("padder", padder, card),
                                  ("to_padder", host, padder)):
            yield f"packed_{name}_{packing}", (
                b"\0" + source + end
                + offer(0, 1, 0, 26, 51, 2, 101) + wish(0, 0, 0, packing)
                + b"\0" + whole)
            yield f"padded_{name}_{packing}", (
                b"\0" + source + end
                + offer(0, 1, 0, 26, 101, 2, 101) + wish(2, 0, 0, packing)
                + b"\4" + whole)
    yield "padded_no_dtype", (b"\0" + host + capability(4 | 16, 15)
                              + offer(0, 1, 0, 63, 5, 0, 5) + wish(2)
                              + b"\4" + whole)
    yield "always", b"\0" + host + host + offer(8, 3) + wish(2) + b"\0" + whole
    yield "raw", b"\3" + host + host + bytes(range(96)) + b"\7" + whole
    yield "short_structs", (b"\0" + host + host + offer(0, 1) + wish()
                            + b"\0" + bytes((16, 8, 24, 12)))


def npy(header, data=b"\0" * 64, version=1):
    text = header.encode() + b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes((version, 0)) + size + text + data


def npys():
    head = "{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}"
    yield "two_by_three", npy(head.format("<f4", False, (2, 3)))
    yield "version_two", npy(head.format("<i8", False, (2,)), version=2)
    yield "scalar", npy(head.format("<f8", False, ()))
    yield "empty", npy(head.format("|b1", False, (0, 4)), b"")
    yield "huge_shape", npy(head.format("<f4", False, (2**62, 4)))
    yield "objects", npy(head.format("|O", False, (2,)))
    yield "bfloat16", npy(head.format("<V2", False, (3,)))


def safetensors(header, data=b"\0" * 64):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(dtype="F32", shape=(2, 3), offsets=(0, 24)):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def safes():
    yield "one", safetensors({"a": tensor()}, b"\0" * 24)
    yield "bfloat16", safetensors({"w": tensor("BF16", (4,), (0, 8))},
                                  b"\0" * 8)
    yield "empty", safetensors({"e": tensor("I64", (0,), (0, 0))}, b"")
    yield "overlap", safetensors({"a": tensor(), "b": tensor()}, b"\0" * 24)
    yield "backwards", safetensors({"a": tensor(offsets=(24, 0))}, b"\0" * 24)
    yield "huge", safetensors({"a": tensor(shape=(2**62, 4))}, b"\0" * 24)
    yield "escapes", safetensors(b'{"\\u0061\\n":' + json.dumps(
        tensor()).encode() + b"}", b"\0" * 24)
    yield "length_to_be_mended", b"\0" * 7 + b"\1" + safetensors(
        {"a": tensor()}, b"\0" * 24)[8:]


def option(kind, shape, integer=2, rest=b""):
    return b"\xff" + bytes((kind + 2, shape)) + struct.pack("<q", integer) + (
        rest)


def programs():
    text = (b'module @m attributes {mhlo.num_partitions = 1 : i32, '
            b'mhlo.num_replicas = %d : i32} {\n  func.func public '
            b'@main(%%x: tensor<4xf32>) -> tensor<4xf32> {\n    %%0 = '
            b'%s %%x, %%x : tensor<4xf32>\n    return %%0 : '
            b'tensor<4xf32>\n  }\n}\n')
    yield "add", text % (1, b"stablehlo.add")
    yield "two_replicas", text % (2, b"stablehlo.add")
    yield "all_reduce", text % (1, b'"stablehlo.all_reduce"')
    yield "manual", text % (1, b"sdy.manual_computation")
    yield "bytecode", b"ML\xefR\1StableHLO_v1.13.3\0\0all_reduce_v1\0add_v1\0"
    yield "cut_number", b"mhlo.num_replicas = 99999999999999999999999"
    yield "option_count", option(1, 0)
    yield "option_count_none", option(1, 0, 0)
    yield "option_count_text", option(0, 0)
    yield "option_of_no_kind", option(7, 0)
    yield "option_without_name", option(1, 2)
    yield "option_list", option(2, 0x41)
    yield "option_own_name", option(3, 1, 5, b"\1\2" * 4 + b"verbose\0" * 5)


def copies():
    def case(dtype, flags, dims, orders, steps):
        body = b"".join(bytes(d) for d in dims)
        threads = (flags >> 8,) if flags & 16 else ()
        return bytes((dtype, flags & 255, *threads, len(dims))) + body + (
            bytes(orders) + bytes(steps))

    def dim(extent, step):
        return (extent, step + 128)

    yield "dense", case(10, 4, [dim(4, 0), dim(6, 0)], [1], [0, 0])
    yield "transposed", case(10, 0, [dim(9, 1), dim(11, 9)], [1], [0, 0])
    yield "transposed_bytes", case(1, 0, [dim(11, 1), dim(11, 11)], [1],
                                   [0, 0])
    yield "reversed", case(9, 0, [dim(9, -11), dim(11, -1)], [1], [4, 6])
    yield "broadcast", case(11, 0, [dim(8, 0), dim(7, 1)], [1], [0, 0])
    yield "every_second", case(10, 0, [(245, 130, 200)], [], [0])
    yield "five_dimensions", case(
        8, 0, [dim(3, 1), dim(4, 3), dim(5, 12), dim(2, 60), dim(3, 120)],
        [1, 0, 1, 0], [0] * 5)
    for threads in (0, 2, 6, 255):
        yield f"threads_{threads + 1}", case(
            11, 16 | threads << 8, [(255, 249, 129), (255, 249, 129),
                                    dim(3, 1)], [1, 0], [0] * 3)
    for dtype in range(20, 32):
        yield f"sub_byte_{dtype}", case(dtype, dtype % 4, [
            dim(5, 7), dim(7, 1)], [1], [0, 3])


def conversions():
    def case(source, target, flags, dims, data, threads=()):
        body = b"".join(bytes(d) for d in dims)
        return bytes((source, target, flags, *threads, len(dims))) + (
            body + data)

    wide = struct.pack("<8f", 0.0, -0.0, 1.5, 448.0, 1e30, -1e-40,
                       float("inf"), float("nan"))
    for number in range(9, 31):
        for flags in range(8):
            yield f"from_f32_{number}_{flags}", case(
                10, number, flags | 8, [(9, 0), (7, 0)], wide)
    for number in range(18, 31):
        yield f"to_f32_{number}", case(number, 10, 8, [(13, 0), (7, 0)],
                                       bytes(range(64)))
    yield "transposed", case(10, 12, 6, [(9, 129), (11, 137)], wide)
    yield "reversed", case(10, 9, 7, [(9, 119), (11, 127)], wide)
    yield "threads", case(10, 12, 24, [(255, 249, 0), (255, 249, 0), (5, 0)],
                          wide, (6,))


def saved():
    """Saved programs; their digest is set right by the target."""
    def text(*words):
        return b"".join(struct.pack("<I", len(w)) + w for w in words)

    def case(head, code=b"code", size=None, form=1):
        return b"ISTHMEXE" + struct.pack(
            "<IIQ", form, len(head) if size is None else size,
            len(code)) + bytes(32) + head + code

    home = text(b"cpu", b"1.0", b"0" * 64, b"cpu", b"x86-64")
    plain = struct.pack("<5I", 1, 1, 0, 2, 1)
    yield "plain", case(plain + home + text(b"x", b"", b"out"))
    yield "portable", case(struct.pack("<5I", 1, 1, 1, 0, 0) + home)
    yield "replicas", case(struct.pack("<5I", 4, 2, 0, 0, 0) + home)
    yield "no_name", case(plain + home + text(b"x"))
    yield "name_too_many", case(plain + home + text(b"x", b"", b"", b""))
    yield "name_too_long", case(plain + home + struct.pack("<I", 2**32 - 1))
    yield "zero_in_a_text", case(plain + text(b"c\0u") + home)
    yield "no_replicas", case(struct.pack("<5I", 0, 1, 0, 0, 0) + home)
    yield "counts_too_large", case(struct.pack("<5I", *[2**32 - 1] * 5) + home)
    yield "no_code", case(plain + home + text(b"x", b"", b"out"), b"")
    yield "head_too_long", case(plain + home, size=2**32 - 1)
    yield "another_format", case(plain + home, form=2)
    yield "cut", case(plain + home)[:70]


def write(name, seeds):
    folder = SEEDS / name
    folder.mkdir(parents=True, exist_ok=True)
    for seed, data in seeds:
        (folder / seed).write_bytes(data)


def main():
    write("import_fuzz", imports())
    write("layout_fuzz", layouts())
    write("route_fuzz", routes())
    write("npy_fuzz", npys())
    write("safetensors_fuzz", safes())
    write("program_fuzz", programs())
    write("copy_fuzz", copies())
    write("convert_fuzz", conversions())
    write("saved_fuzz", saved())


if __name__ == "__main__":
    main()
