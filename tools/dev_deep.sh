# SPDX-License-Identifier: Apache-2.0
# Part of ./dev: the deeper checks: sanitizers, valgrind, fuzzing, the frozen
# interface, the reference.
# shellcheck shell=bash

# $1: suite and folder name; $2: sanitizers; the rest: for run_c_tests.py.
dev_sanitized() {
  local name=$1 kinds=$2 code=0
  shift 2
  rm -rf "build/results/$name"
  dev_cmake "build/$name" -DISTHMUS_SANITIZE="$kinds" -DISTHMUS_WERROR=OFF \
    -DCMAKE_BUILD_TYPE=Debug
  dev_test_env "build/$name"
  .venv/bin/python tools/run_c_tests.py --build "build/$name" \
    --out "build/results/$name" --suite "$name" "$@" || code=$?
  return $code
}

# The C tests, plugins and all, and the command's tests, with ASan, LSan and
# UBSan in our code.
dev_asan() {
  local c=0 python=0
  export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
  export LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp:print_suppressions=0
  export UBSAN_OPTIONS=print_stacktrace=1
  dev_say "C tests with ASan, LSan and UBSan"
  (dev_sanitized asan address,undefined) || c=$?
  dev_say "the command's tests with ASan, LSan and UBSan"
  rm -rf build/results/asan_command
  (
    dev_test_env build/asan
    mkdir -p build/results/asan_command
    .venv/bin/python -m pytest -q -n 2 -p no:cacheprovider tests/cli \
      --junitxml=build/results/asan_command/pytest.xml
  ) || python=$?
  .venv/bin/python tools/count_results.py build/results \
    asan=$c asan_command=$python
}

# The C tests with ThreadSanitizer. What happens inside a plugin, which is not
# instrumented, is ignored: its locks could not be seen.
dev_tsan() {
  local code=0
  export TSAN_OPTIONS=halt_on_error=1:ignore_noninstrumented_modules=1
  export ISTHMUS_HAMMER_TURNS=300
  dev_say "C tests with ThreadSanitizer"
  (dev_sanitized tsan thread) || code=$?
  .venv/bin/python tools/count_results.py build/results tsan=$code
}

# Everything that threads can do to the plugins of this machine, for so many
# minutes; prints what the process holds, and fails when it is more at the end.
dev_soak() {
  dev_test_env
  build/tests/pjrt/hammer_test soak "${1-10}"
}

# The C tests under valgrind; frames of the plugins are suppressed.
dev_valgrind() {
  local code=0
  dev_say "C tests under valgrind"
  rm -rf build/results/valgrind
  (
    dev_test_env
    export ISTHMUS_UNDER_VALGRIND=1 ISTHMUS_HAMMER_TURNS=100
    .venv/bin/python tools/run_c_tests.py --build build \
      --out build/results/valgrind --suite valgrind \
      --prefix "valgrind -q --error-exitcode=99 --leak-check=full
        --show-leak-kinds=definite,possible --errors-for-leak-kinds=definite
        --suppressions=tests/valgrind.supp --fair-sched=yes"
  ) || code=$?
  .venv/bin/python tools/count_results.py build/results valgrind=$code
}

# The interface against the one that abi/isthmus.abi froze.
dev_abi() {
  dev_say "abidiff against abi/isthmus.abi"
  abidiff --no-added-syms --no-show-locs --suppressions abi/opaque.suppr \
    abi/isthmus.abi build/libisthmus.so
}

dev_docs() {
  dev_say "reference of the headers"
  mkdir -p build/docs
  doxygen tools/Doxyfile || dev_die "the reference has warnings"
  dev_say "build/docs/html/index.html"
}

# The targets of tests/fuzz, each for a number of runs or for seconds, on its
# seeds (every fault once found is one) and on what earlier runs kept:
# ./dev fuzz [RUNS | SECONDSs] [TARGET..], as in ./dev fuzz 60s layout_fuzz
dev_fuzz() {
  local bound=${1-100000} names target name log
  [ $# = 0 ] || shift
  case $bound in
    *[!0-9s]* | '' | s | *s*?) dev_die "fuzz: $bound is neither runs (100000) nor seconds (60s)" ;;
    *s) bound=-max_total_time=${bound%s} ;;
    *) bound=-runs=$bound ;;
  esac
  dev_cmake build/fuzz -DCMAKE_C_COMPILER=clang-19 -DISTHMUS_SANITIZE=fuzzer \
    -DISTHMUS_WERROR=OFF \
    -DISTHMUS_TESTS=ON
  names=${*:-$(cd tests/fuzz && ls ./*_fuzz.c)}
  for name in $names; do
    name=$(basename "$name" .c)
    target=build/fuzz/fuzz/$name
    [ -x "$target" ] || dev_die "fuzz: there is no target $name"
    mkdir -p ".cache/fuzz/$name"
    log=.cache/fuzz/$name.log
    "$target" "$bound" -seed=1 -max_len=4096 -print_final_stats=1 \
      -artifact_prefix=".cache/fuzz/$name-" ".cache/fuzz/$name" \
      "tests/fuzz/seeds/$name" >"$log" 2>&1 || {
      tail -40 "$log" >&2
      dev_die "$name found a fault; its input is in .cache/fuzz/"
    }
    dev_say "$name: $(sed -n 's/^#\([0-9]*\)[[:space:]]*DONE *cov: \([0-9]*\).*/\1 runs, no fault, \2 edges covered/p' "$log")"
  done
}

# The wheel for everybody, audited, then tried like the one that is built here.
dev_wheel() {
  dev_say "manylinux wheel"
  tools/make_wheel.sh >.cache/wheel.log 2>&1 ||
    { tail -40 .cache/wheel.log; return 1; }
  grep -A3 "consistent with\|constrains" .cache/wheel.log || true
  ISTHMUS_WHEEL=$(echo "$PWD"/dist/*manylinux*.whl) \
    .venv/bin/python -m pytest -q -p no:cacheprovider \
    tests/packaging/test_wheel.py
}

dev_all() {
  local bad=0 step
  for step in dev_test dev_asan dev_tsan dev_valgrind dev_abi dev_docs \
      dev_fuzz dev_wheel; do
    ("$step") || { dev_say "$step failed"; bad=1; }
  done
  [ "$bad" = 0 ] || dev_die "not everything passed"
  dev_say "everything passed"
}
