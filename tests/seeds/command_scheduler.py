"""A scheduler's directory as documents 001 and 003 have it, and a machine that runs its files.

One instance serves all tests of a file. Whatever a test leaves waiting or running is ended after it; runs that
several tests look at have ended before the first of them looks.
"""

import contextlib
import json
import os
import pathlib
import shlex
import subprocess

import berthlib
import pytest
from berthlib import GIB, PATIENCE, TERMINAL, eventually

# What a task does that waits for a word: it says that it has begun and on which cards.
TASK = """\
echo "$1 $CUDA_VISIBLE_DEVICES" >> "$2/begun"
until [ -e "$2/go-$1" ]; do sleep 0.03; done
echo "$1" >> "$2/ended"
"""

# A pipeline of the documents: it tells of itself in uni_id.json, as they say that it does. What it says at its end
# is in a file named after its first argument, the first line each time: a state, perhaps with an error_type.
PIPELINE = """\
import fcntl, json, os, pathlib, sys
name, uni_id = sys.argv[1], sys.argv[sys.argv.index("--uni_id") + 1]
here = pathlib.Path(__file__).resolve().parent
state_file = pathlib.Path(os.environ["STATE_FILE"])

def tell(**entry):
    with open(f"{state_file}.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = json.loads(state_file.read_text())
        known.setdefault(uni_id, {}).update(entry)
        fresh = state_file.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(known))
        fresh.rename(state_file)

with open(here / f"{name}.marks", "a") as marks:
    print(uni_id, os.environ["CUDA_VISIBLE_DEVICES"], file=marks)
tell(pid=os.getpid(), state="running")
script = here / f"{name}.ends"
lines = script.read_text().splitlines() if script.exists() else []
script.write_text("\\n".join(lines[1:]))
state, *error = (lines or ["normal_exit"])[0].split()
tell(state=state, **({"error_type": error[0]} if error else {}))
"""


def gib(count):
    return int(count * GIB)


