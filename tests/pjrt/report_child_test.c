// SPDX-License-Identifier: Apache-2.0
// The trials of a report are made in a process of their own first: one that
// ends it costs its capability, with the reason, and is never made here.

#define _GNU_SOURCE
#include <dirent.h>
#include <isthmus/pjrt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/pjrt_support.h"
#include "support/temp_folder.h"

// A context of its own with a crashing plugin under rules, which counts how
// often isthmus-probe is started.
typedef struct host {
  counting_allocator counts;
  ist_context *context;
  ist_backend *backend;
  temp_folder folder;
  char plugin[1024], script[1100], note[1100];
  ist_error err;
} host;

static void write_script(const host *h) {
  char probe[1024];
  ssize_t length = readlink("/proc/self/exe", probe, sizeof probe - 20);
  assert_true(length > 0);
  probe[length] = '\0';
  strcpy(strrchr(probe, '/'), "/isthmus-probe");
  FILE *file = fopen(h->script, "w");
  assert_non_null(file);
  fprintf(file, "#!/bin/sh\nprintf x >>'%s'\nexec '%s' \"$@\"\n", h->note,
          probe);
  fclose(file);
  assert_int_equal(chmod(h->script, 0700), 0);
}

static void host_make(host *h, const char *crashes, const char *lies,
                      int32_t deadline_ms) {
  memset(h, 0, sizeof *h);
  plugin_path("lying");
  const char *build = getenv("ISTHMUS_BUILD");
  assert_non_null(build);
  temp_folder_make(&h->folder);
  snprintf(h->plugin, sizeof h->plugin, "%s/crashing_pjrt.so", build);
  snprintf(h->script, sizeof h->script, "%s/counted", h->folder.path);
  snprintf(h->note, sizeof h->note, "%s/note", h->folder.path);
  write_script(h);
  char rules[200];
  snprintf(rules, sizeof rules, "addressable=1 %s", lies);
  setenv("CRASHING_PJRT", crashes, 1);
  setenv("LYING_PJRT_RULES", rules, 1);
  counting_allocator_init(&h->counts);
  ist_allocator allocator = counting_allocator_hook(&h->counts);
  ist_context_options options = {.struct_size = sizeof options,
                                 .allocator = &allocator,
                                 .probe_program = h->script,
                                 .probe_deadline_ms = deadline_ms};
  assert_ok(ist_context_create(&options, &h->context, &h->err), h->err);
}

static void host_open_as(host *h, ist_backend_options options) {
  options.struct_size = sizeof options;
  options.path = h->plugin;
  assert_ok(
      ist_backend_open(h->context, "pjrt", &options, &h->backend, &h->err),
      h->err);
}

static void host_open(host *h, bool trusted) {
  host_open_as(h, (ist_backend_options){.trusted = trusted});
}

static ist_code host_report(host *h, size_t device, ist_pjrt_report **out) {
  memset(&h->err, 0, sizeof h->err);
  return ist_pjrt_report_create(ist_backend_device(h->backend, device), out,
                                &h->err);
}

static size_t starts(const host *h) {
  struct stat facts;
  return stat(h->note, &facts) == 0 ? (size_t)facts.st_size : 0;
}

static void host_end(host *h) {
  ist_backend_release(h->backend);
  ist_context_release(h->context);
  assert_int_equal(atomic_load(&h->counts.live), 0);
  unlink(h->script);
  unlink(h->note);
  temp_folder_remove(&h->folder);
  unsetenv("CRASHING_PJRT");
  unsetenv("LYING_PJRT_RULES");
}

static int count_descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  assert_non_null(folder);
  int count = 0;
  while (readdir(folder) != NULL) count++;
  closedir(folder);
  return count;
}

// What a crash costs: NULL, or why.
typedef struct loss {
  const char *name, *reason;
} loss;

static const char *reason_of(const loss *losses, const char *name) {
  for (; losses->name != NULL; losses++)
    if (strcmp(losses->name, name) == 0) return losses->reason;
  return NULL;
}

// Those are lost in each memory, with their reason, and all others are not.
static void assert_lost(const ist_pjrt_report *report, const loss *losses) {
  for (size_t m = 0; m < 2; m++) {
    for (size_t i = 0; i < ist_pjrt_report_count(report); i++) {
      ist_pjrt_capability now = {.struct_size = sizeof now};
      assert_int_equal(ist_pjrt_report_capability(report, m, i, &now, NULL),
                       IST_OK);
      const char *reason = reason_of(losses, now.name);
      if (reason == NULL && !now.works)
        fail_msg("%s is lost: %s", now.name, now.reason);
      if (reason == NULL) continue;
      assert_true(now.present && !now.works);
      if (strstr(now.reason, reason) == NULL)
        fail_msg("%s: \"%s\" does not say \"%s\"", now.name, now.reason,
                 reason);
    }
  }
}

