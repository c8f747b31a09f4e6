#!/usr/bin/env bash
# The first thing to run where there is a CUDA card: in at most 6 minutes it installs what is missing, runs tests/gpu,
# measures (bench/gpu.py), and writes report.md and report.json, with the output of each step beside them.
#
#   scripts/gpu_check.sh [--python PYTHON] [--wheels FOLDER] [--rehearse] OUT
#
# --python names an interpreter; without it the first of .venv/bin/python and python3 whose PyTorch sees a card, else a
# new environment with requirements-dev.txt. --wheels is a folder of wheels with what that interpreter lacks, for a
# machine that reaches no index. --rehearse does the same on the CPU, with the tests' second device and tiny shapes.
# Exit status: 0 where all went well, 1 where a test or a step failed, 2 for other arguments, 3 without a card.
set -uo pipefail

TOTAL=335 # seconds for all steps; the rest of the 6 minutes is for the one that is stopped and for the report
INSTALL=150 TESTS=170 BENCH=160 PROBE=40

fail() {
  echo "$2" >&2
  exit "$1"
}

python="" wheels="" rehearse="" out=""
while [ $# -gt 0 ]; do
  case $1 in
    --python | --wheels)
      [ $# -gt 1 ] || fail 2 "expected a value after $1; give it one"
      case $1=$2 in
        --wheels=*) wheels=$(realpath "$2") ;;
        *=*/*) python=$(realpath --no-symlinks "$2") ;;
        *) python=$2 ;;
      esac
      shift
      ;;
    --rehearse) rehearse=yes ;;
    -*) fail 2 "expected --python, --wheels or --rehearse, got $1; leave it out" ;;
    *) out=$1 ;;
  esac
  shift
done
[ -n "$out" ] || fail 2 "expected a folder for the report; name one: scripts/gpu_check.sh OUT"
mkdir -p "$out" || fail 2 "expected a folder that can be written, got $out; name another"
out=$(realpath "$out")
rm -f "$out"/{install,wheels,tests,bench}.txt "$out"/bench.json "$out"/report.{md,json} # of an earlier run
cd "$(dirname "$0")/.." || exit 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1

steps=()
step() { # a name, seconds at most, a command: its output is in OUT/name.txt
  local name=$1 limit=$2 began=$SECONDS left=$((TOTAL - SECONDS)) status=124
  shift 2
  [ "$limit" -lt "$left" ] || limit=$left
  if [ "$limit" -gt 0 ]; then
    timeout --signal=INT --kill-after=10 "$limit" "$@" >"$out/$name.txt" 2>&1 # pytest then sums up what failed
    status=$?
  fi
  steps+=("$name=$status:$((SECONDS - began)):$limit")
  echo "$name: status $status after $((SECONDS - began)) s"
  return "$status"
}

sees_card() { # an interpreter that has PyTorch, and a card to compute on unless this is a rehearsal
  timeout "$PROBE" "$1" -c "import sys, torch; sys.exit(not ('$rehearse' or torch.cuda.is_available()))" 2>/dev/null
}

found=""
for one in ${python:-.venv/bin/python python3}; do
  if sees_card "$one"; then
    found=$one
    break
  fi
done
if [ -z "$found" ]; then
  none="this machine has no GPU that PyTorch sees: run it where one is, or with --rehearse on the CPU"
  [ -z "$python" ] && { [ -n "$rehearse" ] || [ -e /dev/nvidia0 ]; } || fail 3 "$none"
  python3 -m venv "$work/venv" || fail 1 "expected Python's venv; install python3-venv or name an interpreter by --python"
  found=$work/venv/bin/python
  if step install "$INSTALL" "$found" -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt; then
    sees_card "$found" || fail 3 "$none"
  fi
fi
if [ -n "$wheels" ]; then
  step wheels "$INSTALL" "$found" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-compile \
    --target "$work/site" "$wheels"/*.whl
  export PYTHONPATH=$work/site${PYTHONPATH:+:$PYTHONPATH}
fi

marked=gpu shapes=(--device cuda)
[ -z "$rehearse" ] || marked="not gpu and not long" shapes=(--device cpu --tiny --seconds 0.1)
step tests "$TESTS" "$found" -m pytest tests/gpu -m "$marked" -v -p no:cacheprovider
step bench "$BENCH" "$found" -m bench.gpu "${shapes[@]}" --out "$out/bench.json"

machine=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null) || machine="no card"
"$found" -m scripts.gpu_report "$out" --machine "$machine" "${steps[@]}"
