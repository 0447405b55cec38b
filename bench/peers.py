"""The same `true` jobs, two at a time, under other tools. Used by run.py."""
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path


def xargs(count):
    subprocess.run(["xargs", "-P2", "-n1", "true"], input="\n".join(map(str, range(count))),
                   text=True, check=True)


def parallel(count):
    subprocess.run(["parallel", "-j2", "true"], input="\n".join(map(str, range(count))), text=True,
                   check=True, env=dict(os.environ, PARALLEL_HOME=tempfile.gettempdir()),
                   stderr=subprocess.DEVNULL)


def task_spooler(count):
    directory = tempfile.mkdtemp(prefix="berth-bench-")
    env = dict(os.environ, TS_SOCKET=directory + "/ts", TMPDIR=directory, TS_MAXFINISHED="10")
    try:
        subprocess.run(["tsp", "-S", "2"], env=env, check=True)
        for _ in range(count):
            subprocess.run(["tsp", "-n", "true"], env=env, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["tsp", "-n", "true"], env=env, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["tsp", "-w"], env=env, check=True)
    finally:
        subprocess.run(["tsp", "-K"], env=env)
        shutil.rmtree(directory, ignore_errors=True)


def pueue(programs):
    def run(count):
        directory = tempfile.mkdtemp(prefix="berth-bench-")
        env = dict(os.environ, HOME=directory, XDG_RUNTIME_DIR=directory, XDG_DATA_HOME=directory,
                   XDG_CONFIG_HOME=directory, PATH=f"{programs}:{os.environ['PATH']}")
        quiet = {"env": env, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        daemon = subprocess.Popen(["pueued"], **quiet)
        try:
            for _ in range(100):
                if subprocess.run(["pueue", "status"], **quiet).returncode == 0:
                    break
                time.sleep(0.1)
            subprocess.run(["pueue", "parallel", "2"], check=True, **quiet)
            for _ in range(count):
                subprocess.run(["pueue", "add", "--", "true"], check=True, **quiet)
            subprocess.run(["pueue", "wait"], check=True, **quiet)
        finally:
            daemon.terminate()
            daemon.wait(30)
            shutil.rmtree(directory, ignore_errors=True)
    return run


def berth(build):
    """As a user would: one `berth add` per job, then a wait for the last."""
    def run(count):
        directory = tempfile.mkdtemp(prefix="berth-bench-")
        program = str(build / "bin/berth")
        env = dict(os.environ, BERTH_DIR=directory, BERTH_GPUS="none")
        try:
            subprocess.run([program, "status"], env=env, check=True, stdout=subprocess.DEVNULL)
            subprocess.run([program, "set", "max_concurrent=2"], env=env, check=True,
                           stdout=subprocess.DEVNULL)
            for _ in range(count):
                subprocess.run([program, "add", "--gpus", "0", "true"], env=env, check=True,
                               stdout=subprocess.DEVNULL)
            subprocess.run([program, "wait", "all"], env=env, check=True, stdout=subprocess.DEVNULL)
        finally:
            subprocess.run([program, "stop"], env=env, stdout=subprocess.DEVNULL)
            shutil.rmtree(directory, ignore_errors=True)
    return run


def berth_file(build):
    """One job file for all of them, as one would rather do it."""
    def run(count):
        directory = tempfile.mkdtemp(prefix="berth-bench-")
        env = dict(os.environ, BERTH_DIR=directory, BERTH_GPUS="none")
        file = Path(directory) / "jobs.yaml"
        file.write_text("version: 1\nrules: {max_concurrent: 2}\njobs:\n"
                        '  - {name: "t{n}", run: ["true"], gpus: 0, matrix: {n: [%s]}}\n'
                        % ", ".join(map(str, range(count))))
        try:
            subprocess.run([build / "bin/berth", "run", file], env=env, check=True,
                           stdout=subprocess.DEVNULL)
        finally:
            subprocess.run([build / "bin/berth", "stop"], env=env, stdout=subprocess.DEVNULL)
            shutil.rmtree(directory, ignore_errors=True)
    return run


def find_pueue(build):
    """The directory of pueue's programs: on PATH, or from the Rust package registry."""
    if shutil.which("pueued"):
        return Path(shutil.which("pueued")).parent, None
    root = build / "pueue"
    if not (root / "bin/pueued").exists():
        if not shutil.which("cargo"):
            return None, "there is no cargo to build it with"
        done = subprocess.run(["cargo", "install", "pueue", "--locked", "--quiet", "--root", root],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return None, "the Rust package registry is out of reach, or it does not build here"
    return root / "bin", None


def measure(build, count, rounds):
    """[(tool, what it keeps, jobs per second or None, note)], best of `rounds`."""
    tools = [("xargs -P2", "nothing: no queue, no log", xargs, shutil.which("xargs")),
             ("GNU parallel -j2", "nothing; output in order", parallel, shutil.which("parallel")),
             ("task-spooler", "queue in memory; one `tsp` per job", task_spooler,
              shutil.which("tsp"))]
    programs, why = find_pueue(build)
    tools.append(("pueue", "queue in a file; one `pueue add` per job", pueue(programs), programs))
    tools.append(("berth add", "durable queue, log, verdict; one `berth add` per job",
                  berth(build), True))
    tools.append(("berth run", "durable queue, log, verdict; one file", berth_file(build), True))
    rows = []
    for name, keeps, run, there in tools:
        if not there:
            rows.append((name, keeps, None, why or "not installed"))
            continue
        best = 0.0
        for _ in range(rounds):
            begin = time.monotonic()
            run(count)
            best = max(best, count / (time.monotonic() - begin))
        rows.append((name, keeps, best, ""))
    return rows


def table(rows, count):
    lines = [f"| tool | what it keeps | `true` jobs per second, two at a time ({count} jobs) |",
             "|---|---|---|"]
    for name, keeps, rate, note in rows:
        lines.append(f"| {name} | {keeps} | {f'{rate:.0f}' if rate else f'skipped: {note}'} |")
    return "\n".join(lines)
