// SPDX-License-Identifier: Apache-2.0
// command_backend.c: what a backend is and can do, as text and as JSON, for
// doctor and probe. Each memory is tried: bytes go in and must come back.

#include <inttypes.h>
#include <string.h>

#include "command_trial.h"
#include "tensor/dtype.h"

// The bits of ist_can, and what is lost without each.
static const struct {
  uint32_t can;
  const char *name, *lost;
} abilities[] = {
    {IST_CAN_COPY_IN, "copy_in", "nothing can be brought in by copying"},
    {IST_CAN_COPY_OUT, "copy_out", "nothing can be read back by copying"},
    {IST_CAN_ADOPT, "adopt", "every import is copied"},
    {IST_CAN_LEND, "lend", "every export is copied out"},
    {IST_CAN_HOST_ADDRESS, "host_address",
     "the host can neither view its memory nor be viewed"},
    {IST_CAN_HONOUR_READ_ONLY, "honour_read_only",
     "read-only tensors are copied first"},
    {IST_CAN_PEER, "peer", "copies between its memories pass the host"},
};

static const struct {
  uint32_t layout;
  const char *name;
} layouts[] = {{IST_LAYOUT_PERMUTED, "permuted"},
               {IST_LAYOUT_GAPS, "gaps"},
               {IST_LAYOUT_NEGATIVE, "negative"},
               {IST_LAYOUT_OVERLAP, "overlap"}};

enum {
  ABILITY_COUNT = sizeof abilities / sizeof abilities[0],
  LAYOUT_COUNT = sizeof layouts / sizeof layouts[0],
  KEPT_COUNT = 8
};

// ------------------------------------------------------------------ text --

static void say_dtypes(FILE *file, uint64_t dtypes) {
  int column = 16;
  int32_t count = 0;
  if (dtypes == 0) fputs(" none", file);
  for (int32_t i = 0; i < ist__dtype_count(); i++) {
    count += (int32_t)(dtypes >> i & 1);
  }
  if (count == ist__dtype_count()) {
    fprintf(file, " all %d that DLPack has", (int)count);
    return;
  }
  for (int32_t i = 0; i < ist__dtype_count(); i++) {
    const char *name = ist__dtype_at(i)->name;
    if ((dtypes >> i & 1) == 0) continue;
    if (column + 1 + (int)strlen(name) > 79) {
      fprintf(file, "\n%15s", "");
      column = 15;
    }
    column += fprintf(file, " %s", name);
  }
}

static void say_abilities(FILE *file, const ist_capability *c) {
  fputs(c->can == 0 ? "      can       nothing" : "      can      ", file);
  for (int i = 0; i < ABILITY_COUNT; i++) {
    if ((c->can & abilities[i].can) != 0) {
      fprintf(file, " %s", abilities[i].name);
    }
  }
  fputc('\n', file);
  for (int i = 0; i < ABILITY_COUNT; i++) {
    if ((c->can & abilities[i].can) != 0) continue;
    fprintf(file, "      cannot    %s: %s\n", abilities[i].name,
            abilities[i].lost);
  }
  if ((c->can & IST_CAN_ADOPT) == 0) return;
  if (c->alignment > 1) {
    fprintf(file, "      views     at multiples of %" PRIu64 " bytes",
            c->alignment);
  } else {
    fputs("      views     at any address", file);
  }
  fputs("; layouts row_major", file);
  for (int i = 0; i < LAYOUT_COUNT; i++) {
    if ((c->layouts & layouts[i].layout) != 0) {
      fprintf(file, " %s", layouts[i].name);
    }
  }
  fputc('\n', file);
}

static void say_memory_text(ist__cmd *cmd, const ist_memory_info *memory,
                            bool is_default, const ist__trial *t) {
  FILE *file = cmd->report;
  fputs("    memory ", file);
  ist__print_safe(file, memory->kind);
  fputs(is_default ? " (default)\n" : "\n", file);
  say_abilities(file, &memory->capability);
  fputs("      dtypes   ", file);
  say_dtypes(file, memory->capability.dtypes);
  fputs("\n      tried     ", file);
  if (t->done) {
    fprintf(file, "%d bytes in (%s) and out (%s): %s%s\n", IST__TRIAL_BYTES,
            ist_route_name(t->in.route), ist_route_name(t->out.route),
            t->equal ? "equal" : "WRONG",
            t->same_address ? ", at the same address" : "");
  } else {
    ist__print_safe(file, t->err.message);
    fputc('\n', file);
  }
}

