"""For all tests that run the programs."""

import os


def pytest_runtest_logreport(report):
    """Notes what failed and is tried again, for tests/tools/tally.py to tell."""
    if report.outcome == "rerun" and (path := os.environ.get("BERTH_FLAKY")):
        crash = getattr(report.longrepr, "reprcrash", None)
        reason = crash.message.splitlines()[0][:200] if crash and crash.message else "no reason given"
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}: {reason}\n")
