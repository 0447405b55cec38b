"""Fixtures of the tests that run the real programs: an instance of its own for every test."""

import pytest

import berthlib
from terminal import ScreenTerminal, Terminal


def pytest_configure(config):
    config.addinivalue_line("markers", "smoke: short and broad; run under the sanitizers, too")
    config.addinivalue_line("markers", "promise(document, heading, sentence): what a test shows")


@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call":
        item.passed = report.passed


@pytest.fixture
def make_instance(request, tmp_path):
    """Makes instances; after the test nothing they started is alive. The directory of a failed
    test stays, and what its daemons said is shown."""
    made = []

    def make(**options):
        options.setdefault("name", f"b{len(made)}" if made else "b")
        made.append(berthlib.Instance(tmp_path, **options))
        return made[-1]

    yield make
    passed = getattr(request.node, "passed", False)
    for instance in made:
        if not passed:
            print(f"--- {instance.dir}: the daemon's last words\n{instance.log_tail()}")
        instance.close(keep=not passed)


@pytest.fixture
def berth(make_instance):
    """An instance without GPUs, its daemon running."""
    instance = make_instance()
    instance.start()
    return instance


@pytest.fixture
def gpu_berth(make_instance):
    """An instance with two simulated 24 GiB cards, its daemon running."""
    instance = make_instance(gpus="sim:2x24GiB")
    instance.start()
    return instance


@pytest.fixture
def terminal():
    """Opens `berth` on terminals."""
    opened = []

    def open_one(berth, *words, env=None, command=None, kind=Terminal, **options):
        opened.append(
            kind(
                command or [str(berth.bin_dir / "berth"), *map(str, words)],
                berth.environment({"TERM": "xterm", "LANG": "C.UTF-8", **(env or {})}),
                **options,
            )
        )
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def screen_of(terminal):
    """Opens `berth` on terminals whose screens are looked at."""

    def open_one(berth, *words, **options):
        return terminal(berth, *words, kind=ScreenTerminal, **options)

    return open_one
