#!/usr/bin/env python3
"""A stand-in for a federated training run: holds GPU memory, prints an accuracy per round.

    python test.py --cfp configs/cifar10.yaml --algo FedAvg --seed 42

On simulated GPUs the memory and the load are those of berth-simgpu's workload. Elsewhere it only
prints, so the example also runs where the GPUs are real, without touching them. FEDWHAT_ROUND
is how long a round takes, in seconds (0.25).
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import time


def read_config(path):
    """The top level of a YAML file that has nothing but `key: value` lines."""
    config = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, colon, value = line.split("#")[0].partition(":")
            if colon and not key.startswith(" "):
                config[key.strip()] = value.strip()
    return config


def start_workload(seconds):
    """The simulated workload, where there are simulated GPUs."""
    if "BERTH_SIM_DIR" not in os.environ:
        return None
    path = os.pathsep.join([os.environ.get("BERTH_BIN_DIR", ""), os.environ.get("PATH", "")])
    program = shutil.which("berth-simgpu", path=path)
    if program is None:
        return None
    words = ["train", "--memory", "6GiB", "--util", "70", "--time", f"{seconds:.2f}s", "--steps", "1"]
    return subprocess.Popen([program, *words], stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description="A stand-in for a federated training run.")
    parser.add_argument("--cfp", required=True, help="configuration file")
    parser.add_argument("--algo", required=True)
    parser.add_argument("--seed", type=int, help="default: that of the configuration")
    parser.add_argument("--gamma", type=float, default=1e-3)
    parser.add_argument("--lambda_max", type=float, default=50)
    options = parser.parse_args()
    config = read_config(options.cfp)
    seed = options.seed if options.seed is not None else int(config.get("seed", 0))
    rounds = int(config.get("rounds", 8))
    pause = float(os.environ.get("FEDWHAT_ROUND", "0.25"))

    print(f"{options.algo} on {config.get('dataset')} with seed={seed} gamma={options.gamma} "
          f"lambda_max={options.lambda_max}, GPU {os.environ.get('CUDA_VISIBLE_DEVICES')}", flush=True)
    workload = start_workload(rounds * pause)
    numbers = random.Random(f"{options.algo} {seed} {options.gamma} {options.lambda_max}")
    best = 0.9 - 0.002 * int(config.get("classes", 10)) - abs(options.gamma - 1e-3)
    for number in range(1, rounds + 1):
        time.sleep(pause)
        accuracy = best * number / (number + 1) + numbers.uniform(-0.01, 0.01)
        print(f"round {number}/{rounds} loss={1 - accuracy:.4f} accuracy={accuracy:.4f}", flush=True)
    return workload.wait() if workload else 0


if __name__ == "__main__":
    sys.exit(main())