// ------------------------------------------------------------------ JSON --

static void say_dtypes_json(ist__json *json, uint64_t dtypes) {
  ist__json_open(json, "dtypes", '[');
  for (int32_t i = 0; i < ist__dtype_count(); i++) {
    if ((dtypes >> i & 1) == 0) continue;
    ist__json_string(json, NULL, ist__dtype_at(i)->name);
  }
  ist__json_close(json, ']');
}

// The object is left open.
static void say_memory_json(ist__json *json, const ist_memory_info *memory,
                            bool is_default, const ist__trial *t) {
  const ist_capability *c = &memory->capability;
  ist__json_open(json, NULL, '{');
  ist__json_string(json, "kind", memory->kind);
  ist__json_bool(json, "default", is_default);
  for (int i = 0; i < ABILITY_COUNT; i++) {
    ist__json_bool(json, abilities[i].name, (c->can & abilities[i].can) != 0);
  }
  ist__json_uint(json, "alignment", c->alignment);
  ist__json_open(json, "layouts", '[');
  ist__json_string(json, NULL, "row_major");
  for (int i = 0; i < LAYOUT_COUNT; i++) {
    if ((c->layouts & layouts[i].layout) != 0) {
      ist__json_string(json, NULL, layouts[i].name);
    }
  }
  ist__json_close(json, ']');
  say_dtypes_json(json, c->dtypes);
  ist__json_open(json, "tried", '{');
  ist__json_int(json, "bytes", IST__TRIAL_BYTES);
  if (t->done) {
    ist__json_string(json, "in", ist_route_name(t->in.route));
    ist__json_string(json, "out", ist_route_name(t->out.route));
    ist__json_bool(json, "same_address", t->same_address);
    ist__json_bool(json, "equal", t->equal);
  } else {
    ist__json_error(json, "error", &t->err);
  }
  ist__json_close(json, '}');
}

// ------------------------------------------------------- walking a backend --

// A memory that was said in full, to say less of later ones that are like it.
typedef struct kept {
  size_t device;
  ist_memory_info memory;
  ist__trial trial;
} kept;

typedef struct walk {
  ist__cmd *cmd;
  ist__json *json;                // NULL: text
  const ist_pjrt_report *report;  // of the first device, or NULL
  const ist_backend_info *backend;
  kept said[KEPT_COUNT];
  size_t said_count;
  bool good;
  ist_error err;  // the first thing that went wrong
} walk;

static void note(walk *w, const ist_error *err) {
  if (w->good) w->err = *err;
  w->good = false;
}

static bool is_like(const kept *a, const kept *b) {
  const ist_capability *x = &a->memory.capability, *y = &b->memory.capability;
  return x->can == y->can && x->layouts == y->layouts &&
         x->alignment == y->alignment && x->dtypes == y->dtypes &&
         a->trial.equal && b->trial.equal &&
         a->trial.in.route == b->trial.in.route &&
         a->trial.out.route == b->trial.out.route &&
         a->trial.same_address == b->trial.same_address;
}

static void walk_memory_text(walk *w, const kept *now, bool is_default) {
  FILE *file = w->cmd->report;
  for (size_t i = 0; i < w->said_count; i++) {
    if (!is_like(&w->said[i], now)) continue;
    fputs("    memory ", file);
    ist__print_safe(file, now->memory.kind);
    fprintf(file, "%s: like memory ", is_default ? " (default)" : "");
    ist__print_safe(file, w->said[i].memory.kind);
    fprintf(file, " of device %zu\n", w->said[i].device);
    return;
  }
  say_memory_text(w->cmd, &now->memory, is_default, &now->trial);
  if (w->said_count < KEPT_COUNT) w->said[w->said_count++] = *now;
}

static void walk_memory(walk *w, const ist_device *device,
                        const ist_device_info *info, size_t index) {
  kept now = {.memory = {.struct_size = sizeof now.memory}};
  now.memory.capability.struct_size = sizeof now.memory.capability;
  ist_error err = {0};
  if (ist_device_memory(device, index, &now.memory, &err) != IST_OK) {
    note(w, &err);
    return;
  }
  if (!ist__cmd_try(w->cmd, device, &now.memory, &now.trial, &err)) {
    note(w, &err);
  }
  now.device = info->index;
  bool is_default = index == info->default_memory;
  if (w->json != NULL) {
    say_memory_json(w->json, &now.memory, is_default, &now.trial);
    if (w->report != NULL && info->index == 0 &&
        ist__capability_differs(w->report, index, info->default_memory)) {
      ist__json_capabilities(w->json, w->report, index);
    }
    ist__json_close(w->json, '}');
  } else {
    walk_memory_text(w, &now, is_default);
  }
}

