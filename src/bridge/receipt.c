// SPDX-License-Identifier: Apache-2.0
// receipt.c: receipts as words and as JSON.

#include <inttypes.h>
#include <string.h>

#include "base/structs.h"
#include "base/text.h"
#include "bridge/route.h"
#include "tensor/layout.h"

void ist__decision_receipt(const ist__decision *decision, const char *source,
                           const char *target, ist_receipt *out) {
  if (out == NULL) return;
  ist_receipt receipt = {.struct_size = sizeof receipt,
                         .route = decision->route,
                         .code = decision->code,
                         .bytes_moved = decision->bytes_moved,
                         .hops = decision->hops,
                         .reason_count = decision->reason_count,
                         .read_only = decision->read_only};
  memcpy(receipt.reasons, decision->reasons,
         decision->reason_count * sizeof(ist_reason));
  ist__text from = ist__text_make(receipt.source, sizeof receipt.source);
  ist__text to = ist__text_make(receipt.target, sizeof receipt.target);
  if (source != NULL) ist__text_add(&from, "%s", source);
  if (target != NULL) ist__text_add(&to, "%s", target);
  ist__struct_write(out, &receipt, sizeof receipt);
}

const char *ist_reason_name(int32_t id) {
  switch (id) {
#define IST_REASON(name, number, id_text, text) \
  case number:                                  \
    return id_text;
#include "bridge/reason.def"
#undef IST_REASON
    default:
      return NULL;
  }
}

static const char *sentence(int32_t id) {
  switch (id) {
#define IST_REASON(name, number, id_text, text) \
  case number:                                  \
    return text;
#include "bridge/reason.def"
#undef IST_REASON
    default:
      return "a reason that this version does not know";
  }
}

const char *ist_route_name(ist_route route) {
  switch (route) {
    case IST_ROUTE_REFUSE:
      return "refuse";
    case IST_ROUTE_ALIAS:
      return "alias";
    case IST_ROUTE_COPY:
      return "copy";
    case IST_ROUTE_STAGE:
      return "stage";
  }
  return NULL;
}

static void add_order(ist__text *text, int64_t code) {
  int32_t order[IST_MAX_NDIM];
  int32_t ndim = ist__layout_order_read(code, order);
  for (int32_t i = 0; i < ndim; i++) {
    ist__text_add(text, "%s%" PRId32, i == 0 ? " to [" : ",", order[i]);
  }
  if (ndim > 0) ist__text_add(text, "]");
}

size_t ist_reason_text(const ist_reason *reason, char *buffer, size_t size) {
  ist__text text = ist__text_make(buffer, size);
  for (const char *c = sentence(reason->id); *c != '\0'; c++) {
    if (c[0] == '%' && c[1] == 'a') {
      ist__text_add(&text, "%" PRId64, reason->actual);
      c++;
    } else if (c[0] == '%' && c[1] == 'n') {
      ist__text_add(&text, "%" PRId64, reason->needed);
      c++;
    } else if (c[0] == '%' && c[1] == 'o') {
      add_order(&text, reason->actual);
      c++;
    } else {
      ist__text_add(&text, "%c", *c);
    }
  }
  return text.length;
}

size_t ist_receipt_json(const ist_receipt *receipt, char *buffer, size_t size) {
  ist__text json = ist__text_make(buffer, size);
  ist__text_add(&json,
                "{\"route\": \"%s\", \"code\": %d, \"bytes_moved\": %" PRIu64
                ", \"hops\": %" PRIu32
                ", \"read_only\": %s, "
                "\"source\": ",
                ist_route_name(receipt->route), (int)receipt->code,
                receipt->bytes_moved, receipt->hops,
                receipt->read_only ? "true" : "false");
  ist__text_add_json(&json, receipt->source);
  ist__text_add(&json, ", \"target\": ");
  ist__text_add_json(&json, receipt->target);
  ist__text_add(&json, ", \"reasons\": [");
  for (uint32_t i = 0; i < receipt->reason_count && i < IST_MAX_REASONS; i++) {
    char text[256];
    ist_reason_text(&receipt->reasons[i], text, sizeof text);
    const char *name = ist_reason_name(receipt->reasons[i].id);
    ist__text_add(&json, "%s[", i == 0 ? "" : ", ");
    ist__text_add_json(&json, name != NULL ? name : "unknown");
    ist__text_add(&json, ", ");
    ist__text_add_json(&json, text);
    ist__text_add(&json, "]");
  }
  ist__text_add(&json, "]}");
  return json.length;
}
