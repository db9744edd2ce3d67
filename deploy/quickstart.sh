#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tunes a real training job on this machine, from a clean clone to a measured
# speed-up: installs packages, builds, starts the server, runs the job again and
# again with what the server suggests, and confirms what it found.
#
#   deploy/quickstart.sh [options]
#
#   --trials N    jobs to run before the winner is confirmed [40]
#   --seconds S   how long each job measures its speed [4]
#   --samples N   what each job trains before its loss is measured [32768]
#   --confirm N   times that baseline and winner are measured again; 0: what
#                 they measured while tuning counts [3]
#   --home DIR    where the database and the logs are kept [./quickstart]
#   --bin DIR     where the programs are; nothing is installed or built
#
# It may be stopped, killed, or lose its server at any moment: started again, it
# goes on from where it was.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$self")/.."

usage() { sed -n '4,/^set /s/^# \{0,1\}//p' "$self" >&2; exit 2; }

trials=40
seconds=4
samples=32768
confirm=3
home=$PWD/quickstart
bin=
while (($#)); do
  (($# >= 2)) || usage
  case "$1" in
    --trials) trials=$2 ;;
    --seconds) seconds=$2 ;;
    --samples) samples=$2 ;;
    --confirm) confirm=$2 ;;
    --home) home=$2 ;;
    --bin) bin=$2 ;;
    *) usage ;;
  esac
  shift 2
done
for number in "$trials" "$samples" "$confirm"; do
  [[ "$number" =~ ^(0|[1-9][0-9]{0,8})$ ]] || usage
done
[[ "$seconds" =~ ^[0-9]+([.][0-9]+)?$ ]] || usage
[[ -z "$bin" || -x "$bin/cubicmld" ]] || usage

say() { printf '\n\033[1m%s\033[0m\n' "$*" >&2; }
fail() { printf '%s\n' "$@" >&2; exit 1; }

if [[ -z "$bin" ]]; then
  say "1/5  Packages"
  deploy/install_dependencies.sh

  say "2/5  Build (some minutes the first time)"
  cmake --preset quickstart >/dev/null
  cmake --build --preset quickstart --target cubicmld cubicml dlrm_train >&2
  bin=$PWD/build/quickstart/bin
fi

mkdir -p "$home"
home=$(cd "$home" && pwd)
database=$home/cubicml.db
study=dlrm
# Results that a job could not deliver are kept here, too.
export XDG_CACHE_HOME=$home/cache

# Jobs that trained differently cannot be compared.
settings="--seconds $seconds --samples $samples"
if [[ -s "$home/settings" && "$(<"$home/settings")" != "$settings" ]]; then
  fail "$home was made with $(<"$home/settings"). Go on with those, or name" \
    "another folder with --home."
fi
echo "$settings" >"$home/settings"

# ---- The server ----

server_pid=
is_our_server() {
  [[ -r "/proc/$1/cmdline" ]] &&
    tr '\0' ' ' <"/proc/$1/cmdline" | grep -qF -- "--db_path $database "
}

stop_server() {
  local pid=$1 tries
  kill "$pid" 2>/dev/null || return 0
  for ((tries = 0; tries < 300; ++tries)); do
    is_our_server "$pid" || break
    sleep 0.1
  done
  ((tries < 300)) || kill -9 "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true  # no child of ours when we found it running
}

on_exit() { [[ -z "$server_pid" ]] || stop_server "$server_pid"; }
trap on_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# launch_server PORT: in a session of its own, so that Ctrl-C ends the job
# first. Fails when the server ends before it serves.
launch_server() {
  rm -f "$home/port.new"
  setsid "$bin/cubicmld" --db_path "$database" \
    --listen_address "127.0.0.1:$1" --metrics_address 127.0.0.1:0 \
    --port_file "$home/port.new" >>"$home/server.log" 2>&1 &
  server_pid=$!
  echo "$server_pid" >"$home/server.pid"
  while [[ ! -s "$home/port.new" ]]; do
    kill -0 "$server_pid" 2>/dev/null || return 1
    sleep 0.1
  done
  mv "$home/port.new" "$home/port"
}

