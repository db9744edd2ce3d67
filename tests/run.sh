#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is needed, builds, and runs all tests.
#
#   tests/run.sh         what has to pass before a change lands
#   tests/run.sh --fast  without the sanitizers, for the way there
#   tests/run.sh --tidy  and with what Clang finds
set -euo pipefail
cd "$(dirname "$0")/.."

sanitizers=true
tidy=false
case "${1:-}" in
  "") ;;
  --fast) sanitizers=false ;;
  --tidy) tidy=true ;;
  *) echo "usage: $0 [--fast|--tidy]" >&2; exit 2 ;;
esac

jobs=$(nproc)
# Names of the stages with what each took, told at the end.
report=()
stage() {
  local name=$1 start=$SECONDS
  shift
  echo "==== $name" >&2
  "$@"
  report+=("$(printf '%5d s  %s' $((SECONDS - start)) "$name")")
}
build() { cmake --preset "$1" >/dev/null && cmake --build --preset "$1" -j "$jobs"; }
# Programs measure time and start servers: one at a time is steadier. Under
# sanitizers time means nothing.
run_tests() { ctest --preset "$1" -j "${2:-1}"; }

stage "packages" deploy/install_dependencies.sh --tests
stage "lint" python3 tests/lint/lint.py
stage "build: dev" build dev
stage "test: dev" run_tests dev
if $sanitizers; then
  stage "build: address and undefined sanitizers" build asan
  stage "test: address and undefined sanitizers" run_tests asan "$jobs"
  stage "build: thread sanitizer" build tsan
  stage "test: thread sanitizer" run_tests tsan "$jobs"
fi
if $tidy; then
  stage "build: clang, thread-safety analysis and clang-tidy" build tidy
fi
printf '%s\n' "${report[@]}" >&2
