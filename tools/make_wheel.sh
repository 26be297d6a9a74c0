#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes dist/: the sdist, and from it the manylinux wheel for x86-64. The
# compiler is zig's, since it links against a glibc as old as one likes;
# auditwheel proves the result and gives it its tag.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
glibc=2.17
policy=manylinux_2_17_x86_64

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tools=$root/.cache/wheel
stamp=$tools/ready-$(sha256sum requirements-wheel.txt | cut -c1-16)
if [ ! -e "$stamp" ]; then
  rm -rf "$tools"
  "$root/.venv/bin/python" -m venv "$tools"
  "$tools/bin/pip" install -q -r requirements-wheel.txt
  : >"$stamp"
fi
export PATH="$tools/bin:$PATH"

mkdir "$work/jsmn"
cp "$(echo '#include <jsmn.h>' | cc -M -x c - | grep -o '[^ ]*/jsmn\.h')" \
  "$work/jsmn/"
cat >"$work/cc" <<SH
#!/bin/sh
exec "$tools/bin/python" -m ziglang cc -target x86_64-linux-gnu.$glibc \
  -fno-sanitize=undefined "\$@"
SH
chmod +x "$work/cc"
export CC=$work/cc ZIG_GLOBAL_CACHE_DIR=$root/.cache/zig
export ZIG_LOCAL_CACHE_DIR=$root/.cache/zig
export CMAKE_ARGS="-DISTHMUS_JSMN_INCLUDE=$work/jsmn"

rm -rf dist
python -c "import scikit_build_core.build as b; b.build_sdist('dist')"
mkdir "$work/source" "$work/wheel"
tar xzf dist/isthmus-*.tar.gz -C "$work/source" --strip-components=1
(cd "$work/source" && python -c \
  "import scikit_build_core.build as b; b.build_wheel('$work/wheel')")
auditwheel show "$work"/wheel/*.whl
auditwheel repair --plat "$policy" -w dist "$work"/wheel/*.whl
ls -l dist
