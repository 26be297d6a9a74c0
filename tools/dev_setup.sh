# SPDX-License-Identifier: Apache-2.0
# Part of ./dev: makes the machine ready. Debian packages when root (else it
# lists what is missing), a Python environment .venv with pinned wheels.
# Every step looks first, so that a second run does nothing.
# shellcheck shell=bash

# One line for each need: group, what proves it is there, Debian's package.
# Proofs: cmd:NAME on PATH, hdr:NAME for the compiler, file:PATH.
dev_needs='
build cmd:cc gcc
build hdr:stdio.h libc6-dev
build hdr:jsmn.h libjsmn-dev
test  cmd:g++ g++
test  cmd:clang++-19 clang-19
test  cmd:clang-format-19 clang-format-19
test  hdr:cmocka.h libcmocka-dev
test  cmd:readelf binutils
test  cmd:pkg-config pkg-config
test  cmd:aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
test  file:/usr/aarch64-linux-gnu/include/stdio.h libc6-dev-arm64-cross
test  cmd:qemu-aarch64 qemu-user
test  cmd:valgrind valgrind
test  cmd:zsh zsh
test  cmd:fish fish
all   cmd:abidw abigail-tools
all   cmd:doxygen doxygen
all   file:/usr/lib/llvm-19/lib/clang/19/lib/linux/libclang_rt.fuzzer-x86_64.a libclang-rt-19-dev
'

dev_has() {
  case $1 in
    cmd:*) command -v "${1#cmd:}" >/dev/null ;;
    hdr:*) echo "#include <${1#hdr:}>" | cc -E -x c - >/dev/null 2>&1 ;;
    file:*) [ -e "${1#file:}" ] ;;
  esac
}

# Prints the packages that are missing for the groups in $1, e.g. "build test".
dev_missing() {
  local group proof package
  while read -r group proof package; do
    case " $1 " in *" $group "*) ;; *) continue ;; esac
    dev_has "$proof" || echo "$package"
  done <<<"${dev_needs#$'\n'}"
  if ! dev_find_python >/dev/null; then
    echo "python3.11 python3.11-venv python3.11-dev"
  fi
}

# Prints a Python that can make a virtual environment and compile an
# extension; 3.11 before 3.12 before 3.13, never a free-threaded one.
dev_find_python() {
  local name found
  for name in python3.11 /usr/bin/python3.11 python3.12 python3.13 python3; do
    command -v "$name" >/dev/null || continue
    found=$("$name" - 2>/dev/null <<'PY'
import ensurepip, os, sys, sysconfig, venv
paths = sysconfig.get_paths()
ok = ((3, 11) <= sys.version_info < (3, 14)
      and sys.version_info.releaselevel == "final"
      and not sysconfig.get_config_var("Py_GIL_DISABLED")
      and os.path.exists(os.path.join(paths["include"], "Python.h")))
print(sys.executable if ok else "")
PY
    ) || continue
    [ -n "$found" ] && echo "$found" && return 0
  done
  return 1
}

dev_packages() {
  local missing
  missing=$(dev_missing "$1" | tr '\n' ' ')
  [ -n "${missing// /}" ] || return 0
  if ! command -v apt-get >/dev/null; then
    dev_say "this system has no apt; packages missing (Debian's names):"
    printf '  %s\n' $missing
    exit 1
  fi
  if [ "$(id -u)" != 0 ]; then
    dev_say "packages missing; not root, so install them with:"
    echo "  sudo apt-get install --no-install-recommends $missing"
    exit 1
  fi
  dev_say "installing Debian packages: $missing"
  dev_quiet apt-get update || dev_say "apt-get update failed; going on"
  # shellcheck disable=SC2086
  DEBIAN_FRONTEND=noninteractive dev_quiet \
    apt-get install -y --no-install-recommends $missing ||
    dev_die "apt-get could not install: $missing"
  missing=$(dev_missing "$1" | tr '\n' ' ')
  [ -z "${missing// /}" ] || dev_die "installed, but still missing: $missing"
}

# Says why pip would not give a CPU build of torch; prints nothing if it would.
dev_torch_refusal() {
  local report=.cache/torch.json
  if ! .venv/bin/pip install -q --dry-run --report "$report" \
      -r requirements-torch.txt >.cache/torch.log 2>&1; then
    echo "pip finds no torch for this Python"
    return
  fi
  .venv/bin/python tools/torch_refusal.py "$report"
}

dev_venv() {
  local python stamp refusal
  stamp=.cache/venv-$(cat requirements*.txt tools/dev_setup.sh |
    sha256sum | cut -c1-16)
  if [ -e "$stamp" ] && .venv/bin/python -c '' 2>/dev/null; then
    dev_torch_note
    return 0
  fi
  if .venv/bin/python -c '' 2>/dev/null; then
    dev_say "bringing .venv up to its pinned wheels"
  else
    python=$(dev_find_python)
    dev_say "making .venv with $("$python" --version) and pinned wheels, which takes minutes"
    rm -rf .venv
    "$python" -m venv .venv
  fi
  rm -f .cache/venv-* .cache/no_torch
  dev_quiet .venv/bin/pip install -r requirements.txt ||
    dev_die "pip could not install requirements.txt"
  dev_quiet .venv/bin/pip install --no-deps -r requirements-plugins.txt ||
    dev_die "pip could not install requirements-plugins.txt"
  refusal=$(dev_torch_refusal)
  if [ -n "$refusal" ]; then
    echo "$refusal" >.cache/no_torch
  else
    dev_quiet .venv/bin/pip install -r requirements-torch.txt ||
      dev_die "pip could not install requirements-torch.txt"
  fi
  : >"$stamp"
  dev_torch_note
}

dev_torch_note() {
  [ ! -e .cache/no_torch ] || dev_say "no torch: $(cat .cache/no_torch)"
}

# $1: the groups of needs, "build", "build test" or "build test all".
dev_setup() {
  mkdir -p .cache
  dev_packages "$1"
  dev_venv
  export PATH="$PWD/.venv/bin:$PATH" CMAKE_GENERATOR=Ninja
  unset PYTHONPATH PYTHONHOME
}
