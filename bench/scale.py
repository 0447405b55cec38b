"""What a million queued jobs cost: time, memory, latency. Used by run.py."""
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")

# A backlog that can never start where there is no GPU: three shapes in two queues.
FILE = """version: 1
name: scale
jobs:
  - name: "e{{a}}-{{b}}"
    run: python train.py --seed {{a}} --fold {{b}}
    gpus: {gpus}
    queue: wait{queue}
    matrix: {{a: [{a}], b: [{b}]}}
"""


def write_file(path, count):
    """A job file of one matrix whose jobs number `count`, a multiple of 1000."""
    numbers = ", ".join(map(str, range(count // 1000)))
    path.write_text(FILE.format(gpus=1, queue=0, a=numbers, b=", ".join(map(str, range(1000)))))


def memory(pid):
    """Bytes of the process's own memory that are resident."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise SystemExit("the daemon is gone")


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


SHARES = (0.5, 0.9, 0.99, 0.999)


def submit_batch(daemon, build, count):
    """Seconds from the start of `berth run --detach` to its end: read, expanded, sent, durable."""
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as directory:
        file = Path(directory) / "scale.yaml"
        write_file(file, count)
        begin = time.monotonic()
        done = subprocess.run([build / "bin/berth", "run", "--detach", "--json", file],
                              env=dict(os.environ, BERTH_DIR=daemon.dir), check=True,
                              capture_output=True, text=True)
        took = time.monotonic() - begin
    first, last = json.loads(done.stdout)["ids"]
    assert last - first + 1 == count
    return took


def latencies(daemon, build, job, samples):
    """Milliseconds of each durable submit, and from each start of a serial queue to the next."""
    submit = []
    for _ in range(samples):
        begin = time.perf_counter()
        daemon.submit([job(["true"], "wait0", gpus=1)])
        submit.append((time.perf_counter() - begin) * 1000)
    stamps = f"{daemon.dir}/stamps{time.monotonic_ns()}"
    first, last = daemon.submit([job([str(build / "bench/stamp"), stamps], "serial")] * samples,
                                [{"name": "serial", "limit": 1}])
    daemon.wait(first, last)
    times = [int(line) for line in open(stamps)]
    return submit, [(b - a) / 1e6 for a, b in zip(times, times[1:])]


def pages(daemon, count, rounds):
    """The slowest kind of 50-row page: (its query, milliseconds at the 99th percentile)."""
    middle = random.Random(1).randrange(count // 4, count // 2)
    now = int(time.time() * 1000)
    queries = ["", "order=desc", "state=queued", "state=failed", "state=queued&order=desc",
               "queue=wait0", "queue=serial&state=succeeded&order=desc", "batch=1",
               "batch=1&state=queued", f"after={middle}", f"ids={middle}-{middle + 49}",
               f"state=succeeded&since={now - 3_600_000}", f"since={now - 60_000}&order=desc"]
    worst = ("", 0.0)
    for query in queries:
        times = []
        for _ in range(rounds):
            begin = time.perf_counter()
            daemon.call("GET", "/api/jobs?limit=50" + ("&" + query if query else ""))
            times.append((time.perf_counter() - begin) * 1000)
        worst = max(worst, (query or "all", percentile(times, 0.99)), key=lambda kind: kind[1])
    return worst


def restart(daemon, build):
    """Seconds from starting the program to its first answer."""
    daemon.stop()
    begin = time.monotonic()
    daemon.start()
    daemon.call("GET", "/api/status")
    return time.monotonic() - begin


def idle(build, Daemon, seconds):
    """Share of one core and resident bytes of a daemon with eight GPUs and nothing to do."""
    with Daemon(build, gpus="sim:8x24GiB") as daemon:
        daemon.call("GET", "/api/gpus")
        time.sleep(3)
        before, begin = cpu_seconds(daemon.process.pid), time.monotonic()
        time.sleep(seconds)
        share = (cpu_seconds(daemon.process.pid) - before) / (time.monotonic() - begin)
        return share, memory(daemon.process.pid)


def note_shares(out, size, submit, start):
    for kind, values in (("submit", submit), ("start", start)):
        out[f"{kind}_shares_{size}"] = [percentile(values, share) for share in SHARES]


def measure(build, Daemon, job, count, samples, idle_seconds):
    """All of it, as {name: value}."""
    out = {"jobs": count}
    with Daemon(build) as daemon:
        daemon.submit([job(["true"], f"wait{i % 2}", gpus=1 + i % 3) for i in range(1000)])
        submit, start = latencies(daemon, build, job, samples)
        out["submit_small"], out["start_small"] = map(statistics.median, (submit, start))
        note_shares(out, "small", submit, start)
    with Daemon(build) as daemon:
        base = memory(daemon.process.pid)
        out["batch_seconds"] = submit_batch(daemon, build, count)
        time.sleep(2)
        out["bytes_per_job"] = (memory(daemon.process.pid) - base) / count
        submit, start = latencies(daemon, build, job, samples)
        out["submit_large"], out["start_large"] = map(statistics.median, (submit, start))
        note_shares(out, "large", submit, start)
        out["submit_p999"], out["start_p999"] = (percentile(v, 0.999) for v in (submit, start))
        out["page_query"], out["page_p99"] = pages(daemon, count, 100)
        out["loop"] = daemon.call("GET", "/api/status")["loop"]
        out["restart_seconds"] = restart(daemon, build)
        time.sleep(1)
        out["bytes_per_job_restarted"] = (memory(daemon.process.pid) - base) / count
        out["disk_bytes_per_job"] = os.path.getsize(daemon.dir + "/berth.db") / count
    out["idle_share"], out["idle_bytes"] = idle(build, Daemon, idle_seconds)
    return out


def figures(values, count):
    """Rows for the table: (name, measured, value, relation, goal)."""
    mib = 1024 * 1024
    return [
        (f"{count:,} jobs from one file, durable", f"{values['batch_seconds']:.1f} s",
         values["batch_seconds"], "<=", 30),
        ("daemon memory per queued job",
         f"{values['bytes_per_job']:.0f} bytes, {values['bytes_per_job_restarted']:.0f} after a restart",
         max(values["bytes_per_job"], values["bytes_per_job_restarted"]), "<=", 400),
        (f"restart with {count:,} queued, to the first answer", f"{values['restart_seconds']:.2f} s",
         values["restart_seconds"], "<=", 3),
        (f"submit at {count:,} queued against 1,000, median",
         f"{values['submit_large']:.2f} against {values['submit_small']:.2f} ms",
         values["submit_large"] / values["submit_small"], "<=", 1.2),
        (f"next start at {count:,} queued against 1,000, median",
         f"{values['start_large']:.2f} against {values['start_small']:.2f} ms",
         values["start_large"] / values["start_small"], "<=", 1.2),
        ("submit, 99.9th percentile, checkpoints included", f"{values['submit_p999']:.1f} ms",
         values["submit_p999"], "<=", 25),
        ("next start, 99.9th percentile, checkpoints included", f"{values['start_p999']:.1f} ms",
         values["start_p999"], "<=", 25),
        (f"slowest kind of 50-row page (`{values['page_query']}`), 99th percentile",
         f"{values['page_p99']:.1f} ms", values["page_p99"], "<=", 10),
        ("longest a task held the loop (processor time)",
         f"{values['loop']['longest_us'] / 1000:.1f} ms of {values['loop']['tasks']:,} tasks",
         values["loop"]["longest_us"] / 1000, "<=", 5),
        ("idle daemon with 8 GPUs, share of a core", f"{values['idle_share'] * 100:.2f} %",
         values["idle_share"] * 100, "<=", 0.2),
        ("idle daemon with 8 GPUs, resident", f"{values['idle_bytes'] / mib:.1f} MB",
         values["idle_bytes"] / mib, "<=", 30),
    ]