static void costs(const char *crashes, const char *lies, const loss *losses) {
  host h;
  size_t count = 0;
  int before = count_descriptors();
  while (losses[count].name != NULL) count++;
  host_make(&h, crashes, lies, 0);
  host_open(&h, false);
  assert_int_equal(starts(&h), 1);
  ist_pjrt_report *report = NULL;
  for (int turn = 0; turn < 2; turn++) {
    assert_ok(host_report(&h, 0, &report), h.err);
    assert_lost(report, losses);
    ist_pjrt_report_release(report);
    // One for each that died, and one that lived; the verdict is held.
    assert_int_equal(starts(&h), 1 + count + 1);
  }
  host_end(&h);
  assert_int_equal(count_descriptors(), before);
}

static void honest_plugin__costs_nothing(void **state) {
  (void)state;
  costs("", "", (loss[]){{0}});
}

static void death_in_a_trial__costs_its_capability(void **state) {
  (void)state;
  static const struct {
    const char *crash, *lost;
  } cases[] = {
      {"abort PJRT_Buffer_CopyRawToHost", "copy_raw"},
      {"abort PJRT_Buffer_UnsafePointer", "unsafe_pointer"},
      {"abort PJRT_Buffer_IsOnCpu", "is_on_cpu"},
      {"abort PJRT_Buffer_Bitcast", "bitcast"},
      {"abort PJRT_Client_CreateErrorBuffer", "error_buffer"},
      {"abort PJRT_Buffer_CopyToMemory", "copy_to_memory"},
      {"abort PJRT_Buffer_CopyToDevice", "copy_to_device"},
      {"abort PJRT_Device_MemoryStats", "memory_stats"},
      {"abort PJRT_Executable_Serialize", "serialize"},
      {"abort PJRT_Executable_DeserializeAndLoad", "serialize"},
      {"abort PJRT_Buffer_UnpaddedDimensions", "dynamic_dimensions"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    costs(cases[i].crash, "",
          (loss[]){{cases[i].lost, "kills the process: SIGABRT"}, {0}});
  }
}

static void death_in_an_extension__costs_its_capability(void **state) {
  (void)state;
  static const struct {
    const char *lies, *lost;
  } cases[] = {
      {"die=RawBuffer_GetHostPointer", "raw_buffer"},
      {"die=Stream_Wait", "stream"},
      {"die=Layouts_Executable_GetParameterLayouts", "parameter_layouts"},
      {"die=Plugin_Attributes:2", "attributes"},
  };
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    costs("", cases[i].lies,
          (loss[]){{cases[i].lost, "kills the process: SIGABRT"}, {0}});
  }
}

static void several_deaths__cost_one_capability_each(void **state) {
  (void)state;
  costs(
      "abort PJRT_Buffer_Bitcast;segv PJRT_Client_CreateErrorBuffer;"
      "exit0 PJRT_Buffer_CopyRawToHost;exit3 PJRT_Device_MemoryStats",
      "die=Layouts_MemoryLayout_Serialize",
      (loss[]){{"bitcast", "kills the process: SIGABRT"},
               {"error_buffer", "kills the process: SIGSEGV"},
               {"copy_raw", "ends the process: exit status 0"},
               {"memory_stats", "ends the process: exit status 3"},
               {"layouts", "kills the process: SIGABRT"},
               {"parameter_layouts", "kills the process: SIGABRT"},
               {0}});
}

static void hanging_trials__cost_their_capabilities(void **state) {
  (void)state;
  host h;
  int before = count_descriptors();
  host_make(&h, "hang PJRT_Buffer_CopyToMemory;hang PJRT_Buffer_Bitcast", "",
            4000);
  host_open(&h, false);
  ist_pjrt_report *report = NULL;
  assert_ok(host_report(&h, 0, &report), h.err);
  static const char *const hung[] = {"copy_to_memory", "bitcast"};
  for (size_t i = 0; i < COUNT_OF(hung); i++) {
    ist_pjrt_capability now = {.struct_size = sizeof now};
    assert_ok(ist_pjrt_report_find(report, 0, hung[i], &now, &h.err), h.err);
    assert_string_equal(now.reason, "never answers: not in 4 s");
  }
  ist_pjrt_report_release(report);
  size_t count = starts(&h);
  assert_ok(host_report(&h, 0, &report), h.err);
  ist_pjrt_report_release(report);
  assert_int_equal(starts(&h), count);
  host_end(&h);
  assert_int_equal(count_descriptors(), before);
}

// The second device has other trials: programs are tried on the first.
static void report_of_another_device__is_tried_apart(void **state) {
  (void)state;
  host h;
  host_make(&h, "abort PJRT_Executable_Serialize", "", 0);
  host_open(&h, false);
  ist_pjrt_report *report = NULL;
  ist_pjrt_capability now = {.struct_size = sizeof now};
  assert_ok(host_report(&h, 1, &report), h.err);
  assert_ok(ist_pjrt_report_find(report, 0, "serialize", &now, &h.err), h.err);
  assert_non_null(strstr(now.reason, "tried on the first device"));
  ist_pjrt_report_release(report);
  assert_int_equal(starts(&h), 2);
  assert_ok(host_report(&h, 0, &report), h.err);
  assert_lost(report, (loss[]){{"serialize", "kills the process"}, {0}});
  ist_pjrt_report_release(report);
  assert_int_equal(starts(&h), 4);
  host_end(&h);
}

