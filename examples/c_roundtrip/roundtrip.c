// SPDX-License-Identifier: Apache-2.0
// Loads a PJRT plugin, hands it a tensor, and gets the same memory back.

#include <isthmus/isthmus.h>
#include <stdio.h>

int main(int argc, char **argv) {
  static _Alignas(64) float values[2][3] = {{1, 2, 3}, {4, 5, 6}};
  int64_t shape[] = {2, 3};
  const DLTensor view = {.data = values,
                         .device = {kDLCPU, 0},
                         .ndim = 2,
                         .dtype = {kDLFloat, 32, 1},
                         .shape = shape};
  const ist_backend_options plugin = {.struct_size = sizeof plugin,
                                      .path = argc > 1 ? argv[1] : ""};
  ist_receipt receipt = {.struct_size = sizeof receipt};
  ist_context *context = NULL;
  ist_backend *backend = NULL;
  ist_tensor *host = NULL, *device = NULL;
  DLManagedTensorVersioned *back = NULL;
  ist_error err = {0};

  if (ist_context_create(NULL, &context, &err) ||
      ist_backend_open(context, "pjrt", &plugin, &backend, &err) ||
      ist_tensor_wrap(context, &view, NULL, NULL, &host, &err) ||
      ist_tensor_move(host, ist_backend_device(backend, 0), NULL, &device,
                      &receipt, &err))
    goto done;
  printf("in:  %s, %llu bytes moved\n", ist_route_name(receipt.route),
         (unsigned long long)receipt.bytes_moved);
  if (ist_tensor_export(device, NULL, &back, &receipt, &err)) goto done;
  printf("out: %s, %llu bytes moved\n", ist_route_name(receipt.route),
         (unsigned long long)receipt.bytes_moved);
  printf("same memory: %s\n", back->dl_tensor.data == values ? "yes" : "no");

done:
  if (err.code) fprintf(stderr, "%s\n", err.message);
  if (back) back->deleter(back);
  ist_tensor_release(device);
  ist_tensor_release(host);
  ist_backend_release(backend);
  ist_context_release(context);
  return err.code ? 1 : 0;
}