static void say_device_json(ist__json *json, const ist_device_info *info,
                            const char *code) {
  ist__json_open(json, NULL, '{');
  ist__json_uint(json, "index", info->index);
  ist__json_string(json, "name", info->name);
  ist__json_string(json, "kind", info->kind);
  ist__json_int(json, "id", info->id);
  ist__json_string(json, "dlpack_device", code);
  ist__json_int(json, "dlpack_device_id", info->dl_device.device_id);
  ist__json_open(json, "memories", '[');
}

static void say_device_text(FILE *file, const ist_device_info *info,
                            const char *code) {
  fprintf(file, "  device %zu: ", info->index);
  ist__print_safe(file, info->name);
  fputs(", kind ", file);
  ist__print_safe(file, info->kind);
  if (code != NULL) {
    fprintf(file, ", DLPack %s:%d\n", code, (int)info->dl_device.device_id);
  } else {
    fputs(", no DLPack code\n", file);
  }
}

static void walk_device(walk *w, const ist_device *device) {
  ist_device_info info = {.struct_size = sizeof info};
  ist_error err = {0};
  if (ist_device_describe(device, &info, &err) != IST_OK) {
    note(w, &err);
    return;
  }
  const char *code = ist_device_code_name((int32_t)info.dl_device.device_type);
  if (w->json != NULL) {
    say_device_json(w->json, &info, code);
  } else {
    say_device_text(w->cmd->report, &info, code);
  }
  for (size_t i = 0; i < info.memory_count; i++) {
    walk_memory(w, device, &info, i);
  }
  if (w->json != NULL) ist__json_close(w->json, ']');
  ist__print_memory_use(w->cmd->report, w->json, device);
  if (w->json != NULL) ist__json_close(w->json, '}');
}

static void say_backend_head(walk *w, const char *place) {
  const ist_backend_info *info = w->backend;
  if (w->json != NULL) {
    ist__json_open(w->json, NULL, '{');
    ist__json_string(w->json, "place", place);
    ist__json_string(w->json, "name", info->name);
    ist__json_string(w->json, "platform", info->platform);
    ist__json_string(w->json, "version", info->version);
    ist__json_bool(w->json, "runs_programs", info->runs_programs);
    ist__json_open(w->json, "devices", '[');
    return;
  }
  FILE *file = w->cmd->report;
  fputs(ist__style_bold(w->cmd), file);
  ist__print_safe(file, place);
  fprintf(file, "%s\n  backend ", ist__style_end(w->cmd));
  ist__print_safe(file, info->name);
  fputs(", platform ", file);
  ist__print_safe(file, info->platform);
  if (info->version[0] != '\0') {
    fputs(", version ", file);
    ist__print_safe(file, info->version);
  }
  fprintf(file, "\n  %s\n",
          info->runs_programs ? "runs programs"
                              : "runs no programs: isthmus run is refused");
  if (info->device_count == 0) fputs("  no devices\n", file);
}

static void say_report(walk *w, const ist_device *device) {
  ist_device_info info = {.struct_size = sizeof info};
  if (w->report == NULL || ist_device_describe(device, &info, NULL) != IST_OK) {
    return;
  }
  if (w->json != NULL) {
    ist__json_plugin(w->json, w->report, info.default_memory);
  } else {
    ist__print_capabilities(w->cmd, w->report, device);
  }
}

bool ist__cmd_say_backend(ist__cmd *cmd, const ist__telling *telling,
                          ist_error *err) {
  ist_backend_info info = {.struct_size = sizeof info};
  if (ist_backend_describe(telling->backend, &info, err) != IST_OK) {
    return false;
  }
  walk w = {.cmd = cmd,
            .json = telling->json,
            .report = telling->report,
            .backend = &info,
            .good = true};
  say_backend_head(&w, telling->place);
  for (size_t i = 0; i < info.device_count; i++) {
    const ist_device *device = ist_backend_device(telling->backend, i);
    if (device != NULL) walk_device(&w, device);
  }
  if (w.json != NULL) ist__json_close(w.json, ']');
  say_report(&w, ist_backend_device(telling->backend, 0));
  if (w.json != NULL) ist__json_close(w.json, '}');
  if (!w.good) *err = w.err;
  return w.good;
}
