// SPDX-License-Identifier: Apache-2.0
// command_capability.c: what a probe found of a PJRT plugin, as text and as
// JSON.

#include <inttypes.h>
#include <string.h>

#include "command.h"

// ------------------------------------------------------------------ JSON --

static bool capability_at(const ist_pjrt_report *report, size_t memory,
                          size_t index, ist_pjrt_capability *out) {
  *out = (ist_pjrt_capability){.struct_size = sizeof *out};
  return ist_pjrt_report_capability(report, memory, index, out, NULL) == IST_OK;
}

static void say_value_json(ist__json *json, const ist_option *option) {
  switch (option->kind) {
    case IST_OPTION_STRING:
      ist__json_string(json, option->name, option->string);
      return;
    case IST_OPTION_INT64:
      ist__json_int(json, option->name, option->int64);
      return;
    case IST_OPTION_INT64_LIST:
      ist__json_open(json, option->name, '[');
      for (size_t i = 0; i < option->list_size; i++) {
        ist__json_int(json, NULL, option->list[i]);
      }
      ist__json_close(json, ']');
      return;
    case IST_OPTION_FLOAT:
      ist__json_real(json, option->name, option->number);
      return;
    case IST_OPTION_BOOL:
      ist__json_bool(json, option->name, option->boolean);
      return;
  }
}

static void say_plugin_json(ist__json *json, const ist_pjrt_report *report,
                            const ist_pjrt_info *info) {
  ist__json_open(json, "api", '{');
  ist__json_int(json, "major", info->api_major);
  ist__json_int(json, "minor", info->api_minor);
  ist__json_uint(json, "slots", info->slot_count);
  ist__json_close(json, '}');
  ist__json_string(json, "platform_version", info->platform_version);
  ist__json_open(json, "extensions", '[');
  for (size_t i = 0; i < info->extension_count; i++) {
    int32_t type = 0;
    const char *name = NULL;
    if (ist_pjrt_report_extension(report, i, &type, &name, NULL) != IST_OK) {
      break;
    }
    ist__json_open(json, NULL, '{');
    ist__json_int(json, "type", type);
    ist__json_string(json, "name", name);
    ist__json_close(json, '}');
  }
  ist__json_close(json, ']');
  ist__json_open(json, "attributes", '{');
  for (size_t i = 0; i < info->attribute_count; i++) {
    ist_option option;
    if (ist_pjrt_report_attribute(report, i, &option, NULL) != IST_OK) break;
    say_value_json(json, &option);
  }
  ist__json_close(json, '}');
}

void ist__json_capabilities(ist__json *json, const ist_pjrt_report *report,
                            size_t memory) {
  ist_pjrt_capability now;
  ist__json_open(json, "capabilities", '[');
  for (size_t i = 0; capability_at(report, memory, i, &now); i++) {
    ist__json_open(json, NULL, '{');
    ist__json_string(json, "name", now.name);
    ist__json_string(json, "slot", now.slot);
    ist__json_bool(json, "present", now.present);
    ist__json_bool(json, "works", now.works);
    ist__json_uint(json, "value", now.value);
    ist__json_string(json, "reason", now.works ? NULL : now.reason);
    ist__json_string(json, "lost_without", now.lost_without);
    ist__json_close(json, '}');
  }
  ist__json_close(json, ']');
}

// ------------------------------------------------------------------ text --

// Prints words parted by blanks, and begins a new line where one would not fit.
static void say_word(FILE *file, int *column, const char *word) {
  int length = (int)strlen(word);
  if (*column > 16 && *column + 1 + length > 79) {
    fprintf(file, "\n%15s", "");
    *column = 15;
  }
  fputc(' ', file);
  ist__print_safe(file, word);
  *column += 1 + length;
}

static void say_value_text(FILE *file, const ist_option *option) {
  fputs("      ", file);
  ist__print_safe(file, option->name);
  fputs(" =", file);
  switch (option->kind) {
    case IST_OPTION_STRING:
      fputc(' ', file);
      ist__print_safe(file, option->string);
      break;
    case IST_OPTION_INT64:
      fprintf(file, " %" PRId64, option->int64);
      break;
    case IST_OPTION_INT64_LIST:
      for (size_t i = 0; i < option->list_size; i++) {
        fprintf(file, "%s%" PRId64, i == 0 ? " " : ", ", option->list[i]);
      }
      break;
    case IST_OPTION_FLOAT:
      fprintf(file, " %g", option->number);
      break;
    case IST_OPTION_BOOL:
      fputs(option->boolean ? " true" : " false", file);
      break;
  }
  fputc('\n', file);
}

