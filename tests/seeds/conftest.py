"""The conformance suite: one test for each sentence by which a scheduler's document promises something.

It runs the real programs on simulated GPUs with the fixtures of the end-to-end tests.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))

from fixtures import *  # noqa: E402,F401,F403
