# SPDX-License-Identifier: Apache-2.0
# Part of ./dev: the build, and the package made importable from .venv.
# shellcheck shell=bash

# $1: build folder; the rest: options for CMake.
dev_cmake() {
  local folder=$1
  shift
  dev_say "configuring $folder"
  dev_quiet cmake -S . -B "$folder" -G Ninja -DISTHMUS_WERROR=ON "$@" ||
    dev_die "CMake could not configure $folder"
  dev_say "building $folder"
  dev_quiet cmake --build "$folder" || dev_die "$folder does not build"
}

dev_build() {
  local tests=OFF
  ! dev_has hdr:cmocka.h || tests=ON
  dev_cmake build -DISTHMUS_PYTHON=ON -DISTHMUS_TESTS=$tests \
    -DPython_EXECUTABLE="$PWD/.venv/bin/python"
  dev_link_package
}

# build/python/isthmus holds the extension; the rest of the package is linked
# beside it, and a .pth file lets .venv import it: an edit shows at once.
dev_link_package() {
  local package=build/python/isthmus file site
  mkdir -p "$package/bin" "$package/include"
  find "$package" -type l -delete
  for file in python/isthmus/*; do
    case $file in *.c | *.h | *__pycache__ | *'*') continue ;; esac
    ln -s "$PWD/$file" "$package/"
  done
  ln -s "$PWD/build/isthmus" "$package/bin/isthmus"
  ln -s "$PWD/build/isthmus-probe" "$package/bin/isthmus-probe"
  ln -s "$PWD/include/isthmus" "$package/include/isthmus"
  site=$(.venv/bin/python -c 'import sysconfig as s; print(s.get_path("purelib"))')
  echo "$PWD/build/python" >"$site/isthmus_build.pth"
  cat >.venv/bin/isthmus <<SH
#!/bin/sh
exec "$PWD/.venv/bin/python" -m isthmus "\$@"
SH
  chmod +x .venv/bin/isthmus
}

# Where the tests find what they may need; a variable is unset when that thing
# is not on this machine.
dev_test_env() {
  local site
  site=$(.venv/bin/python -c 'import sysconfig as s; print(s.get_path("purelib"))')
  # Tests write nothing into the user's own folder of compiled programs.
  export ISTHMUS_CACHE=off
  export ISTHMUS_SOURCE=$PWD ISTHMUS_BUILD=$PWD/${1-build}
  export ISTHMUS_P1=$site/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so
  export ISTHMUS_P2=$site/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so
  export ISTHMUS_P3=$site/fastatomstruct_xla_cpu/libpjrt_cpu.so
  export ISTHMUS_LYING_PJRT=$ISTHMUS_BUILD/lying_pjrt.so
  [ -z "${ISTHMUS_NO_PLUGINS-}" ] ||
    unset ISTHMUS_P1 ISTHMUS_P2 ISTHMUS_P3
  local name
  for name in ISTHMUS_P1 ISTHMUS_P2 ISTHMUS_P3 ISTHMUS_LYING_PJRT; do
    [ -e "${!name-}" ] || unset "$name"
  done
}

dev_run() {
  dev_test_env
  if [ ! -x examples/digits/run.sh ]; then
    dev_die "examples/digits/run.sh: not there"
  fi
  examples/digits/run.sh "$@"
}

# What draws the chart of ./dev bench copy, which runs without it too.
dev_chart_wheels() {
  local stamp
  stamp=.venv/bench-$(sha256sum <requirements-bench.txt | cut -c1-16)
  [ ! -e "$stamp" ] || return 0
  if dev_quiet .venv/bin/pip install -r requirements-bench.txt; then
    : >"$stamp"
  else
    dev_say "pip could not install requirements-bench.txt: no chart"
  fi
}

dev_bench() {
  [ -e bench/run.py ] || dev_die "bench/run.py: not there yet"
  dev_test_env
  dev_chart_wheels
  .venv/bin/python bench/run.py "$@"
}
