#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Compares configurations of dlrm_train on a machine whose speed drifts: runs
# each of them right after the first one, the reference, several rounds, and
# prints for each the median speed and the median ratio to its own reference.
#
#   measure_knobs.sh DLRM_TRAIN ROUNDS < knobs_alone.txt
#
# Standard input has one configuration a line, as flags; a line with nothing
# but a dash is the program's defaults.
set -euo pipefail

if [ $# -ne 2 ]; then
  echo "usage: $0 DLRM_TRAIN ROUNDS < CONFIGURATIONS" >&2
  exit 2
fi
program=$1
rounds=$2
mapfile -t configurations

# A configuration that fails, for want of memory say, has speed 0.
measure() {
  local flags=() qps
  if [ "$1" != - ]; then
    read -r -a flags <<< "$1"
  fi
  qps=$("$program" --loss_samples=0 --seconds=1 "${flags[@]}" 2> /dev/null |
    sed -n 's/^qps=//p') || true
  echo "${qps:-0}"
}

for ((round = 0; round < rounds; ++round)); do
  for configuration in "${configurations[@]}"; do
    reference=$(measure "${configurations[0]}")
    printf '%s\t%s\t%s\n' "$configuration" "$(measure "$configuration")" \
      "$reference"
  done
done | awk -F'\t' '
  function median(list, n,   values, i, j, swap) {
    split(list, values, " ")
    for (i = 1; i <= n; ++i)
      for (j = i + 1; j <= n; ++j)
        if (values[j] + 0 < values[i] + 0) {
          swap = values[i]; values[i] = values[j]; values[j] = swap
        }
    return values[int((n + 1) / 2)]
  }
  !($1 in runs) { order[++count] = $1 }
  {
    ++runs[$1]
    speeds[$1] = speeds[$1] " " $2
    ratios[$1] = ratios[$1] " " ($3 > 0 ? $2 / $3 : 0)
  }
  END {
    for (i = 1; i <= count; ++i)
      printf "%8.0f %6.2f  %s\n", median(speeds[order[i]], runs[order[i]]),
             median(ratios[order[i]], runs[order[i]]), order[i]
  }'
