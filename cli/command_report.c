// SPDX-License-Identifier: Apache-2.0
// command_report.c: how the command says things: one line for an error, some
// lines for a receipt, a line of progress on a terminal; and how it ends.

#define _POSIX_C_SOURCE 200809L  // fileno, isatty
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "command.h"

void ist__print_safe(FILE *file, const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
    if (*c < 0x20 || *c == 0x7F) {
      fprintf(file, "\\x%02x", (unsigned)*c);
    } else if (c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0) {
      fprintf(file, "\\x%02x", (unsigned)*++c);  // a C1 control, in UTF-8
    } else {
      fputc(*c, file);
    }
  }
}

static bool styled(const ist__cmd *cmd) {
  const char *off = getenv("NO_COLOR");
  const char *terminal = getenv("TERM");
  return !cmd->json && (off == NULL || off[0] == '\0') && terminal != NULL &&
         strcmp(terminal, "dumb") != 0 && isatty(fileno(cmd->report)) == 1;
}

const char *ist__style_bold(const ist__cmd *cmd) {
  return styled(cmd) ? "\033[1m" : "";
}

const char *ist__style_end(const ist__cmd *cmd) {
  return styled(cmd) ? "\033[0m" : "";
}

void ist__cmd_progress(ist__cmd *cmd, const char *format, ...) {
  if (isatty(STDERR_FILENO) != 1) return;
  if (cmd->progress) fputs("\r\033[K", stderr);
  cmd->progress = format != NULL;
  if (format == NULL) return;
  va_list args;
  va_start(args, format);
  (void)vsnprintf(cmd->doing, sizeof cmd->doing, format, args);
  va_end(args);
  cmd->percent = -1;
  ist__print_safe(stderr, cmd->doing);
  fflush(stderr);
}

// A copy that is over at once has no percent.
#define LONG_COPY (UINT64_C(16) << 20)

static bool show_percent(void *self, uint64_t done, uint64_t total) {
  ist__cmd *cmd = self;
  int percent = (int)(done / (total / 100 + 1));
  if (!cmd->progress || total < LONG_COPY || percent == cmd->percent) {
    return true;
  }
  cmd->percent = percent;
  fputs("\r\033[K", stderr);
  ist__print_safe(stderr, cmd->doing);
  fprintf(stderr, ": %d %%", percent);
  fflush(stderr);
  return true;
}

void ist__cmd_watch(ist__cmd *cmd, ist_options *options) {
  if (!cmd->progress) return;
  options->progress = show_percent;
  options->progress_self = cmd;
}

// "isthmus: " or "isthmus: move: ".
static void print_prefix(const ist__cmd *cmd) {
  fputs("isthmus: ", stderr);
  if (cmd->verb != NULL) fprintf(stderr, "%s: ", cmd->verb->name);
}

int ist__cmd_fail(ist__cmd *cmd, const ist_error *err) {
  ist__cmd_progress(cmd, NULL);
  if (cmd->json) {
    ist__json json = {.file = cmd->report};
    ist__json_open(&json, NULL, '{');
    ist__json_error(&json, "error", err);
    ist__json_close(&json, '}');
    ist__json_end(&json);
    if (cmd->report == stderr) return IST__EXIT_FAILED;
  }
  const char *name = ist_code_name(err->code);
  print_prefix(cmd);
  ist__print_safe(stderr, err->message);
  fprintf(stderr, " [%s %d]\n", name != NULL ? name : "IST_ERR", err->code);
  return IST__EXIT_FAILED;
}

int ist__cmd_usage(ist__cmd *cmd, const char *format, ...) {
  char message[1024];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(message, sizeof message, format, args);
  va_end(args);
  print_prefix(cmd);
  ist__print_safe(stderr, message);
  fprintf(stderr, "; see isthmus %s%s--help\n",
          cmd->verb == NULL ? "" : cmd->verb->name,
          cmd->verb == NULL ? "" : " ");
  return IST__EXIT_USAGE;
}

