#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what CubicML is built with, from the distribution's own packages
# (Debian 12 and newer, Ubuntu 24.04 and newer). Why each one is there:
# docs/dependencies.md.
#
#   deploy/install_dependencies.sh          to build and run
#   deploy/install_dependencies.sh --tests  and to run all tests
set -euo pipefail

# libopenblas0-serial, not -pthread or -openmp: a training step is ten times
# slower with the reference BLAS, and the threaded ones break the metrics port.
build_packages=(
  g++ cmake ninja-build pkg-config ccache mold
  libgrpc++-dev protobuf-compiler-grpc protobuf-compiler libprotobuf-dev
  libabsl-dev libtorch-dev libopenblas0-serial libsqlite3-dev sqlite3
  prometheus-cpp-dev libyaml-cpp-dev libcli11-dev nlohmann-json3-dev
)
test_packages=(
  libgtest-dev libgmock-dev libbenchmark-dev
  clang clang-tidy clang-format python3 git prometheus
)

packages=("${build_packages[@]}")
case "${1:-}" in
  "") ;;
  --tests) packages+=("${test_packages[@]}") ;;
  *) echo "usage: $0 [--tests]" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [[ "$status" == "install ok installed" ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then exit 0; fi

command -v apt-get >/dev/null || {
  echo "$0: needs apt-get (Debian or Ubuntu). Install by hand: ${missing[*]}" >&2
  exit 1
}
as_root=()
if [[ "$(id -u)" != 0 ]]; then
  command -v sudo >/dev/null || {
    echo "$0: run as root, or install sudo, to install: ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
echo "Installing ${#missing[@]} packages: ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq
candidate=$(apt-cache policy cmake | awk '/Candidate:/ {print $2}')
dpkg --compare-versions "$candidate" ge 3.25 || {
  echo "$0: this distribution is too old: its CMake is $candidate, 3.25 is" \
    "needed. Debian 12 and Ubuntu 24.04 are new enough." >&2
  exit 1
}
# The tests start Prometheus themselves; as a service of this machine nobody
# asked for it.
unit=/etc/systemd/system/prometheus.service
if [[ " ${missing[*]} " == *" prometheus "* && -d ${unit%/*} && ! -e $unit ]]; then
  "${as_root[@]}" ln -s /dev/null "$unit"
  echo "prometheus.service is masked; systemctl unmask makes it a service." >&2
fi
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
