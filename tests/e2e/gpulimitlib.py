"""gpulimit on an instance of a test's own, for the tests that speak its words."""

import json
import subprocess

import pytest

from berthlib import BIN, PATIENCE, eventually

NAMES = ("gpulimit", "gpulimitc", "gpulimit_server", "gpulimit-server")


class Gpulimit:
    """gpulimit on one instance, called through a link of that name."""

    def __init__(self, berth, links):
        self.berth = berth
        self.links = links
        links.mkdir(exist_ok=True)
        for name in NAMES:
            (links / name).symlink_to(berth.bin_dir / "berth")

    def __call__(self, *words, program="gpulimit", check=0, env=None, **run):
        done = subprocess.run(
            [str(self.links / program), *map(str, words)],
            env=self.berth.environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            **run,
        )
        if check is not None:
            assert done.returncode == check, f"{program} {words}: {done}"
        return done

    def add(self, *words, **run):
        return int(self("add", *words, **run).stdout)

    def train(self, *options, memory="2GiB", seconds="600s"):
        return self.add(*options, BIN / "berth-simgpu", "train", "--memory", memory, "--time", seconds)

    def json(self, *words):
        return json.loads(self(*words, "--json").stdout)

    def status(self, task):
        return self.json("show", task)["status"]

    def wait(self, task, status):
        eventually(lambda: self.status(task) == status,
                   f"task {task} is {status}: {self.json('show', task)}")

    def process(self, task):
        """What `show` tells of a task, once that has a process."""
        return eventually(lambda: (shown := self.json("show", task))["pid"] and shown, "it has a process")

    def listed(self, *statuses):
        return [t["id"] for t in self.json("ls") if t["status"] in statuses]


@pytest.fixture
def gpulimit(make_instance, tmp_path):
    """gpulimit with one simulated card of 24 GiB, on a machine that has enough memory for it."""
    berth = make_instance(gpus="sim:1x24GiB")
    berth.start()
    berth.simgpu("set", "driver", "host_available", "64TiB")
    return Gpulimit(berth, tmp_path / "links")


@pytest.fixture
def blocked(gpulimit):
    """The same with a task that runs, beside which no other may."""
    gpulimit("set", "MAX_RUNNING_TASKS", 1)
    gpulimit.blocker = gpulimit.add("sleep", 600)
    gpulimit.wait(gpulimit.blocker, "running")
    return gpulimit
