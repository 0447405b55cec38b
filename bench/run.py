#!/usr/bin/env python3
"""Figures as ratios within one run: the machine may be slow or busy, the ratio should not care.

  bench/run.py [--build DIR] [--rounds N] [--jobs N] [--json FILE] [--markdown FILE]
"""
import argparse
import http.client
import json
import os
import platform
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Daemon:
    """A daemon of its own in a fresh directory, ended when the block ends."""

    def __init__(self, build):
        self.build = build

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="berth-bench-")
        self.log = open(os.path.join(self.dir, "daemon.log"), "wb")
        env = dict(os.environ, BERTH_DIR=self.dir, BERTH_GPUS="none")
        self.process = subprocess.Popen([self.build / "bin/berthd"], env=env, stderr=self.log)
        deadline = time.monotonic() + 30
        while not os.path.exists(self.dir + "/sock"):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit(f"the daemon did not start; see {self.dir}/daemon.log")
            time.sleep(0.01)
        self.connection = UnixConnection(self.dir + "/sock")
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def call(self, method, path, body=None):
        self.connection.request(method, path, None if body is None else json.dumps(body))
        response = self.connection.getresponse()
        data = json.loads(response.read())
        if response.status >= 300:
            raise SystemExit(f"{method} {path}: {data}")
        return data

    def submit(self, jobs, queues=()):
        answer = self.call("POST", "/api/jobs", {
            "environment": ["PATH=/usr/bin:/bin"], "queues": list(queues), "jobs": jobs})
        return answer["ids"]

    def wait(self, first, last):
        while not self.call("GET", f"/api/wait?ids={first}-{last}&timeout_ms=60000")["done"]:
            pass


def job(command, queue="default", gpus=0, **more):
    return {"name": "bench", "queue": queue, "gpus": {"min": gpus, "max": gpus}, "cwd": "/",
            "commands": [{"shell": False, "argv": command}], **more}


def throughput(build, count):
    """Durable `true` jobs per second, two in flight, from the first start to the last end."""
    with Daemon(build) as daemon:
        daemon.submit([job(["true"], "bench", after=[])] * 1, [{"name": "bench", "limit": 2}])
        first, last = daemon.submit([job(["true"], "bench")] * count)
        daemon.wait(first, last)
        with sqlite3.connect(f"file:{daemon.dir}/berth.db?mode=ro", uri=True) as db:
            begin, end = db.execute(
                "SELECT min(started), max(ended) FROM attempts WHERE job >= ?", (first,)).fetchone()
    return count / ((end - begin) / 1000)


def ceiling(build, count, *flags):
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as directory:
        output = subprocess.run(
            [build / "bench/ceiling", directory, build / "bin/berth-shim", str(count), *flags],
            check=True, capture_output=True, text=True)
    return float(output.stdout)


def latencies(build, queued, samples):
    """Milliseconds of a durable submit, and between one job's beginning and the next one's."""
    with Daemon(build) as daemon:
        # A backlog that can never start here, of a few shapes, in two queues.
        chunk = 5000
        for start in range(0, queued, chunk):
            size = min(chunk, queued - start)
            daemon.submit([job(["true"], f"wait{i % 2}", gpus=1 + i % 3) for i in range(size)])
        stamps = daemon.dir + "/stamps"
        submit = []
        for _ in range(samples):
            begin = time.perf_counter()
            daemon.submit([job(["true"], "wait0", gpus=1)])
            submit.append((time.perf_counter() - begin) * 1000)
        first, last = daemon.submit(
            [job([str(build / "bench/stamp"), stamps], "serial")] * samples,
            [{"name": "serial", "limit": 1}])
        daemon.wait(first, last)
        times = [int(line) for line in open(stamps)]
        assert len(times) == samples
        start = [(b - a) / 1e6 for a, b in zip(times, times[1:])]
    return statistics.median(submit), statistics.median(start)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1500)
    parser.add_argument("--backlog", type=int, default=100_000)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    build = options.build.resolve()

    rows = {name: [] for name in ("berth", "ceiling", "bare", "submit_small", "start_small",
                                  "submit_large", "start_large")}
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
        rows["ceiling"].append(ceiling(build, options.jobs))
        rows["berth"].append(throughput(build, options.jobs))
        rows["bare"].append(ceiling(build, options.jobs, "--no-commit"))
        for name, queued in (("small", 1000), ("large", options.backlog)):
            submit, start = latencies(build, queued, options.samples)
            rows["submit_" + name].append(submit)
            rows["start_" + name].append(start)

    median = {name: statistics.median(values) for name, values in rows.items()}

    def ratio(a, b):
        return statistics.median(x / y for x, y in zip(rows[a], rows[b]))

    figures = [
        ("durable throughput, share of the ceiling (same shim, log, one FULL commit per job)",
         f"{median['berth']:.0f} of {median['ceiling']:.0f} jobs/s", ratio("berth", "ceiling"),
         ">=", 0.70),
        ("durable throughput, share of the non-durable shim + `true` loop",
         f"{median['berth']:.0f} of {median['bare']:.0f} jobs/s", ratio("berth", "bare"),
         ">=", 0.40),
        (f"durable submit at {options.backlog:,} queued against 1,000",
         f"{median['submit_large']:.2f} against {median['submit_small']:.2f} ms",
         ratio("submit_large", "submit_small"), "<=", 1.2),
        (f"next start at {options.backlog:,} queued against 1,000",
         f"{median['start_large']:.2f} against {median['start_small']:.2f} ms",
         ratio("start_large", "start_small"), "<=", 1.2),
    ]
    lines = ["| figure | measured | ratio | goal | met |", "|---|---|---|---|---|"]
    all_met = True
    for name, measured, value, relation, goal in figures:
        met = value >= goal if relation == ">=" else value <= goal
        all_met &= met
        lines.append(f"| {name} | {measured} | {value:.2f} | {relation} {goal} | "
                     f"{'yes' if met else 'NO'} |")
    lines.append("")
    lines.append(f"Medians of {options.rounds} interleaved rounds, {time.strftime('%Y-%m-%d')}, "
                 f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}, "
                 f"{options.jobs:,} jobs a round.")
    text = "\n".join(lines)
    print(text)
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "median": median}, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(text + "\n")
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