start_server() {
  # One that outlived a script which was killed.
  if [[ -s "$home/server.pid" ]] && is_our_server "$(<"$home/server.pid")"; then
    stop_server "$(<"$home/server.pid")"
  fi
  # The port stays the same over restarts, so that results that jobs kept while
  # the server was away find it again; another program may have it by now.
  local port=0
  [[ -s "$home/port" ]] && port=$(<"$home/port")
  launch_server "$port" || launch_server 0 ||
    fail "The server did not start; its last words ($home/server.log):" \
      "$(tail -5 "$home/server.log")"
  export CUBICML_SERVER=127.0.0.1:$(<"$home/port")
}

# Jobs run without the server too; here it is started again when it has died.
ensure_server() {
  if [[ -z "$server_pid" ]] || ! kill -0 "$server_pid" 2>/dev/null; then
    start_server
  fi
}

# call ARGS...: `cubicml ARGS...`, again when the server dies meanwhile. Not in a
# subshell, whose server nobody would know.
call() {
  local tries code
  for ((tries = 0; tries < 5; ++tries)); do
    ensure_server
    code=0
    "$bin/cubicml" "$@" || code=$?
    ((code == 4)) || return "$code"  # 4: the server is away
  done
  return "$code"
}

# ---- The job ----

job=("$bin/dlrm_train" --seconds="$seconds" --loss_samples="$samples"
     --memory_limit_mib=300)

# tune_once [options of `cubicml run`]: one job with what the server suggests.
# What it and the job say goes to the log; jobs that fail are a part of tuning.
tune_once() {
  ensure_server
  "$bin/cubicml" run --study "$study" --trials 1 "$@" -- \
    "${job[@]}" --metrics_file="{metrics_file}" "{flags}" \
    >"$home/last_job.log" 2>&1 || true
  cat "$home/last_job.log" >>"$home/jobs.log"
}

# The summary that `cubicml run` ends with, and the speed that the job printed.
last_summary() { grep '^trial ' "$home/last_job.log" | tail -1 || true; }
last_qps() { sed -n 's/^qps=//p' "$home/last_job.log" | tail -1; }

# Sets `finished` to the number of jobs that ended with an answer, but for those
# that confirmed something.
count_finished() {
  call trials export "$study" --format jsonl --filter \
    "(state = SUCCEEDED OR state = INFEASIBLE) AND source != REPEAT" \
    >"$home/finished.jsonl" 2>>"$home/jobs.log"
  finished=$(wc -l <"$home/finished.jsonl")
}

say "3/5  Server, and the study $study (client/examples/dlrm/study.yaml)"
call study create client/examples/dlrm/study.yaml --id "$study" >/dev/null
count_finished
without_answer=0
say "4/5  Tuning: $trials jobs that train for $seconds s each ($finished done)"
while ((finished < trials)); do
  tune_once
  before=$finished
  count_finished
  printf '%3d/%d  %s\n' "$finished" "$trials" "$(last_summary)" >&2
  ((finished == before)) || { without_answer=0; continue; }
  ((++without_answer < 5)) ||
    fail "Five jobs in a row came to nothing; the last one ($home/jobs.log):" \
      "$(tail -5 "$home/last_job.log")"
done

# measure MODE FILE: adds the speed of one more job to the file, if the service
# takes it for one that worked. Without the server a job would run on the
# baseline, and says nothing of a trial.
measure() {
  local tries
  for ((tries = 0; tries < 5; ++tries)); do
    tune_once --mode "$1"
    [[ -n "$(last_summary)" ]] || continue
    [[ "$(last_summary)" != *": qps "* ]] || last_qps >>"$2"
    return
  done
}

