#!/usr/bin/env bash
# A stand-in for a training run: takes GPU memory, shows load, prints its steps.
#
# On simulated GPUs it is berth-simgpu's workload. Elsewhere it only prints and sleeps, so the
# examples also run on a machine whose GPUs are real, without touching them.
set -euo pipefail

lr=${1:?usage: train.sh LR SEED} seed=${2:?usage: train.sh LR SEED}
echo "training with lr=$lr seed=$seed on GPU ${CUDA_VISIBLE_DEVICES:-none}"

# BERTH_SIM_DIR and BERTH_BIN_DIR are in the environment of every job on simulated GPUs.
if [[ -n ${BERTH_SIM_DIR:-} ]] &&
   simgpu=$(command -v berth-simgpu || command -v "${BERTH_BIN_DIR:-.}/berth-simgpu"); then
  exec "$simgpu" train --memory 4GiB --time 2s --util 70 --steps 8
fi
for step in {1..8}; do
  sleep 0.25
  echo "step $step/8"
done
