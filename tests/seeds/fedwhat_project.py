"""A FedWhat project of a test's own: a program, a config, `python` and `gpu_scheduler` on the PATH."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys

from berthlib import PATIENCE, eventually, kill_process

# Says what it was given, fails where a file asks for it, and ends when it is let go.
PROGRAM = """
import os, sys, time
words = sys.argv[1:]
algorithm = words[words.index("--algo") + 1]
with open(words[words.index("--cfp") + 1]) as config:
    print("words", words, "config", config.read().split(), flush=True)
if os.path.exists("fail-" + algorithm):
    sys.exit("the loss of " + algorithm + " is not a number")
while os.path.exists("hold-" + algorithm):
    time.sleep(0.02)
print(algorithm, "is done", flush=True)
"""


def experiment(name, algorithm=None, **extra):
    """An entry of a job file."""
    return (
        f'  - name: "{name}"\n    config: "configs/x.yaml"\n    algorithm: "{algorithm or name}"\n'
        f'    log_path: "logs/{name}.log"\n'
        + (f"    extra_args: {json.dumps(extra)}\n" if extra else "")
    )


class Project:
    """One folder, whose experiments run on one instance."""

    def __init__(self, berth, folder):
        self.berth = berth
        self.folder = folder
        (folder / "configs").mkdir(parents=True)
        (folder / "configs" / "x.yaml").write_text("dataset: cifar10 # small\nseed: 0\n")
        (folder / "test.py").write_text(PROGRAM)
        self.programs = make_programs(berth, folder / "bin")

    def environment(self, **extra):
        return self.berth.environment({"PATH": f"{self.programs}:{os.environ['PATH']}", **extra})

    def write(self, *names, file="jobs.yaml"):
        """A job file with experiments of these names, or as they are given."""
        text = "".join(n if n.startswith("  -") else experiment(n) for n in names)
        (self.folder / file).write_text("jobs:\n" + text)
        return file

    def start(self, *words, **popen):
        return subprocess.Popen(
            [str(word) for word in words], cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **popen,
        )

    def shell(self, line, check=0, **env):
        """Runs a line as it stands in the document; what it said."""
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.folder, env=self.environment(**env), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=4 * PATIENCE,
        )
        assert check is None or done.returncode == check, f"{line}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def run(self, *words, file="jobs.yaml", check=0):
        """gpu_scheduler on a job file."""
        return self.shell(" ".join(map(str, ("gpu_scheduler --job-file", file, *words))), check=check)

    def submit(self, *names, words=()):
        """Experiments that are not waited for; their jobs by name."""
        before = {j["id"] for j in self.berth.jobs()}
        self.write(*names)
        self.run("--detach", *words)
        return {j["name"]: j["id"] for j in self.berth.jobs() if j["id"] not in before}

    def hold(self, *algorithms):
        for algorithm in algorithms:
            (self.folder / f"hold-{algorithm}").touch()

    def let_go(self, *algorithms):
        for algorithm in algorithms:
            (self.folder / f"hold-{algorithm}").unlink(missing_ok=True)

    def fail(self, algorithm):
        (self.folder / f"fail-{algorithm}").touch()

    def log(self, name):
        path = self.folder / "logs" / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def end_all(self):
        """For the next test: nothing waits or runs."""
        self.berth.cli("kill", "--grace", "0", "all")
        self.berth.wait_all()


def make_programs(berth, folder):
    """A folder for the PATH that has `python`, `berth` and `gpu_scheduler`."""
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    for name in ("berth", "gpu_scheduler"):
        (folder / name).symlink_to(berth.bin_dir / "berth")
    return folder


def started(text):
    """The names of the experiments that one run started, in this order."""
    return re.findall(r"job \d+ (\S+) started", text)


def card(berth, gpu):
    return berth.api("GET", "/api/gpus")["gpus"][gpu]


def as_another_user():
    """Words before a command that make it another user's, who may write to the simulated cards. Only root can become
    somebody else: without that it stays a process of our own, outside berth."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return [], None
    return ["setpriv", "--reuid", "65534", "--inh-caps", "+dac_override", "--ambient-caps", "+dac_override", "--"], 65534


@contextlib.contextmanager
def strangers(berth, before=(), **cards):
    """Processes outside berth, as in gpu0=("4GiB", 20): memory they hold, and how busy they are. `before`: words that
    stand before their command."""
    env = {"PATH": "/usr/bin:/bin", "BERTH_SIM_DIR": str(berth.dir / "simgpu")}
    held = {}
    try:
        for name, (memory, util) in cards.items():
            gpu = int(name.removeprefix("gpu"))
            words = ["hold", str(gpu), "--memory", memory, "--util", str(util)]
            held[gpu] = subprocess.Popen([*before, str(berth.bin_dir / "berth-simgpu"), *words], env=env,
                                         stdout=subprocess.DEVNULL)
        for gpu, process in held.items():
            util = cards[f"gpu{gpu}"][1]
            eventually(
                lambda: (c := card(berth, gpu))["utilization"] == util
                and any(p["pid"] == process.pid and p["memory"] for p in c["processes"] or []),
                f"the stranger on GPU {gpu} is seen",
            )
        yield held
    finally:
        for process in held.values():
            kill_process(process.pid)
            process.wait()
