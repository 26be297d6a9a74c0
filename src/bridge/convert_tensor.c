// SPDX-License-Identifier: Apache-2.0
// convert_tensor.c: a tensor of ours in another floating-point dtype, in memory
// of its own.

#include "backend/block.h"
#include "bridge/crossing.h"
#include "bridge/outputs.h"
#include "tensor/dtype.h"
#include "tensor/strided_convert.h"
#include "tensor/strided_copy.h"

// The way from a tensor's elements to the result's.
typedef struct passage {
  ist__cargo cargo;
  ist_context *context;
  bool same;  // the dtype does not change
  bool saturate;
  ist__watch watch;
  ist__view result;  // without its memory until the end
  ist__view staged;  // a copy on the way; data NULL: none
} passage;

static ist_code check_dtypes(int32_t from, DLDataType dtype, ist_error *err) {
  const ist__dtype *to = ist__dtype_find(dtype);
  if (to == NULL) {
    return ist_error_set(err, IST_ERR_DTYPE,
                         "a tensor could not be converted to what was asked "
                         "for: its dtype has code %u and %u bits; needs a "
                         "floating-point dtype with a name",
                         (unsigned)dtype.code, (unsigned)dtype.bits);
  }
  // Lanes would change the shape, which a conversion keeps.
  if (dtype.lanes != 1) {
    return ist_error_set(err, IST_ERR_LANES,
                         "a tensor could not be converted to %s: it was asked "
                         "for with %u lanes; needs 1 lane",
                         to->name, (unsigned)dtype.lanes);
  }
  if (ist__float_format_find(from) != NULL &&
      ist__float_format_find(to->number) != NULL) {
    return IST_OK;
  }
  return ist_error_set(err, IST_ERR_DTYPE_MISMATCH,
                       "a tensor could not be converted to %s: it is of %s; "
                       "needs floating-point dtypes on both sides",
                       to->name, ist__dtype_at(from)->name);
}

// Fills the result's block from elements that the host reads.
static ist_code fill(passage *p, const ist__view *from, ist_error *err) {
  const ist__copy_engine *engine = p->context->env.copy_engine;
  if (p->same) {
    return ist__strided_copy_watched(engine, &p->watch, from, &p->result, err);
  }
  ist__conversion conversion;
  ist__conversion_make(engine->convert_kernels, from->dtype_number,
                       p->result.dtype_number, p->saturate, from->count,
                       &conversion);
  return ist__strided_convert(engine, &p->watch, &conversion, from, &p->result,
                              err);
}

// Are the elements to be copied in order first? Where the host cannot read
// them, or they cannot be converted as they lie.
static bool needs_stage(const passage *p) {
  return !ist__cargo_host_reads(&p->cargo) ||
         (!p->same && !ist__strided_convert_takes(&p->cargo.view, &p->result));
}

// A backend copies out in its own packing, and the conversion takes packed
// elements that lie in order: no third copy. What the host unpacks itself comes
// one to a byte, which is faster to convert.
static bool stages_padded(const passage *p) {
  return ist__cargo_host_reads(&p->cargo) || p->cargo.view.padded;
}

static void write_receipt(const passage *p, ist_receipt *out) {
  bool staged = needs_stage(p);
  ist__decision made = {
      .route = staged ? IST_ROUTE_STAGE : IST_ROUTE_COPY,
      .hops = staged ? 2 : 1,
      .bytes_moved = p->staged.nbytes + p->result.nbytes,
      .reason_count = staged ? 2 : 1,
      .reasons = {{p->same ? IST__REASON_SAME_DTYPE : IST__REASON_CONVERTED, 0,
                   0},
                  {IST__REASON_STAGED, 0, 0}},
  };
  const ist_options names = {.struct_size = sizeof names};
  char from[IST_MAX_PLACE];
  ist__cargo_place(&p->cargo, &names, from);
  ist__decision_receipt(&made, from, "host", out);
}

// Makes the result's memory, fills it, and makes it a tensor.
static ist_code pass(passage *p, ist_tensor **out, ist_error *err) {
  ist_code code = IST_OK;
  ist__view *result = &p->result;
  const ist__view *from = &p->cargo.view;
  if (needs_stage(p)) {
    from = &p->staged;
    p->cargo.watch = &p->watch;
    ist__watch_next_hop(&p->watch, p->staged.nbytes);
    code = ist__cargo_gather(&p->cargo, p->context, 0, stages_padded(p),
                             &p->staged, err);
    if (code != IST_OK) return code;
  }
  result->data = ist__block_make(p->context, result->nbytes, 0);
  if (result->data == NULL) {
    return ist__error_memory(err, "the converted tensor", result->nbytes);
  }
  ist__watch_next_hop(&p->watch, result->nbytes);
  code = fill(p, from, err);
  if (code == IST_OK) {
    code = ist__tensor_on_host(p->context, result, true, ist__block_release,
                               result->data, out, err);
  }
  if (code != IST_OK) ist__block_release(result->data);
  return code;
}

// Measures the stage, and tells progress what there is to do.
static ist_code begin(passage *p, const ist_convert_options *options,
                      ist_error *err) {
  const ist__view *from = &p->cargo.view;
  if (needs_stage(p)) {
    ist_code code = ist__view_dense(from->dtype, from->ndim, from->shape,
                                    stages_padded(p), &p->staged, err);
    if (code != IST_OK) return code;
  }
  const ist_options watched = {.struct_size = sizeof watched,
                               .progress = options->progress,
                               .progress_self = options->progress_self};
  return ist__watch_begin(&p->watch, &watched,
                          p->staged.nbytes + p->result.nbytes, 1, err);
}

ist_code ist_tensor_convert(ist_tensor *tensor, DLDataType dtype,
                            const ist_convert_options *options,
                            ist_tensor **out, ist_receipt *receipt,
                            ist_error *err) {
  ist__outputs_clear((void **)out, receipt);
  if (tensor == NULL || out == NULL) {
    return ist_error_set(err, IST_ERR_ARGUMENT,
                         "a tensor could not be converted: tensor or out is "
                         "NULL; needs both");
  }
  ist_convert_options known;
  ist_code code = ist__options_read(&known, sizeof known, options,
                                    "ist_convert_options", err);
  if (code == IST_OK) code = ist__struct_check(receipt, "ist_receipt", err);
  if (code == IST_OK) code = check_dtypes(tensor->dtype_number, dtype, err);
  if (code != IST_OK) return code;
  passage p = {.context = ist__tensor_backend(tensor)->context,
               .saturate = known.saturate};
  code = ist__view_dense(dtype, tensor->view.ndim, tensor->view.shape,
                         known.padded, &p.result, err);
  if (code != IST_OK) return code;
  p.same = p.result.dtype_number == tensor->dtype_number;
  code = ist__cargo_of_tensor(tensor, IST_COPY_AUTO, &p.cargo, err);
  if (code == IST_OK) code = begin(&p, &known, err);
  if (code == IST_OK) code = pass(&p, out, err);
  if (code == IST_OK && receipt != NULL) write_receipt(&p, receipt);
  if (p.staged.data != NULL) ist__block_release(p.staged.data);
  return code;
}
