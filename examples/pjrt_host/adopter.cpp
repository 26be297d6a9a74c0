// SPDX-License-Identifier: Apache-2.0
// A C++ program that speaks PJRT itself, to which isthmus adds DLPack: class
// Dlpack. Its own buffer goes out to a consumer, and a producer's tensor comes
// in and becomes a PJRT_Buffer of its own. It keeps its client.

#include <dlfcn.h>
#include <pjrt_c_api.h>

#include <isthmus/pjrt.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

// ---- what isthmus adds

class Dlpack {
 public:
  // The client stays the program's; it must outlive this and what it gave.
  Dlpack(const PJRT_Api *api, PJRT_Client *client) {
    receipt.struct_size = sizeof receipt;
    check(ist_context_create(nullptr, &context_, &err_));
    check(ist_pjrt_client_adopt(context_, api, client, nullptr, &backend_,
                                &err_));
  }
  ~Dlpack() {
    ist_backend_release(backend_);
    ist_context_release(context_);
  }
  Dlpack(const Dlpack &) = delete;
  Dlpack &operator=(const Dlpack &) = delete;

  // Exports a buffer, which must outlive the result.
  DLManagedTensorVersioned *to_dlpack(PJRT_Buffer *buffer) {
    ist_tensor *tensor = nullptr;
    DLManagedTensorVersioned *out = nullptr;
    check(ist_pjrt_buffer_adopt(backend_, buffer, nullptr, &tensor, &err_));
    ist_code code = ist_tensor_export(tensor, nullptr, &out, &receipt, &err_);
    ist_tensor_release(tensor);
    check(code);
    return out;
  }

  // Takes a producer's tensor; the buffer is the program's own.
  PJRT_Buffer *from_dlpack(DLManagedTensorVersioned *source) {
    ist_tensor *tensor = nullptr;
    PJRT_Buffer *out = nullptr;
    check(ist_tensor_import(ist_backend_device(backend_, 0), source, nullptr,
                            &tensor, &receipt, &err_));
    ist_code code = ist_pjrt_buffer_give(tensor, &out, &err_);
    if (code != IST_OK) ist_tensor_release(tensor);
    check(code);
    return out;
  }

  ist_receipt receipt{};

 private:
  void check(ist_code code) {
    if (code != IST_OK) throw std::runtime_error(err_.message);
  }
  ist_error err_{};
  ist_context *context_ = nullptr;
  ist_backend *backend_ = nullptr;
};

// ---- the program as it was

