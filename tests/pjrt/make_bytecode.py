# SPDX-License-Identifier: Apache-2.0
"""Writes data/*.mlirbc: StableHLO programs as portable bytecode of a version
that every plugin of the tests reads. Run it with the project's Python; the
files are committed so that the C tests need no Python."""

import pathlib

from jax._src.lib.mlir import ir
from jax._src.interpreters import mlir
from jaxlib.mlir.dialects import stablehlo

VERSION = "1.9.0"
SCALE = """
module @scale {
  func.func public @main(%x: tensor<2x3xf32>, %s: tensor<f32>)
      -> tensor<2x3xf32> {
    %0 = stablehlo.broadcast_in_dim %s, dims = []
        : (tensor<f32>) -> tensor<2x3xf32>
    %1 = stablehlo.multiply %x, %0 : tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}
"""
# Two devices sum what each of them has.
SUM_OF_TWO = """
module @sum attributes {mhlo.num_replicas = 2 : i32} {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.all_reduce"(%x) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
        : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


def main():
    folder = pathlib.Path(__file__).parent / "data"
    with mlir.make_ir_context():
        for name, text in (("scale", SCALE), ("sum_of_two", SUM_OF_TWO)):
            (folder / (name + ".mlirbc")).write_bytes(
                stablehlo.serialize_portable_artifact(
                    ir.Module.parse(text), VERSION))


if __name__ == "__main__":
    main()
