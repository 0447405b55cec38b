#!/usr/bin/env python3
"""The best accuracy of every run of jobs_multi_seed.yaml: mean and deviation over the seeds.

    python scripts/aggregate_multi_seed_results.py [--format latex] [--html report.html] …

`berth results` does it, for any batch and any metric; what is given here goes there.
"""

import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent
WORDS = ["berth", "results", "jobs_multi_seed.yaml", "--metric", "accuracy", "--take", "best"]

sys.exit(subprocess.call([*WORDS, *sys.argv[1:]], cwd=FOLDER))
