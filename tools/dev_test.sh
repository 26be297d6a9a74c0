# SPDX-License-Identifier: Apache-2.0
# Part of ./dev: the suites of ./dev test and the line that counts them.
# shellcheck shell=bash

# cmocka for arm64, unpacked into .cache/arm64 without touching the machine's
# own packages: apt with lists and architecture of its own.
dev_arm64_cmocka() {
  local root=$PWD/.cache/arm64 jsmn
  [ -e "$root/ready" ] && return 0
  command -v apt-get >/dev/null || return 1
  rm -rf "$root"
  mkdir -p "$root/lists/partial" "$root/cache/archives/partial"
  local options=(-o APT::Architecture=arm64 -o APT::Architectures=arm64
    -o "Dir::State::Lists=$root/lists" -o "Dir::Cache=$root/cache"
    -o Dir::State::status=/dev/null -o APT::Sandbox::User="$(id -un)"
    -o Acquire::Languages=none)
  dev_quiet apt-get "${options[@]}" update || true
  (cd "$root" && dev_quiet apt-get "${options[@]}" download \
    libcmocka-dev libcmocka0) || return 1
  for package in "$root"/*.deb; do dpkg-deb -x "$package" "$root"; done
  jsmn=$(echo '#include <jsmn.h>' | cc -M -x c - | grep -o '[^ ]*/jsmn\.h')
  cp "$jsmn" "$root/usr/include/"
  rm -rf "$root/lists" "$root/cache" "$root"/*.deb
  : >"$root/ready"
}

dev_build_arm64() {
  local root=$PWD/.cache/arm64/usr
  dev_cmake build/arm64 -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc \
    "-DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64;-L;/usr/aarch64-linux-gnu" \
    -DCMOCKA_INCLUDE="$root/include" -DISTHMUS_JSMN_INCLUDE="$root/include" \
    -DCMOCKA_LIBRARY="$root/lib/aarch64-linux-gnu/libcmocka.so" \
    -DCMAKE_BUILD_RPATH="$root/lib/aarch64-linux-gnu"
}

dev_suite_c() {
  dev_test_env
  .venv/bin/python tools/run_c_tests.py --build build \
    --out build/results/c --suite c
}

# The C tests that need no plugin wheel (those are x86-64 only).
dev_suite_arm64() {
  export ISTHMUS_HAMMER_TURNS=200
  ISTHMUS_NO_PLUGINS=1 dev_test_env build/arm64
  .venv/bin/python tools/run_c_tests.py --build build/arm64 \
    --out build/results/arm64 --suite arm64 \
    --prefix "qemu-aarch64 -L /usr/aarch64-linux-gnu"
}

# House checks, the command's golden files, examples and the package.
dev_suite_python() {
  dev_test_env
  mkdir -p build/results/python
  .venv/bin/python -m pytest -q -n 2 -p no:cacheprovider \
    --junitxml=build/results/python/pytest.xml "$@"
}

# Arguments, if any, are handed to pytest and only that suite is run.
dev_test() {
  local c=0 arm64=0 python=0
  rm -rf build/results
  if [ $# -gt 0 ]; then
    (dev_suite_python "$@") || python=$?
    .venv/bin/python tools/count_results.py build/results python=$python
    return
  fi
  dev_say "C tests"
  (dev_suite_c) || c=$?
  dev_say "C tests for aarch64, under qemu-user"
  if dev_arm64_cmocka && (dev_build_arm64); then
    (dev_suite_arm64) || arm64=$?
  else
    arm64=1
  fi
  dev_say "house, command, example and package tests"
  (dev_suite_python) || python=$?
  .venv/bin/python tools/count_results.py build/results \
    c=$c arm64=$arm64 python=$python
}

dev_fmt() {
  find include src cli tests bench examples abi python -name '*.[ch]' \
    -exec clang-format-19 -i {} +
}
