#!/usr/bin/env bash
# Runs the experiments: bash run_gpu_aware_experiments.sh [all|multi_seed|gamma|lambda_max]
set -euo pipefail

MIN_MEMORY=${MIN_MEMORY:-8000}         # free memory a card must have, MiB
MAX_UTIL=${MAX_UTIL:-30}               # a card busier than this is left alone, percent
MAX_CONCURRENT=${MAX_CONCURRENT:-4}    # experiments at once

cd "$(dirname "${BASH_SOURCE[0]}")"
which=${1:-all}

run() {
  local options=(--min-memory "$MIN_MEMORY" --max-util "$MAX_UTIL" --max-concurrent "$MAX_CONCURRENT")
  if ! command -v python > /dev/null; then
    options+=(--template 'python3 test.py --cfp {config} --algo {algorithm} {extra_args}')
  fi
  # gpu_scheduler is a link to berth; without it, this is what it does.
  if command -v gpu_scheduler > /dev/null; then
    gpu_scheduler --job-file "$1" "${options[@]}"
  else
    berth run --dialect fedwhat --job-file "$1" "${options[@]}"
  fi
}

# One file that has failures does not keep the others from running.
failed=0
case $which in
  all | multi_seed) run jobs_multi_seed.yaml || failed=1 ;;&
  all | gamma) run jobs_gamma_sensitivity.yaml || failed=1 ;;&
  all | lambda_max) run jobs_lambda_max_sensitivity.yaml || failed=1 ;;&
  all | multi_seed | gamma | lambda_max) exit "$failed" ;;
esac
echo "usage: $0 [all|multi_seed|gamma|lambda_max]" >&2
exit 2
