module @jit_digits attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<64x64xf32>, %arg1: tensor<64xf32>, %arg2: tensor<64x10xf32>, %arg3: tensor<10xf32>, %arg4: tensor<1797x64xf32>) -> (tensor<1797x10xf32> {jax.result_info = "result[0]"}, tensor<1797xi32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<6.250000e-02> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1797x64xf32>
    %1 = stablehlo.multiply %arg4, %0 : tensor<1797x64xf32>
    %2 = stablehlo.dot_general %1, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1797x64xf32>, tensor<64x64xf32>) -> tensor<1797x64xf32>
    %3 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<64xf32>) -> tensor<1x64xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<1x64xf32>) -> tensor<1797x64xf32>
    %5 = stablehlo.add %2, %4 : tensor<1797x64xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1797x64xf32>
    %7 = stablehlo.maximum %5, %6 : tensor<1797x64xf32>
    %8 = stablehlo.dot_general %7, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1797x64xf32>, tensor<64x10xf32>) -> tensor<1797x10xf32>
    %9 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<10xf32>) -> tensor<1x10xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<1x10xf32>) -> tensor<1797x10xf32>
    %11 = stablehlo.add %8, %10 : tensor<1797x10xf32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %12 = stablehlo.reduce(%11 init: %cst_1) applies stablehlo.maximum across dimensions = [1] : (tensor<1797x10xf32>, tensor<f32>) -> tensor<1797xf32>
    %cst_2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1797xf32>
    %14 = stablehlo.maximum %13, %12 : tensor<1797xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<1797xf32>) -> tensor<1797x1xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1] : (tensor<1797x1xf32>) -> tensor<1797x10xf32>
    %17 = stablehlo.subtract %11, %16 : tensor<1797x10xf32>
    %18 = stablehlo.exponential %17 : tensor<1797x10xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %19 = stablehlo.reduce(%18 init: %cst_3) applies stablehlo.add across dimensions = [1] : (tensor<1797x10xf32>, tensor<f32>) -> tensor<1797xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0] : (tensor<1797xf32>) -> tensor<1797x1xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1] : (tensor<1797x1xf32>) -> tensor<1797x10xf32>
    %22 = stablehlo.divide %18, %21 : tensor<1797x10xf32>
    %23 = call @argmax(%22) : (tensor<1797x10xf32>) -> tensor<1797xi32>
    return %22, %23 : tensor<1797x10xf32>, tensor<1797xi32>
  }
  func.func private @argmax(%arg0: tensor<1797x10xf32>) -> tensor<1797xi32> {
    %0 = stablehlo.iota dim = 1 : tensor<1797x10xi32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<1797x10xf32>, tensor<1797x10xi32>, tensor<f32>, tensor<i32>) -> (tensor<1797xf32>, tensor<1797xi32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<1797xi32>
  }
}