// For devices that only one process may hold.
static void report_that_is_announced__is_tried_before(void **state) {
  (void)state;
  host h;
  ist_pjrt_report *report = NULL;
  host_make(&h, "abort PJRT_Buffer_Bitcast", "", 0);
  host_open_as(&h, (ist_backend_options){.reports = true});
  assert_int_equal(starts(&h), 3);
  assert_ok(host_report(&h, 0, &report), h.err);
  assert_lost(report, (loss[]){{"bitcast", "kills the process"}, {0}});
  ist_pjrt_report_release(report);
  assert_int_equal(starts(&h), 3);
  host_end(&h);
}

// The version of the platform is asked for once when a plugin is opened.
static void death_between_trials__refuses_the_report(void **state) {
  (void)state;
  host h;
  int before = count_descriptors();
  host_make(&h, "", "die=Client_PlatformVersion:2", 0);
  host_open(&h, false);
  ist_pjrt_report *report = NULL;
  assert_refused(host_report(&h, 0, &report), IST_ERR_PLUGIN_CRASHED, h.err,
                 "it died of SIGABRT in the step PJRT_Client_PlatformVersion "
                 "of a report when it was tried in a process of its own");
  assert_null(report);
  assert_non_null(strstr(h.err.message, h.plugin));
  host_end(&h);
  assert_int_equal(count_descriptors(), before);
}

static void program_that_has_gone__refuses_the_report(void **state) {
  (void)state;
  host h;
  host_make(&h, "abort PJRT_Buffer_Bitcast", "", 0);
  host_open(&h, false);
  unlink(h.script);
  ist_pjrt_report *report = NULL;
  assert_refused(host_report(&h, 0, &report), IST_ERR_PROBE_MISSING, h.err,
                 "isthmus-probe");
  assert_null(report);
  host_end(&h);
}

static void trusted_plugin__is_reported_on_here(void **state) {
  (void)state;
  host h;
  host_make(&h, "", "", 0);
  host_open(&h, true);
  ist_pjrt_report *report = NULL;
  assert_ok(host_report(&h, 0, &report), h.err);
  assert_lost(report, (loss[]){{0}});
  ist_pjrt_report_release(report);
  assert_int_equal(starts(&h), 0);
  host_end(&h);
}

static void file_that_has_changed__is_not_reported_on(void **state) {
  (void)state;
  host h;
  host_make(&h, "", "", 0);
  char copy[1100], command[2300];
  snprintf(copy, sizeof copy, "%s/copy.so", h.folder.path);
  snprintf(command, sizeof command, "cp '%s' '%s'", h.plugin, copy);
  assert_int_equal(system(command), 0);
  memcpy(h.plugin, copy, sizeof h.plugin);
  host_open(&h, false);
  assert_int_equal(unlink(copy), 0);
  assert_int_equal(symlink("/bin/true", copy), 0);
  ist_pjrt_report *report = NULL;
  assert_refused(host_report(&h, 0, &report), IST_ERR_PLUGIN_LOAD, h.err,
                 "file has changed after it was opened");
  unlink(copy);
  host_end(&h);
}

static void *report_once(void *arg) {
  host *h = arg;
  ist_pjrt_report *report = NULL;
  ist_error err = {0};
  ist_code code =
      ist_pjrt_report_create(ist_backend_device(h->backend, 0), &report, &err);
  ist_pjrt_report_release(report);
  return (void *)(uintptr_t)code;
}

static void reports_at_once__share_the_processes(void **state) {
  (void)state;
  host h;
  pthread_t threads[4];
  host_make(&h, "abort PJRT_Buffer_Bitcast", "", 0);
  host_open(&h, false);
  for (size_t i = 0; i < COUNT_OF(threads); i++)
    assert_int_equal(pthread_create(&threads[i], NULL, report_once, &h), 0);
  for (size_t i = 0; i < COUNT_OF(threads); i++) {
    void *code = NULL;
    pthread_join(threads[i], &code);
    assert_int_equal((ist_code)(uintptr_t)code, IST_OK);
  }
  assert_int_equal(starts(&h), 3);
  host_end(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(honest_plugin__costs_nothing),
      cmocka_unit_test(death_in_a_trial__costs_its_capability),
      cmocka_unit_test(death_in_an_extension__costs_its_capability),
      cmocka_unit_test(several_deaths__cost_one_capability_each),
      cmocka_unit_test(hanging_trials__cost_their_capabilities),
      cmocka_unit_test(report_of_another_device__is_tried_apart),
      cmocka_unit_test(report_that_is_announced__is_tried_before),
      cmocka_unit_test(death_between_trials__refuses_the_report),
      cmocka_unit_test(program_that_has_gone__refuses_the_report),
      cmocka_unit_test(trusted_plugin__is_reported_on_here),
      cmocka_unit_test(file_that_has_changed__is_not_reported_on),
      cmocka_unit_test(reports_at_once__share_the_processes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
