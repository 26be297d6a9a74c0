# SPDX-License-Identifier: Apache-2.0
"""Writes data/scale.mlirbc: a StableHLO program as portable bytecode of a
version that every plugin of the tests reads. Run it with the project's
Python; the file is committed so that the C tests need no Python."""

import pathlib

from jax._src.lib.mlir import ir
from jax._src.interpreters import mlir
from jaxlib.mlir.dialects import stablehlo

VERSION = "1.9.0"
TEXT = """
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


def main():
    path = pathlib.Path(__file__).parent / "data" / "scale.mlirbc"
    with mlir.make_ir_context():
        module = ir.Module.parse(TEXT)
        path.write_bytes(
            stablehlo.serialize_portable_artifact(module, VERSION))


if __name__ == "__main__":
    main()
