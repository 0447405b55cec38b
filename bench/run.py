#!/usr/bin/env python3
"""Figures as ratios within one run: the machine may be slow or busy, the ratio should not care.

  bench/run.py [--build DIR] [--rounds N] [--jobs N] [--only PART…] [--json FILE] [--markdown FILE] [--plots FOLDER]

Parts: ratios (throughput and latency against a ceiling), scale (a million queued jobs), pages (of a
million jobs, over TCP), load (the API under many clients), peers (other tools on the same jobs).
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

import api
import peers
import plot
import scale

ROOT = Path(__file__).resolve().parent.parent
PARTS = ["ratios", "scale", "pages", "load", "peers"]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Refused(SystemExit):
    """What the daemon does not do ends the bench, unless somebody reckons with it."""


class Daemon:
    """A daemon of its own in a fresh directory, ended when the block ends."""

    Refused = Refused

    def __init__(self, build, gpus="none", prepare=lambda directory: None):
        self.build = build
        self.gpus = gpus
        self.prepare = prepare

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="berth-bench-")
        self.prepare(self.dir)
        self.log = open(os.path.join(self.dir, "daemon.log"), "wb")
        self.start()
        return self

    def start(self):
        env = dict(os.environ, BERTH_DIR=self.dir, BERTH_GPUS=self.gpus)
        self.process = subprocess.Popen([self.build / "bin/berthd"], env=env, stderr=self.log)
        self.connection = UnixConnection(self.dir + "/sock")
        deadline = time.monotonic() + 30
        while True:
            try:
                self.connection.connect()
                return
            except OSError:  # not there yet, or not yet listening
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise SystemExit(f"the daemon did not start; see {self.dir}/daemon.log")
            time.sleep(0.005)

    def stop(self):
        self.connection.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def __exit__(self, *_):
        self.stop()
        self.log.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def call(self, method, path, body=None):
        self.connection.request(method, path, None if body is None else json.dumps(body))
        response = self.connection.getresponse()
        data = json.loads(response.read())
        if response.status >= 300:
            raise Refused(f"{method} {path}: {data}")
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


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1500)
    parser.add_argument("--backlog", type=int, default=1_000_000)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--peer-jobs", type=int, default=300)
    parser.add_argument("--idle-seconds", type=int, default=60)
    parser.add_argument("--page-rounds", type=int, default=300, help="of each kind of page")
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--page-rate", type=int, default=1000, help="pages per second under load")
    parser.add_argument("--seconds", type=float, default=60, help="of load, without a pause")
    parser.add_argument("--store", type=Path, help="made by fill_store before, to save the time")
    parser.add_argument("--only", nargs="*", choices=PARTS)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--plots", type=Path, help="a folder for the figures as SVG")
    options = parser.parse_args()
    build = options.build.resolve()

    parts = options.only or PARTS
    texts, numbers, all_met = [], {}, True
    for part in parts:
        print(f"== {part}", file=sys.stderr, flush=True)
        if part == "peers":
            rows = peers.measure(build, options.peer_jobs, 2)
            numbers["peers"] = rows
            texts.append(peers.table(rows, options.peer_jobs))
            continue
        if part == "ratios":
            rows, values = ratios(build, options)
        elif part == "scale":
            rows = scale.measure(build, Daemon, job, options.backlog, options.samples,
                                 options.idle_seconds)
            values = scale.figures(rows, options.backlog)
        else:
            rows, values = api_part(part, build, options)
        numbers[part] = rows
        text, met = table(values)
        all_met &= met
        texts.append(text)
    texts.append(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, {cpu_model()}, Linux "
                 f"{platform.release().split('-')[0]}, load {os.getloadavg()[0]:.1f} at the end.")
    text = "\n\n".join(texts)
    print(text)
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")
    if options.markdown:
        options.markdown.write_text(text + "\n")
    if options.plots:
        plot.write(numbers, options.plots)
    return 0 if all_met else 1


def api_part(part, build, options):
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as directory:
        store = options.store or api.make_store(build, directory, options.backlog)
        if part == "pages":
            rows = api.pages(build, Daemon, store, options.backlog, options.page_rounds)
            return rows, api.page_figures(rows)
        rows = api.measure_load(build, Daemon, job, store, options)
        return rows, api.load_figures(rows, options)


def cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def ratios(build, options):
    """Medians of interleaved rounds: (numbers, rows for the table)."""
    rows = {name: [] for name in ("berth", "ceiling", "bare")}
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
        rows["ceiling"].append(ceiling(build, options.jobs))
        rows["berth"].append(throughput(build, options.jobs))
        rows["bare"].append(ceiling(build, options.jobs, "--no-commit"))
    median = {name: statistics.median(values) for name, values in rows.items()}

    def ratio(a, b):
        return statistics.median(x / y for x, y in zip(rows[a], rows[b]))

    return rows, [
        ("durable throughput, share of the ceiling (same shim, log, one FULL commit per job)",
         f"{median['berth']:.0f} of {median['ceiling']:.0f} jobs/s", ratio("berth", "ceiling"),
         ">=", 0.70),
        ("durable throughput, share of the non-durable shim + `true` loop",
         f"{median['berth']:.0f} of {median['bare']:.0f} jobs/s", ratio("berth", "bare"),
         ">=", 0.40),
    ]


def table(figures):
    lines = ["| figure | measured | value | goal | met |", "|---|---|---|---|---|"]
    all_met = True
    for name, measured, value, relation, goal in figures:
        met = value >= goal if relation == ">=" else value <= goal
        all_met &= met
        lines.append(f"| {name} | {measured} | {value:.2f} | {relation} {goal} | "
                     f"{'yes' if met else 'NO'} |")
    return "\n".join(lines), all_met


if __name__ == "__main__":
    sys.exit(main())
