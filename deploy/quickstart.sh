#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tunes a real training job on this machine, from a clean clone to a measured
# speed-up: installs packages, builds, starts the server, runs the job again and
# again with what the server suggests, and confirms what it found.
#
#   deploy/quickstart.sh [--trials N] [--seconds S] [--confirm N]
#
# Everything it keeps lies in ./quickstart. It may be stopped, killed, or lose
# its server at any moment: started again, it goes on from where it was.
set -euo pipefail
cd "$(dirname "$0")/.."

trials=40     # jobs to run before the winner is confirmed
seconds=4     # how long each job measures
confirm=3     # times that baseline and winner are measured again
while (($#)); do
  case "$1" in
    --trials) trials=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    --confirm) confirm=$2; shift 2 ;;
    *) sed -n '4,12p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
  esac
done

say() { printf '\n\033[1m%s\033[0m\n' "$*" >&2; }

say "1/5  Packages"
deploy/install_dependencies.sh

say "2/5  Build (some minutes the first time)"
cmake --preset quickstart >/dev/null
cmake --build --preset quickstart --target cubicmld cubicml dlrm_train

bin=$PWD/build/quickstart/bin
home=$PWD/quickstart
database=$home/cubicml.db
study=dlrm
mkdir -p "$home"

# ---- The server ----

server_pid=
stop_server() {
  if [[ -n "$server_pid" ]]; then
    kill "$server_pid" 2>/dev/null && wait "$server_pid" 2>/dev/null || true
  fi
}
trap stop_server EXIT

start_server() {
  # The port stays the same over restarts, so that results that jobs kept while
  # the server was away find it again.
  local port=0
  [[ -s "$home/port" ]] && port=$(cat "$home/port")
  rm -f "$home/port"
  "$bin/cubicmld" --db_path "$database" --listen_address "127.0.0.1:$port" \
    --metrics_address 127.0.0.1:0 --port_file "$home/port" \
    >>"$home/server.log" 2>&1 &
  server_pid=$!
  local tries
  for ((tries = 0; tries < 300; ++tries)); do
    [[ -s "$home/port" ]] && break
    kill -0 "$server_pid" 2>/dev/null || break
    sleep 0.1
  done
  if [[ ! -s "$home/port" ]]; then
    echo "The server did not start; its last words ($home/server.log):" >&2
    tail -5 "$home/server.log" >&2
    exit 1
  fi
  export CUBICML_SERVER=127.0.0.1:$(cat "$home/port")
}

# Jobs run without the server too; here it is started again when it has died.
ensure_server() {
  if [[ -z "$server_pid" ]] || ! kill -0 "$server_pid" 2>/dev/null; then
    start_server
  fi
}

# ---- The job ----

job=("$bin/dlrm_train" --seconds="$seconds" --loss_samples=32768
     --memory_limit_mib=300)

# tune_once [options of `cubicml run`]: one job with what the server suggests.
# Its output goes to the log, its line of summary to the terminal.
tune_once() {
  ensure_server
  "$bin/cubicml" run --study "$study" --trials 1 "$@" -- \
    "${job[@]}" --metrics_file="{metrics_file}" "{flags}" \
    >"$home/last_job.log" 2>&1 || true
  cat "$home/last_job.log" >>"$home/jobs.log"
}

qps_of() { sed -n 's/^qps=//p' "$1" | tail -1; }

mean() { awk '{sum += $1; n += 1} END {if (n) printf "%.0f", sum / n; else print "none"}'; }

say "3/5  Server, and the study $study (client/examples/dlrm/study.yaml)"
ensure_server
"$bin/cubicml" study create client/examples/dlrm/study.yaml --id "$study" \
  >/dev/null
done_trials() {
  "$bin/cubicml" trials export "$study" --format jsonl \
    --filter "state = SUCCEEDED OR state = INFEASIBLE" | wc -l
}

finished=$(done_trials)
say "4/5  Tuning: $trials jobs that train for $seconds s each ($finished done)"
while ((finished < trials)); do
  tune_once
  finished=$((finished + 1))
  printf '%3d/%d  %s\n' "$finished" "$trials" \
    "$(grep '^trial ' "$home/last_job.log" | tail -1)" >&2
done

say "5/5  Confirming: baseline and winner, $confirm more times each, in turn"
: >"$home/baseline_qps"
: >"$home/winner_qps"
for ((i = 1; i <= confirm; ++i)); do
  # Without flags the job runs as it did before anybody tuned it.
  "${job[@]}" >"$home/last_job.log" 2>&1 || true
  qps_of "$home/last_job.log" >>"$home/baseline_qps"
  tune_once --mode exploit
  qps_of "$home/last_job.log" >>"$home/winner_qps"
  printf '  baseline %8.0f   winner %8.0f samples/s\n' \
    "$(tail -1 "$home/baseline_qps")" "$(tail -1 "$home/winner_qps")" >&2
done
baseline=$(mean <"$home/baseline_qps")
winner=$(mean <"$home/winner_qps")

ensure_server
say "What was found"
printf 'baseline     %s samples/s\nbest         %s samples/s\nspeed-up     %s\n' \
  "$baseline" "$winner" \
  "$(awk -v b="$baseline" -v w="$winner" 'BEGIN {printf "%.2fx", w / b}')"
echo "configuration:"
"$bin/cubicml" best "$study" --limit 1
echo "database     $database   (sqlite3, docs/sql.md)"
echo "jobs' output $home/jobs.log"
