# SPDX-License-Identifier: Apache-2.0
"""What the bridges of today guard against, one by one: deleted arrays,
tuples, dynamic shapes, memory that is not addressable, consumed capsules,
negative ranks, backends that are not PJRT's. Each has its own code, or
crosses."""

import os

import pytest

np = pytest.importorskip("numpy")

import isthmus
from capsule_maker import Producer
from frameworks import aligned

PLUGINS = ("ISTHMUS_P1", "ISTHMUS_P2", "ISTHMUS_P3")

TUPLE = """func.func @main(%x: tuple<tensor<2xf32>>) -> tensor<2xf32> {
  %0 = stablehlo.get_tuple_element %x[0] : (tuple<tensor<2xf32>>)
      -> tensor<2xf32>
  return %0 : tensor<2xf32> }"""
DYNAMIC_IN = """func.func @main(%x: tensor<?xf32, #stablehlo.bounds<8>>)
    -> tensor<?xf32, #stablehlo.bounds<8>> {
  return %x : tensor<?xf32, #stablehlo.bounds<8>> }"""
DYNAMIC_OUT = """func.func @main(%x: tensor<8xf32>, %n: tensor<i32>)
    -> tensor<?xf32, #stablehlo.bounds<8>> {
  %0 = "stablehlo.set_dimension_size"(%x, %n) {dimension = 0 : i64}
      : (tensor<8xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<8>>
  return %0 : tensor<?xf32, #stablehlo.bounds<8>> }"""


@pytest.fixture(params=PLUGINS)
def plugin(request):
    if request.param not in os.environ:
        pytest.skip(f"{request.param} names no plugin")
    with isthmus.open("pjrt:" + os.environ[request.param]) as backend:
        yield backend


def code_of(call, *args, **options):
    with pytest.raises(isthmus.Error) as e:
        call(*args, **options)
    return e.value.code


def test_deleted_array__is_refused_as_deleted(plugin):
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(4)
    x.delete()
    assert code_of(isthmus.from_dlpack, x, device=plugin) == 312


def test_tuple__is_refused_as_a_tuple(plugin):
    assert code_of(plugin.compile, TUPLE) == 318


def test_dynamic_shape__is_refused_as_an_input(plugin):
    assert code_of(plugin.compile, DYNAMIC_IN) == 317


def test_dynamic_shape__is_exported_by_its_true_size(plugin):
    program = plugin.compile(DYNAMIC_OUT)
    x = aligned(np.arange(8), "float32")
    for kept in range(9):
        out, = program(x, np.array(kept, "int32"))
        array, receipt = isthmus.to(out, "numpy", copy=False, receipt=True)
        assert out.shape == array.shape == (kept,)
        assert array.tolist() == list(range(kept))
        assert receipt.bytes_moved == 0


def test_not_addressable__is_copied_and_says_why_it_is_no_view():
    with isthmus.open("template", options={"addressable": False}) as hidden:
        tensor = isthmus.from_dlpack(aligned([1, 2], "float32"), device=hidden)
        with pytest.raises(isthmus.Error, match="no address") as e:
            isthmus.to(tensor, "numpy", copy=False)
        assert e.value.code == 104 and isinstance(e.value, BufferError)
        assert isthmus.to(tensor, "numpy").tolist() == [1, 2]


@pytest.mark.parametrize("legacy", [False, True])
def test_consumed_capsule__is_refused_as_consumed(plugin, legacy):
    producer = Producer(legacy=legacy)
    capsule = producer.capsule()
    first = isthmus.from_dlpack(capsule, device=plugin, copy=True)
    assert code_of(isthmus.from_dlpack, capsule, device=plugin) == 110
    assert memoryview(first).tolist() == [1, 2, 3, 4]
    assert producer.freed == 1


@pytest.mark.parametrize("legacy", [False, True])
def test_negative_rank__is_refused_and_the_capsule_left(plugin, legacy):
    producer = Producer(legacy=legacy, ndim=-1)
    capsule = producer.capsule()
    assert code_of(isthmus.from_dlpack, capsule, device=plugin) == 201
    assert producer.freed == 0
    assert code_of(isthmus.from_dlpack, capsule, device=plugin) == 201


def test_backend_that_is_not_pjrts__crosses_all_the_same(plugin):
    with isthmus.open("template") as other:
        there = isthmus.from_dlpack(aligned([1, 2, 3], "float32"),
                                    device=other)
        back = isthmus.from_dlpack(there, device=plugin)
        again = isthmus.from_dlpack(back, device=other)
        assert isthmus.to(again, "numpy").tolist() == [1, 2, 3]


def test_library_that_is_no_plugin__is_refused_by_name():
    path = isthmus._core.__file__
    assert code_of(isthmus.open, "pjrt:" + path) == 303