namespace {

const PJRT_Api *api = nullptr;

void must(PJRT_Error *error) {
  if (error == nullptr) return;
  PJRT_Error_Message_Args get{};
  get.struct_size = PJRT_Error_Message_Args_STRUCT_SIZE;
  get.error = error;
  api->PJRT_Error_Message(&get);
  throw std::runtime_error(std::string(get.message, get.message_size));
}

void load(const char *path) {
  void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = plugin ? dlsym(plugin, "GetPjrtApi") : nullptr;
  if (symbol == nullptr) throw std::runtime_error(dlerror());
  api = reinterpret_cast<const PJRT_Api *(*)()>(symbol)();
  PJRT_Plugin_Initialize_Args begin{};
  begin.struct_size = PJRT_Plugin_Initialize_Args_STRUCT_SIZE;
  must(api->PJRT_Plugin_Initialize(&begin));
}

void finish(PJRT_Event *event) {
  PJRT_Event_Await_Args await{};
  await.struct_size = PJRT_Event_Await_Args_STRUCT_SIZE;
  await.event = event;
  must(api->PJRT_Event_Await(&await));
  PJRT_Event_Destroy_Args end{};
  end.struct_size = PJRT_Event_Destroy_Args_STRUCT_SIZE;
  end.event = event;
  must(api->PJRT_Event_Destroy(&end));
}

void destroy(PJRT_Buffer *buffer) {
  PJRT_Buffer_Destroy_Args end{};
  end.struct_size = PJRT_Buffer_Destroy_Args_STRUCT_SIZE;
  end.buffer = buffer;
  must(api->PJRT_Buffer_Destroy(&end));
}

PJRT_Buffer *make(PJRT_Client *client, const float *values, std::int64_t n) {
  PJRT_Client_AddressableDevices_Args list{};
  list.struct_size = PJRT_Client_AddressableDevices_Args_STRUCT_SIZE;
  list.client = client;
  must(api->PJRT_Client_AddressableDevices(&list));
  PJRT_Client_BufferFromHostBuffer_Args from{};
  from.struct_size = PJRT_Client_BufferFromHostBuffer_Args_STRUCT_SIZE;
  from.client = client;
  from.data = values;
  from.type = PJRT_Buffer_Type_F32;
  from.dims = &n;
  from.num_dims = 1;
  from.device = list.addressable_devices[0];
  must(api->PJRT_Client_BufferFromHostBuffer(&from));
  finish(from.done_with_host_buffer);
  return from.buffer;
}

float last_value(PJRT_Buffer *buffer) {
  float values[4] = {};
  PJRT_Buffer_ToHostBuffer_Args copy{};
  copy.struct_size = PJRT_Buffer_ToHostBuffer_Args_STRUCT_SIZE;
  copy.src = buffer;
  copy.dst = values;
  copy.dst_size = sizeof values;
  must(api->PJRT_Buffer_ToHostBuffer(&copy));
  finish(copy.event);
  return values[3];
}

// A producer, as any framework is one.
struct Producer {
  alignas(64) float values[4] = {7, 8, 9, 10};
  std::int64_t shape = 4, stride = 1;
  DLManagedTensorVersioned managed{};
  static void deleter(DLManagedTensorVersioned *self) {
    delete static_cast<Producer *>(self->manager_ctx);
  }
  static DLManagedTensorVersioned *make() {
    auto owner = std::make_unique<Producer>();
    DLManagedTensorVersioned *m = &owner->managed;
    m->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    m->deleter = deleter;
    m->dl_tensor.data = owner->values;
    m->dl_tensor.device = {kDLCPU, 0};
    m->dl_tensor.ndim = 1;
    m->dl_tensor.dtype = {kDLFloat, 32, 1};
    m->dl_tensor.shape = &owner->shape;
    m->dl_tensor.strides = &owner->stride;
    m->manager_ctx = owner.release();
    return m;
  }
};

void say(const char *way, const ist_receipt &receipt, float last) {
  std::printf("%s %s, %llu bytes moved, last value %g\n", way,
              ist_route_name(receipt.route),
              static_cast<unsigned long long>(receipt.bytes_moved),
              static_cast<double>(last));
}

void exchange(PJRT_Client *client) {
  const float values[3] = {1, 2, 3};
  PJRT_Buffer *mine = make(client, values, 3);
  Dlpack dlpack(api, client);

  DLManagedTensorVersioned *out = dlpack.to_dlpack(mine);
  const DLTensor &t = out->dl_tensor;
  say("out:", dlpack.receipt, static_cast<const float *>(t.data)[2]);
  out->deleter(out);
  destroy(mine);

  PJRT_Buffer *theirs = dlpack.from_dlpack(Producer::make());
  say("in: ", dlpack.receipt, last_value(theirs));
  destroy(theirs);
}

}  // namespace

int main(int argc, char **argv) {
  try {
    load(argc > 1 ? argv[1] : "");
    PJRT_Client_Create_Args create{};
    create.struct_size = PJRT_Client_Create_Args_STRUCT_SIZE;
    must(api->PJRT_Client_Create(&create));
    exchange(create.client);
    PJRT_Client_Destroy_Args end{};
    end.struct_size = PJRT_Client_Destroy_Args_STRUCT_SIZE;
    end.client = create.client;
    must(api->PJRT_Client_Destroy(&end));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
