// SPDX-License-Identifier: Apache-2.0
// child_speech.c: cuts what a plugin says into lines, and tells last words from
// the traces that follow them.

#include "backend/pjrt/child_speech.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

static bool begins(const char *line, const char *word) {
  return strncmp(line, word, strlen(word)) == 0;
}

// A line of a trace, of an emulator that tells the signal once more, or of
// nothing but signs: it explains nothing.
static bool is_noise(const char *line) {
  static const char *const traces[] = {
      "***", "@ ", "#", "PC: ", "==", "0x", "qemu: uncaught"};
  bool word = false;
  for (const char *c = line; *c != '\0'; c++) {
    word = word || isalnum((unsigned char)*c);
  }
  for (size_t i = 0; i < sizeof traces / sizeof traces[0]; i++) {
    if (begins(line, traces[i])) return true;
  }
  return !word;
}

static void take_last(ist__speech *speech, const char *line) {
  char text[sizeof speech->last];
  ist__text_first_line(line, strlen(line), text, sizeof text);
  if (is_noise(text)) return;
  for (char *c = text; *c != '\0'; c++) {
    if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
  }
  memcpy(speech->last, text, sizeof text);
}

static void log_kept(ist__speech *speech, ist_log_level level) {
  char *at = speech->kept, *end = speech->kept + speech->kept_used;
  while (at < end) {
    ist__log(speech->env, level, "%s: said: %s", speech->name, at);
    at += strlen(at) + 1;
  }
  speech->kept_used = 0;
}

// The lines are kept with a NUL after each.
static void end_line(ist__speech *speech) {
  char *line = speech->line;
  size_t size = speech->line_used + 1;
  line[speech->line_used] = '\0';
  speech->line_used = 0;
  if (size == 1) return;
  take_last(speech, line);
  if (size > sizeof speech->kept - speech->kept_used) {
    log_kept(speech, IST_LOG_INFO);
  }
  memcpy(speech->kept + speech->kept_used, line, size);
  speech->kept_used += size;
}

void ist__speech_add(ist__speech *speech, const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    bool ends = bytes[i] == '\n' || bytes[i] == '\r' || bytes[i] == '\0';
    if (ends || speech->line_used == sizeof speech->line - 1) end_line(speech);
    if (!ends) speech->line[speech->line_used++] = bytes[i];
  }
}

void ist__speech_end(ist__speech *speech, ist_log_level level) {
  end_line(speech);
  log_kept(speech, level);
}
