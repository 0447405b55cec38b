"""The guide to a first day is what really happens."""

import sys

from berthlib import BUILD, REPO

sys.path.insert(0, str(REPO / "tests/tools"))
import transcript  # noqa: E402


def test_the_first_day_happens_as_told(make_instance, tmp_path):
    berth = make_instance()  # ends whatever is left, daemon included
    env = transcript.environment(BUILD, tmp_path)
    env["BERTH_DIR"] = str(berth.dir)
    _, differences = transcript.play(REPO / "docs/guide/first-day.md", tmp_path, env)
    assert not differences, differences