static void say_plugin_text(FILE *file, const ist_pjrt_report *report,
                            const ist_pjrt_info *info) {
  int column = 16;
  fprintf(file, "  API %d.%d, %zu slots that isthmus knows\n",
          (int)info->api_major, (int)info->api_minor, info->slot_count);
  fputs("    extensions ", file);
  if (info->extension_count == 0) fputs(" none", file);
  for (size_t i = 0; i < info->extension_count; i++) {
    int32_t type = 0;
    const char *name = NULL;
    char room[80];
    if (ist_pjrt_report_extension(report, i, &type, &name, NULL) != IST_OK) {
      break;
    }
    (void)snprintf(room, sizeof room, "%s(%d)", name != NULL ? name : "unknown",
                   (int)type);
    say_word(file, &column, room);
  }
  fputs(info->attribute_count == 0 ? "\n    attributes  none\n"
                                   : "\n    attributes\n",
        file);
  for (size_t i = 0; i < info->attribute_count; i++) {
    ist_option option;
    if (ist_pjrt_report_attribute(report, i, &option, NULL) != IST_OK) break;
    say_value_text(file, &option);
  }
}

// The names of slots without what they all begin with.
static void say_slots(FILE *file, const char *names) {
  static const char common[] = "PJRT_";
  for (const char *at = names; *at != '\0'; at++) {
    if (strncmp(at, common, sizeof common - 1) == 0) at += sizeof common - 1;
    fputc(*at, file);
  }
  fputc('\n', file);
}

static void say_row(FILE *file, const ist_pjrt_capability *now) {
  char value[24] = "";
  if (now->value != 0) {
    (void)snprintf(value, sizeof value, "%" PRIu64, now->value);
  }
  fprintf(file, "    %-18s %-7s %-5s %5s  ", now->name,
          now->present ? "yes" : "no", now->works ? "yes" : "no", value);
  say_slots(file, now->slot);
  if (now->works) return;
  fputs("      why   ", file);
  ist__print_safe(file, now->reason);
  fprintf(file, "\n      lost  %s\n", now->lost_without);
}

bool ist__capability_differs(const ist_pjrt_report *report, size_t memory,
                             size_t other) {
  ist_pjrt_capability a, b;
  for (size_t i = 0; capability_at(report, memory, i, &a) &&
                     capability_at(report, other, i, &b);
       i++) {
    if (a.works != b.works || a.value != b.value) return true;
  }
  return false;
}

static void say_table(FILE *file, const ist_pjrt_report *report, size_t memory,
                      size_t other) {
  ist_pjrt_capability now, base;
  fprintf(file, "    %-18s %-7s %-5s %5s  %s\n", "", "present", "works",
          "value", "slot");
  for (size_t i = 0; capability_at(report, memory, i, &now); i++) {
    if (other != memory && capability_at(report, other, i, &base) &&
        base.works == now.works && base.value == now.value) {
      continue;
    }
    say_row(file, &now);
  }
}

void ist__print_capabilities(ist__cmd *cmd, const ist_pjrt_report *report,
                             const ist_device *device) {
  FILE *file = cmd->report;
  ist_device_info info = {.struct_size = sizeof info};
  ist_pjrt_info plugin = {.struct_size = sizeof plugin};
  if (ist_device_describe(device, &info, NULL) != IST_OK ||
      ist_pjrt_report_info(report, &plugin, NULL) != IST_OK) {
    return;
  }
  say_plugin_text(file, report, &plugin);
  size_t first = info.default_memory;
  fprintf(file, "  %scapabilities%s, each tried on a few bytes\n",
          ist__style_bold(cmd), ist__style_end(cmd));
  say_table(file, report, first, first);
  for (size_t m = 0; m < info.memory_count; m++) {
    ist_memory_info memory = {.struct_size = sizeof memory};
    if (m == first || !ist__capability_differs(report, m, first) ||
        ist_device_memory(device, m, &memory, NULL) != IST_OK) {
      continue;
    }
    fputs("  memory ", file);
    ist__print_safe(file, memory.kind);
    fputs(" differs\n", file);
    say_table(file, report, m, first);
  }
}

void ist__json_plugin(ist__json *json, const ist_pjrt_report *report,
                      size_t default_memory) {
  ist_pjrt_info info = {.struct_size = sizeof info};
  if (ist_pjrt_report_info(report, &info, NULL) != IST_OK) return;
  say_plugin_json(json, report, &info);
  ist__json_capabilities(json, report, default_memory);
}
