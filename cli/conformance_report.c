// SPDX-License-Identifier: Apache-2.0
// conformance_report.c: the results of the checks, as text, as JSON and as
// JUnit XML.

#include <string.h>

#include "base/text.h"
#include "conformance_check.h"

static const char *const verdicts[] = {"skip", "pass", "fail"};

size_t ist__conformance_count(const ist__result *results,
                              ist__outcome verdict) {
  size_t count = 0;
  for (int i = 0; i < IST__RESULT_COUNT; i++) {
    if (results[i].verdict == verdict) count++;
  }
  return count;
}

void ist__conformance_text(ist__cmd *cmd, const char *path,
                           const ist__result *results) {
  FILE *file = cmd->report;
  const char *group = "";
  fputs(ist__style_bold(cmd), file);
  ist__print_safe(file, path);
  fprintf(file, "%s\n", ist__style_end(cmd));
  for (int i = 0; i < IST__RESULT_COUNT; i++) {
    ist__check_row row = ist__check_row_at(i);
    if (strcmp(group, row.group) != 0) fprintf(file, "  %s\n", row.group);
    group = row.group;
    bool fails = results[i].verdict == IST__OUTCOME_FAIL;
    fprintf(file, "    %s%s%s  %-24s %s\n", fails ? ist__style_bold(cmd) : "",
            verdicts[results[i].verdict], fails ? ist__style_end(cmd) : "",
            row.name, row.slot);
    if (results[i].verdict == IST__OUTCOME_PASS) continue;
    fprintf(file, "      %s  %s\n", row.run != NULL ? "promise" : "lost   ",
            row.promise);
    if (results[i].reason[0] == '\0') continue;
    fputs("      why      ", file);
    ist__print_safe(file, results[i].reason);
    fputc('\n', file);
  }
  fprintf(file, "  %zu passed, %zu failed, %zu skipped\n",
          ist__conformance_count(results, IST__OUTCOME_PASS),
          ist__conformance_count(results, IST__OUTCOME_FAIL),
          ist__conformance_count(results, IST__OUTCOME_SKIP));
}

void ist__conformance_json(ist__cmd *cmd, const char *path,
                           const ist__result *results) {
  ist__json json = {.file = cmd->report};
  ist__json_open(&json, NULL, '{');
  ist__json_string(&json, "plugin", path);
  static const char *const names[] = {"skipped", "passed", "failed"};
  for (int v = 0; v < 3; v++) {
    ist__json_uint(&json, names[v],
                   ist__conformance_count(results, (ist__outcome)v));
  }
  ist__json_open(&json, "checks", '[');
  for (int i = 0; i < IST__RESULT_COUNT; i++) {
    ist__check_row row = ist__check_row_at(i);
    ist__json_open(&json, NULL, '{');
    ist__json_string(&json, "name", row.name);
    ist__json_string(&json, "group", row.group);
    ist__json_string(&json, "slot", row.slot);
    ist__json_string(&json, row.run != NULL ? "promise" : "lost_without",
                     row.promise);
    ist__json_string(&json, "verdict", verdicts[results[i].verdict]);
    ist__json_string(&json, "reason", results[i].reason);
    ist__json_close(&json, '}');
  }
  ist__json_close(&json, ']');
  ist__json_close(&json, '}');
  ist__json_end(&json);
}

// Text of an attribute: characters that XML 1.0 does not have, and bytes that
// are no UTF-8, become '?'.
static void put_xml(FILE *file, const char *text) {
  while (*text != '\0') {
    size_t length = ist__text_utf8_length(text, strlen(text));
    unsigned char c = (unsigned char)*text;
    if (length > 1) {
      // U+FFFE and U+FFFF are no characters of XML.
      bool none = length == 3 && memcmp(text, "\xef\xbf", 2) == 0 &&
                  (unsigned char)text[2] >= 0xbe;
      none ? fputc('?', file) : fprintf(file, "%.*s", (int)length, text);
    } else if (length == 0 || c < 0x20) {
      fputc('?', file);
    } else if (strchr("<>&\"'", c) != NULL) {
      fprintf(file, "&#%d;", c);
    } else {
      fputc(c, file);
    }
    text += length > 0 ? length : 1;
  }
}

static void put_attribute(FILE *file, const char *name, const char *value) {
  fprintf(file, " %s=\"", name);
  put_xml(file, value);
  fputc('"', file);
}

static void put_case(FILE *file, const ist__check_row *row,
                     const ist__result *result) {
  fputs("    <testcase", file);
  put_attribute(file, "classname", row->group);
  put_attribute(file, "name", row->name);
  if (result->verdict == IST__OUTCOME_PASS) {
    fputs("/>\n", file);
    return;
  }
  bool fails = result->verdict == IST__OUTCOME_FAIL;
  fprintf(file, ">\n      <%s", fails ? "failure" : "skipped");
  put_attribute(file, "message", result->reason);
  fputs(">", file);
  put_xml(file, row->slot);
  fputs(": ", file);
  put_xml(file, row->promise);
  fprintf(file, "</%s>\n    </testcase>\n", fails ? "failure" : "skipped");
}

void ist__conformance_junit(ist__cmd *cmd, const char *path,
                            const ist__result *results) {
  FILE *file = cmd->report;
  fputs(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
      "  <testsuite",
      file);
  put_attribute(file, "name", path);
  fprintf(file,
          " tests=\"%d\" failures=\"%zu\" errors=\"0\" skipped=\"%zu\">\n",
          (int)IST__RESULT_COUNT,
          ist__conformance_count(results, IST__OUTCOME_FAIL),
          ist__conformance_count(results, IST__OUTCOME_SKIP));
  for (int i = 0; i < IST__RESULT_COUNT; i++) {
    ist__check_row row = ist__check_row_at(i);
    put_case(file, &row, &results[i]);
  }
  fputs("  </testsuite>\n</testsuites>\n", file);
}