// Writes out what stdio holds of stdout. A reader that has gone away is not
// told about it (EPIPE), but the exit code says that not all was written.
static int flush_stdout(ist__cmd *cmd) {
  errno = 0;
  bool failed = ferror(stdout) != 0;
  if (fflush(stdout) != 0) failed = true;
  if (!failed) return IST__EXIT_OK;
  if (errno == EPIPE) return IST__EXIT_FAILED;
  ist_error err = {0};
  (void)ist_error_set(&err, errno == ENOSPC ? IST_ERR_DISK_FULL : IST_ERR_IO,
                      "standard output could not be written: %s; needs a file "
                      "or pipe with room",
                      errno == 0 ? "an earlier write failed" : strerror(errno));
  cmd->json = false;  // stdout takes no more
  return ist__cmd_fail(cmd, &err);
}

int ist__cmd_finish(ist__cmd *cmd, int exit_code) {
  ist__cmd_progress(cmd, NULL);
  for (size_t i = 0; i < cmd->opened_count; i++) {
    ist_backend_release(cmd->opened[i].backend);
  }
  for (size_t i = 0; i < cmd->option_count; i++) {
    ist_deallocate(cmd->context, (void *)cmd->options[i].list);
    ist_deallocate(cmd->context, (void *)cmd->options[i].name);
  }
  ist_deallocate(cmd->context, cmd->options);
  ist_deallocate(cmd->context, cmd->opened);
  ist_deallocate(cmd->context, cmd->operands.at);
  ist_context_release(cmd->context);
  int written = flush_stdout(cmd);
  return exit_code != IST__EXIT_OK ? exit_code : written;
}

void ist__spec_text(DLDataType dtype, int32_t ndim, const int64_t *shape,
                    char *buffer, size_t size) {
  char name[64] = "?";
  (void)ist_dtype_name(dtype, name, sizeof name);
  ist__text text = ist__text_make(buffer, size);
  ist__text_add(&text, "%s[", name);
  for (int32_t i = 0; i < ndim; i++) {
    ist__text_add(&text, "%s%" PRId64, i == 0 ? "" : ",", shape[i]);
  }
  ist__text_add(&text, "]");
}

void ist__tensor_text(const ist_tensor *tensor, char *buffer, size_t size) {
  const DLTensor *view = ist_tensor_view(tensor);
  ist__spec_text(view->dtype, view->ndim, view->shape, buffer, size);
}

uint64_t ist__tensor_nbytes(const ist_tensor *tensor) {
  ist_tensor_info info = {.struct_size = sizeof info};
  (void)ist_tensor_describe(tensor, &info, NULL);
  return info.nbytes;
}

bool ist__tensor_is_mapped(const ist_tensor *tensor) {
  ist_tensor_info info = {.struct_size = sizeof info};
  (void)ist_tensor_describe(tensor, &info, NULL);
  return !info.copied;
}

void ist__print_read(ist__cmd *cmd, const char *place, bool mapped,
                     const char *what) {
  if (mapped) return;
  fprintf(cmd->report, "%sread%s  ", ist__style_bold(cmd), ist__style_end(cmd));
  ist__print_safe(cmd->report, place);
  fprintf(cmd->report,
          "\n  %s, copied: its bytes are swapped or not aligned in the file\n",
          what);
}

void ist__print_receipt(ist__cmd *cmd, const ist_receipt *receipt,
                        const char *source, const char *target,
                        const char *what, bool planned) {
  FILE *file = cmd->report;
  fprintf(file, "%s%s%s  ", ist__style_bold(cmd),
          ist_route_name(receipt->route), ist__style_end(cmd));
  ist__print_safe(file, source);
  fputs(" -> ", file);
  ist__print_safe(file, target);
  fprintf(file, "\n  %s, %s %" PRIu64 " bytes in %" PRIu32 " %s%s\n", what,
          planned ? "would move" : "moved", receipt->bytes_moved, receipt->hops,
          receipt->hops == 1 ? "copy" : "copies",
          receipt->read_only ? ", read-only" : "");
  for (uint32_t i = 0; i < receipt->reason_count; i++) {
    char text[256];
    (void)ist_reason_text(&receipt->reasons[i], text, sizeof text);
    fprintf(file, "  %s: %s\n", ist_reason_name(receipt->reasons[i].id), text);
  }
}