class Scheduler:
    """The directory of a scheduler below that of a project."""

    def __init__(self, machine, project, name="compete_gpu_retry"):
        self.machine = machine
        self.project = pathlib.Path(project)
        self.dir = self.project / name
        self.dir.mkdir(parents=True)
        (self.project / "task.sh").write_text(TASK)
        self.submitted = []

    # -- files

    def write(self, name, text):
        file = self.dir / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8"))
        return file

    def config(self, text):
        return self.write("config.yaml", text)

    def lines(self, name):
        """Of a file in the project that commands wrote."""
        file = self.project / name
        return file.read_text("utf-8").splitlines() if file.exists() else []

    def add_pipeline(self):
        """scripts/run_pipeline.sh and its like, as the documents call them."""
        scripts = self.project / "scripts"
        scripts.mkdir(exist_ok=True)
        (scripts / "pipeline.py").write_text(PIPELINE)
        (scripts / "run_pipeline.sh").write_text(
            f"STATE_FILE={shlex.quote(str(self.logs / 'uni_id.json'))} "
            f'exec /usr/bin/python3 "$(dirname "$0")/pipeline.py" "$@"\n')
        (scripts / "set_hyperparameters.sh").write_text(f'echo "$@" >> {shlex.quote(str(self.project))}/set\n')
        return scripts

    # -- tasks that wait for a word

    def task(self, name):
        return f"bash {shlex.quote(str(self.project))}/task.sh {name} {shlex.quote(str(self.project))}"

    def cards(self):
        """Tasks that have begun: {name: "0" or "0,1"}."""
        return dict(line.split(" ", 1) for line in self.lines("begun"))

    def begun(self, *names):
        return eventually(lambda: set(names) <= set(self.cards()) and self.cards(), f"{names} have begun")

    def let_go(self, *names):
        for name in names:
            (self.project / f"go-{name}").touch()

    # -- runs

    def call(self, program, *words, code=0, cwd=None, env=None):
        done = subprocess.run(
            [str(self.machine.bin_dir / program), *map(str, words)], env=self.machine.environment(env),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, cwd=cwd or self.dir)
        assert code is None or done.returncode == code, done
        return done

    def shell(self, script, cwd=None):
        """What a user types, with the programs on the PATH."""
        env = self.machine.environment()
        env["PATH"] = f"{self.machine.bin_dir}:{env['PATH']}"
        done = subprocess.run(["bash", "-c", script], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE, cwd=cwd or self.dir)
        assert done.returncode == 0, done
        return done.stdout

    def submit(self, file="command.txt", *words):
        """The ids of its jobs by name."""
        said = json.loads(self.call("berth", "run", "--detach", "--json", file, *words).stdout)
        self.batch = said["batch"]
        first, last = said["ids"]
        ids = {self.machine.show(i)["job"]["name"]: i for i in range(first, last + 1)}
        self.submitted += ids.values()
        return ids

    def run(self, file="command.txt", *words):
        """Runs it to its end; its jobs by name."""
        ids = self.submit(file, *words)
        ended = self.machine.wait(ids.values())
        return {name: ended[i] for name, i in ids.items()}

    def check(self, file="command.txt", *words):
        return json.loads(self.call("berth", "check", "--json", file, *words).stdout)

    def jobs_of(self, text, name="command.txt"):
        """(commands, queue, memory, GPUs) of each task that a text has."""
        found = []
        for job in self.check(self.write(name, text))["jobs"]:
            commands = job["run"] if isinstance(job["run"], list) else [job["run"]]
            queue = int(job["queue"].rpartition("/")[2])
            found.append((commands, queue, job["gpu_memory"] / GIB, job["gpus"]))
        return found

    def mistakes_of(self, text, name="command.txt", *words):
        return self.call("berth", "check", self.write(name, text), *words, code=1).stderr

    def state_of(self, job):
        return self.machine.show(job)["job"]["state"]

    def why(self, job):
        """Why it waits, once somebody has looked at the cards for it."""
        text = self.machine.why(job)
        return "" if "fresh look" in text else text

    def rules(self):
        """Of the last batch, while something of it waits or runs."""
        said = json.loads(self.call("berth", "set", "--batch", self.batch, "--json").stdout)
        return {rule["key"]: rule["value"] for rule in said["rules"]}

    def rules_of(self, config):
        """What a configuration makes of the rules."""
        self.write("command.txt", "true\n1,1\n")
        self.config(config)
        return self.check()["rules"]

    def used_cards(self, config, tasks):
        """Which cards so many tasks use that run side by side as far as they may, and why the others wait."""
        self.config(config)
        names = [f"t{i}" for i in range(tasks)]
        self.write("command.txt", "\n\n".join(f"{self.task(n)}\n{i},20" for i, n in enumerate(names)))
        ids = self.submit()
        # All that may start do so at once; who waits knows why.
        eventually(lambda: all(self.state_of(i) == "running" or self.why(i) for i in ids.values()),
                   "each runs or knows why it waits")
        waiting = [i for i in ids.values() if self.state_of(i) == "queued"]
        why = [self.machine.why(i) for i in waiting]
        eventually(lambda: len(self.cards()) == tasks - len(waiting), "the others have begun")
        cards = sorted(int(c) for c in self.cards().values())
        self.end(ids)
        return cards, why

    def end(self, ids):
        """Ends what waits or runs of them."""
        with contextlib.suppress(berthlib.ApiError):
            self.machine.kill_jobs(list(ids.values()), grace_ms=0)
        self.machine.wait(ids.values())

    # -- what it leaves

    @property
    def logs(self):
        return self.dir / "logs"

    def entries(self):
        return json.loads((self.logs / "uni_id.json").read_text())

    def state(self):
        """The state file of its newest batch."""
        told = [json.loads(file.read_text()) for file in (self.logs / "state").glob("*.json")]
        return max(told, key=lambda state: state["batch"], default=None)

    def settled(self, state="completed"):
        return eventually(
            lambda: (s := self.state()) and s["state"] == state
            and "running" not in [e["state"] for e in self.entries().values()] and s,
            f"the files say {state}")

    def log(self, name="compete_gpu.log"):
        file = self.logs / name
        return file.read_text("utf-8") if file.exists() else ""


@contextlib.contextmanager
def ending_everything(machine):
    """Nothing waits or runs any more afterwards."""
    try:
        yield
    finally:
        left = [j["id"] for j in machine.jobs("queued,running,paused")]
        if left:
            machine.kill_jobs(left, grace_ms=0)
            machine.wait(left)
        # A card is free again when a look after the end of its task shows nothing on it.
        eventually(lambda: not any(gpu["claims"] for gpu in machine.api("GET", "/api/gpus")["gpus"]), "cards are free")


@contextlib.contextmanager
def process_on(machine, card, memory, *words):
    """A process of our own that holds memory of a card, outside berth; seen by it."""
    held = subprocess.Popen(
        [str(machine.bin_dir / "berth-simgpu"), "hold", str(card), "--memory", memory, "--time", "120s", *words],
        env={"PATH": "/usr/bin:/bin", "BERTH_SIM_DIR": str(machine.dir / "simgpu")}, stdout=subprocess.DEVNULL)

    def processes():
        return json.loads(machine.cli("gpus", "--json", check=0).stdout)[card]["processes"]

    try:
        eventually(lambda: any(p["pid"] == held.pid for p in processes()), "the process is seen")
        yield held
    finally:
        held.kill()
        held.wait()
    eventually(lambda: all(p["pid"] != held.pid for p in processes()), "the process is gone")


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """Ten cards of 24 GiB."""
    instance = berthlib.Instance(tmp_path_factory.mktemp("machine"), gpus="sim:10x24GiB")
    try:
        instance.start()
        yield instance
    finally:
        print(instance.log_tail(20))
        instance.close()


@pytest.fixture
def scheduler(machine, tmp_path):
    with ending_everything(machine):
        yield Scheduler(machine, tmp_path / "project")


def living(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


__all__ = ["GIB", "Scheduler", "ending_everything", "eventually", "gib", "living", "machine", "process_on",
           "scheduler", "TERMINAL"]