# mean FILE: fails without a single measurement.
mean() {
  awk '{sum += $1; n += 1} END {if (n == 0) exit 1; printf "%.0f", sum / n}' \
    "$1" || fail "Nothing was measured; what the jobs said: $home/jobs.log"
}

# Sets `best_trial` to the first trial of the configuration that is the best on
# average. Through a file: a server that is started in a subshell gets lost.
find_best_trial() {
  call best "$study" --limit 1 -o json >"$home/best.json" 2>>"$home/jobs.log" ||
    fail "No winner is known; what was said: $home/jobs.log"
  best_trial=$(sed -n 's/.*"name": "\([^"]*\)".*/\1/p' "$home/best.json")
  [[ -n "$best_trial" ]] ||
    fail "No job worked; what they said: $home/jobs.log"
}

# Set `baseline` and `winner`, in samples/s. A winner that was only lucky is not
# the best any more once it was measured again, and the next one is confirmed.
confirm_winner() {
  local jobs before measured
  : >"$home/baseline_qps"
  : >"$home/winner_qps"
  find_best_trial
  for ((jobs = 0; jobs < 4 * confirm; ++jobs)); do
    before=$best_trial
    measure baseline "$home/baseline_qps"
    echo "  baseline:  $(last_summary)" >&2
    measure exploit "$home/winner_qps"
    echo "  trial ${before##*/}:  $(last_summary)" >&2
    find_best_trial
    [[ "$best_trial" == "$before" ]] || : >"$home/winner_qps"
    (($(wc -l <"$home/winner_qps") < confirm)) || break
  done
  measured=$(wc -l <"$home/winner_qps")
  ((measured > 0)) ||
    fail "No winner was confirmed: its speeds vary too much, or it fails." \
      "What the jobs said: $home/jobs.log"
  ((measured >= confirm)) ||
    note="   (the winner was measured again only $measured times)"
  baseline=$(mean "$home/baseline_qps")
  winner=$(mean "$home/winner_qps")
}
trust_tuning() {
  find_best_trial  # the list knows only what is in memory
  call study list --filter "name = \"studies/$study\"" -o csv \
    >"$home/progress.csv" 2>>"$home/jobs.log"
  # The last columns are baseline, best, speedup.
  baseline=$(awk -F, 'END {printf "%.0f", $(NF - 2)}' "$home/progress.csv")
  winner=$(awk -F, 'END {printf "%.0f", $(NF - 1)}' "$home/progress.csv")
  ((baseline > 0 && winner > 0)) ||
    fail "No baseline or no winner; what the jobs said: $home/jobs.log"
}

if ((confirm > 0)); then
  say "5/5  Confirming: baseline and winner, $confirm more times each, in turn"
  note=
  confirm_winner
else
  say "5/5  Not confirming (--confirm 0)"
  trust_tuning
  note="   (unconfirmed: the best of many measurements is lucky, too)"
fi

say "What was found"
speedup=$(awk -v b="$baseline" -v w="$winner" 'BEGIN {printf "%.2fx", w / b}')
call best "$study" --compare-baseline -o csv >"$home/differences.csv" \
  2>>"$home/jobs.log" || fail "No winner is known; what was said: $home/jobs.log"
# A header, and a line for each knob that differs.
if (($(wc -l <"$home/differences.csv") < 2)); then
  # The same configuration: the rest is noise.
  winner=$baseline
  speedup=1.00x
  say "Nothing was faster than the baseline; more --trials may find something."
fi
printf 'baseline     %s samples/s\nbest         %s samples/s\nspeed-up     %s\n' \
  "$baseline" "$winner" "$speedup$note"
echo "knobs that differ from the baseline:"
call best "$study" --compare-baseline
echo "database     $database   (sqlite3, docs/sql.md)"
echo "jobs' output $home/jobs.log"
echo "look around  $bin/cubicmld --db_path $database &"
echo "             $bin/cubicml trials list $study"
