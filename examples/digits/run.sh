#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The main job: says what is on this machine, then reads the digits with a
# real plugin, first from the command, then from Python. `./dev run` calls it.
#
#   examples/digits/run.sh [PLUGIN.so]
#
# Without a plugin it takes the first of those that ./dev found.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
isthmus=${ISTHMUS_BUILD:-$root/build}/isthmus
python=${ISTHMUS_PYTHON:-$root/.venv/bin/python}
plugin=${1:-${ISTHMUS_P1:-${ISTHMUS_P2:-${ISTHMUS_P3:-}}}}

if [ -z "$plugin" ]; then
  echo "run.sh: no plugin: none was named or installed; needs PLUGIN.so" >&2
  exit 1
fi
if [ ! -x "$isthmus" ]; then
  echo "run.sh: $isthmus: not there; run ./dev build first" >&2
  exit 1
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

echo "== isthmus doctor: what is here, and what it can do"
"$isthmus" doctor --plugin "$plugin"

echo
echo "== isthmus run: the digits, from mapped files"
weights=$here/weights.safetensors
"$isthmus" run "$here/digits.mlir" --plugin "$plugin" \
  "$weights:hidden.weight" "$weights:hidden.bias" \
  "$weights:output.weight" "$weights:output.bias" "$here/images.npy" \
  -o "$out/scores.npy" -o "$out/labels.npy"
"$python" "$here/accuracy.py" "$out/scores.npy" "$out/labels.npy"

echo
echo "== Python: torch tensors in, NumPy arrays out"
"$python" "$here/digits.py" "$plugin"
