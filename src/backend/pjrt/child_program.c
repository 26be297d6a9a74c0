// SPDX-License-Identifier: Apache-2.0
// child_program.c: where the program isthmus-probe is: where the context's
// option says, or at its place relative to the file that this code is in.

#define _GNU_SOURCE  // dladdr
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/pjrt/child.h"
#include "base/text.h"

// Seen from the folder of a library or a program: in a build and a wheel's
// folder of programs; a wheel's extension; an installation (its folders are
// known to the build).
static const char *const places[] = {
    "isthmus-probe",
    "bin/isthmus-probe",
#ifdef IST_PROBE_FROM_LIB
    IST_PROBE_FROM_LIB "/isthmus-probe",
    IST_PROBE_FROM_BIN "/isthmus-probe",
#endif
};

static bool is_program(const char *path) {
  struct stat facts;
  return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) &&
         access(path, X_OK) == 0;
}

// The file that this code is in. For an executable dladdr tells argv[0], which
// may be a bare name.
static bool own_file(char out[IST__PATH_SIZE]) {
  static const char here = 0;
  Dl_info info;
  if (dladdr(&here, &info) != 0 && info.dli_fname != NULL &&
      strchr(info.dli_fname, '/') != NULL &&
      realpath(info.dli_fname, out) != NULL) {
    return true;
  }
  return realpath("/proc/self/exe", out) != NULL;
}

ist_code ist__child_program(const char *wanted, const char *path,
                            char out[IST__PATH_SIZE], ist_error *err) {
  if (wanted != NULL) {
    ist__text text = ist__text_make(out, IST__PATH_SIZE);
    ist__text_add(&text, "%s", wanted);
    if (is_program(out)) return IST_OK;
    return ist_error_set(err, IST_ERR_PROBE_MISSING,
                         "plugin %s cannot be opened: the program that tries "
                         "unknown plugins, isthmus-probe, is not at %s; needs "
                         "its path in the context's option probe_program",
                         path, wanted);
  }
  char own[IST__PATH_SIZE];
  char *slash = own_file(own) ? strrchr(own, '/') : NULL;
  if (slash != NULL) *slash = '\0';
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    if (slash == NULL) break;
    ist__text text = ist__text_make(out, IST__PATH_SIZE);
    ist__text_add(&text, "%s/%s", own, places[i]);
    if (text.length < IST__PATH_SIZE && is_program(out)) return IST_OK;
  }
  return ist_error_set(err, IST_ERR_PROBE_MISSING,
                       "plugin %s cannot be opened: the program that tries "
                       "unknown plugins, isthmus-probe, is not beside %s; "
                       "needs its path in the context's option probe_program",
                       path, slash != NULL ? own : "isthmus");
}
