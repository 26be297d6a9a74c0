# SPDX-License-Identifier: Apache-2.0
"""isthmus.load and save, with NumPy and the safetensors wheel as oracles."""

import pytest

np = pytest.importorskip("numpy")

import isthmus

DTYPES = ("?", "b", "h", "i", "q", "B", "H", "I", "Q", "e", "f", "d", "F", "D")


@pytest.mark.parametrize("dtype", DTYPES)
def test_load__views_what_numpy_saved(tmp_path, dtype):
    for x in (np.arange(12).astype(dtype).reshape(3, 4),
              np.asfortranarray(np.arange(12).astype(dtype).reshape(3, 4)),
              np.array(1).astype(dtype), np.zeros((0, 3), dtype)):
        path = tmp_path / "x.npy"
        np.save(path, x)
        tensor = isthmus.load(path)
        assert isinstance(tensor, isthmus.Tensor) and tensor.read_only
        back, receipt = isthmus.to(tensor, "numpy", receipt=True)
        assert back.dtype == x.dtype and np.array_equal(back, x)
        assert receipt.bytes_moved == 0 and not back.flags.writeable


@pytest.mark.parametrize("dtype", DTYPES)
def test_save__writes_what_numpy_loads(tmp_path, dtype):
    for x in (np.arange(12).astype(dtype).reshape(3, 4)[::-1, ::2],
              np.array(1).astype(dtype)):
        path = tmp_path / "x.npy"
        isthmus.save(path, x)
        back = np.load(path)
        assert back.dtype == x.dtype and np.array_equal(back, x)


def test_load__reads_void_items_as_the_dtype_that_is_named(tmp_path):
    pytest.importorskip("ml_dtypes")
    x = np.arange(4).astype("bfloat16")
    np.save(tmp_path / "x.npy", x)
    with pytest.raises(isthmus.Error):
        isthmus.load(tmp_path / "x.npy")
    tensor = isthmus.load(tmp_path / "x.npy", dtype="bfloat16")
    assert np.array_equal(isthmus.to(tensor, "numpy"), x)


def test_load__gives_a_dict_of_a_safetensors_file(tmp_path):
    torch = pytest.importorskip("torch")
    oracle = pytest.importorskip("safetensors.torch")
    tensors = {"a": torch.arange(6.0).reshape(2, 3),
               "b": torch.ones(3, dtype=torch.bfloat16),
               "c": torch.zeros(0, 2, dtype=torch.int64)}
    path = tmp_path / "x.safetensors"
    oracle.save_file(tensors, path)
    loaded = isthmus.load(path)
    assert set(loaded) == set(tensors)
    for name, x in tensors.items():
        back = isthmus.to(loaded[name], "torch")
        assert back.dtype == x.dtype and torch.equal(back, x)
        one = isthmus.load(path, name)
        assert one.shape == tuple(x.shape)
    with pytest.raises(isthmus.Error) as e:
        isthmus.load(path, "nothing")
    assert e.value.code == 112


def test_load__gives_a_dict_even_of_one_tensor_without_a_name(tmp_path):
    path = tmp_path / "x.safetensors"
    isthmus.save(path, {"": np.ones(3, "float32")})
    assert list(isthmus.load(path)) == [""]
    assert isthmus.load(path, "").shape == (3,)


def test_save__refuses_names_that_would_be_cut(tmp_path):
    for names in ({"a\0b": np.ones(2)}, {"\ud800": np.ones(2)},
                  {"a": np.ones(2), "a\0": np.ones(2)}):
        with pytest.raises(isthmus.Error, match="NUL") as e:
            isthmus.save(tmp_path / "x.safetensors", names)
        assert e.value.code == 101
    assert list(tmp_path.iterdir()) == []


def test_save__writes_a_state_dict_that_others_load(tmp_path):
    torch = pytest.importorskip("torch")
    oracle = pytest.importorskip("safetensors.torch")
    layer = torch.nn.Linear(3, 2)
    path = tmp_path / "layer.safetensors"
    isthmus.save(path, dict(layer.named_parameters()))
    for name, x in oracle.load_file(path).items():
        assert torch.equal(x, layer.state_dict()[name])


def test_load__of_our_own_file_is_aligned_for_every_backend(tmp_path):
    path = tmp_path / "x.safetensors"
    isthmus.save(path, {"odd": np.ones(3, "uint8"), "b": np.ones((5, 8)),
                        "c": np.ones(32, "float32")})
    for tensor in isthmus.load(path).values():
        assert tensor.address % 64 == 0


def test_load__keeps_the_map_as_long_as_a_view_of_it(tmp_path):
    import gc
    path = tmp_path / "x.npy"
    np.save(path, np.arange(1000.0))
    back = isthmus.to(isthmus.load(path), "numpy")
    path.unlink()
    gc.collect()
    assert back.sum() == 499500


@pytest.mark.parametrize("content", [
    b"", b"\x93NUMPY", b"nonsense" * 20, b"\x08\0\0\0\0\0\0\0{}      x",
    b"\xff" * 64])
def test_load__refuses_files_that_lie(tmp_path, content):
    for name in ("x.npy", "x.safetensors"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(isthmus.Error) as e:
            isthmus.load(tmp_path / name)
        assert e.value.code in (210, 211) and "\n" not in str(e.value)


def test_load__and_save_say_what_is_wrong(tmp_path):
    x = np.ones(2)
    for call, codes in (
            (lambda: isthmus.load(tmp_path / "none.npy"), (403,)),
            (lambda: isthmus.load(tmp_path), (403, 210)),
            (lambda: isthmus.save(tmp_path / "x.txt", x), (101, 114)),
            (lambda: isthmus.save(tmp_path / "no" / "x.npy", x), (114, 402)),
            (lambda: isthmus.save(tmp_path / "x.npy", {"a": x, "b": x}),
             (101, 114)),
            (lambda: isthmus.save(tmp_path / "x.safetensors", {3: x}), (101,)),
            (lambda: isthmus.save(tmp_path / "x.safetensors", x), (101,)),
            (lambda: isthmus.save(tmp_path / "x.npy", object()), (116,))):
        with pytest.raises(isthmus.Error) as e:
            call()
        assert e.value.code in codes, e.value
    assert list(tmp_path.iterdir()) == []
