"""The end-to-end tests."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from fixtures import *  # noqa: E402,F401,F403
