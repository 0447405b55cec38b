"""The API over TCP with a million jobs in the store: pages one by one, and many clients at once.

Used by run.py.
"""
import contextlib
import shutil
import sqlite3
import statistics
import subprocess
import threading
import time
from pathlib import Path

from scale import cpu_seconds, percentile

# As the console asks: newest first, filtered, searched by name, and far down the list.
MIDDLE = "after={middle}"
KINDS = ["", MIDDLE, "state=queued", "state=failed", f"state=failed&{MIDDLE}",
         "state=succeeded,failed,killed,cancelled", "queue=queue-3", f"queue=queue-3&{MIDDLE}",
         "batch=40", "queue=queue-4&state=failed", "ids={middle}-{to}"]
SORTED = ["sort=priority", "sort=state", "sort=started", "sort=ended", "state=failed&sort=ended",
          "queue=queue-3&sort=started"]
SEARCHES = ["q=lr-42", f"q=LR-42&{MIDDLE}", "state=failed&q=seed", "batch=40&q=lr-7-", "q=nothing"]
QUEUES = ["queue-1", "queue-2", "queue-3", "queue-4"]
# Per second. The jobs come by twos: one can start at once, the other when the first has ended.
FLOW = 10
ACTS = 4
SETTLING = 1.5  # seconds until the streams are open and pages are asked for


def targets(kinds, jobs):
    middle = jobs // 2
    return [f"/api/jobs?limit=50&order=desc{'&' if kind else ''}"
            + kind.format(middle=middle, to=middle + 49) for kind in kinds]


def run(build, program, daemon, arguments, lines):
    """What the program prints when it is done."""
    done = subprocess.run([build / "bench" / program, str(daemon.port), daemon.token,
                           *map(str, arguments)], input="".join(line + "\n" for line in lines),
                          stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def make_store(build, directory, jobs):
    """The file of a store with so many jobs."""
    file = Path(directory) / "berth.db"
    subprocess.run([build / "bench/fill_store", file, str(jobs)], check=True)
    return file


@contextlib.contextmanager
def opened(build, Daemon, store, gpus):
    """A daemon with a copy of the store, none of whose jobs can start, that listens."""
    def prepare(directory):
        shutil.copy(store, directory + "/berth.db")
        # Its jobs ended long ago.
        Path(directory, "berth.yaml").write_text("keep_finished: 0\nkeep_jobs: 0\n")

    with Daemon(build, prepare=prepare) as daemon:
        for queue in QUEUES:
            daemon.call("POST", "/api/jobs/pause", {"queue": queue})
        daemon.stop()
        daemon.gpus = gpus
        daemon.start()
        daemon.call("POST", "/api/ui", {})
        daemon.port = daemon.call("GET", "/api/listen")["port"]
        daemon.token = daemon.call("POST", "/api/tokens",
                                   {"name": "bench", "scope": "full"})["secret"]
        yield daemon


def pages(build, Daemon, store, jobs, rounds):
    """[{query, bytes, page, bare_page, bare_request}], the last three as (p50, p99, max) in ms."""
    with opened(build, Daemon, store, "none") as daemon:
        lines = run(build, "http_pages", daemon, [daemon.dir + "/berth.db", rounds],
                    targets(KINDS + SORTED + SEARCHES, jobs))
    out = []
    for line in lines:
        *times, size, target = line.split()
        times = [float(value) for value in times]
        out.append({"query": target.partition("order=desc")[2].lstrip("&") or "all",
                    "bytes": int(size), "page": times[0:3], "bare_page": times[3:6],
                    "bare_request": times[6:9]})
    return out


def page_figures(kinds):
    """Rows for the table: (name, measured, value, relation, goal)."""
    def slowest(which):
        return max((kind for kind in kinds if ("q=" in kind["query"]) == which),
                   key=lambda kind: kind["page"][1])

    def share(kind):
        return kind["page"][0] / (kind["bare_page"][0] + kind["bare_request"][0])

    def row(what, kind):
        p50, p99, longest = kind["page"]
        return (f"{what} (`{kind['query']}`), 99th percentile in ms",
                f"{p50:.2f}, {p99:.2f}, at most {longest:.2f} ms; a bare request "
                f"{kind['bare_request'][0]:.2f}, {kind['bare_request'][1]:.2f} ms", p99, "<=", 10)

    middle = statistics.median_low(map(share, kinds))
    usual = next(kind for kind in kinds if share(kind) == middle)
    return [
        row("slowest kind of page over TCP", slowest(False)),
        row("slowest kind with a search by name", slowest(True)),
        ("page over TCP against a bare page and a bare request, medians",
         f"{usual['page'][0]:.2f} against {usual['bare_page'][0]:.2f} + "
         f"{usual['bare_request'][0]:.2f} ms", middle, "<=", 2),
    ]


class Flow:
    """Short jobs in a serial queue at a steady pace, and how long each waits when nothing holds it."""

    def __init__(self, build, daemon, job):
        self.stamps = f"{daemon.dir}/stamps{time.monotonic_ns()}"
        self.jobs = [job([str(build / "bench/stamp"), self.stamps], "flow", gpus=1)] * 2
        self.daemon = daemon
        self.refused = 0

    def run(self, seconds, running=lambda: False):
        """For so long, then as long as that still runs; milliseconds of each job."""
        sent, ids, begin, ticks = [], [], time.monotonic(), 0
        while time.monotonic() < begin + seconds or running():
            time.sleep(max(0, begin + ticks / FLOW - time.monotonic()))
            ticks += 1
            now = time.monotonic_ns()
            try:
                ids += self.daemon.submit(self.jobs, [{"name": "flow", "limit": 1}])
                sent += [now, now]
            except self.daemon.Refused:
                self.refused += 1
        self.daemon.wait(ids[0], ids[-1])
        begins = [int(line) for line in open(self.stamps)]
        assert len(begins) == len(sent)
        # A stamp is over as soon as it is made, so the next may start then.
        return [(begin - max(when, before)) / 1e6
                for begin, when, before in zip(begins, sent, [0] + begins)]


def values(lines):
    return {name: float(value) for name, value in map(str.split, lines)}


def load(build, daemon, job, jobs, options):
    """The flow alone, beside the load without a pause, and alone again:
    (delays alone, delays beside it, what the clients saw)."""
    seconds = options.seconds
    calm = Flow(build, daemon, job).run(seconds / 4)
    seen = {}

    def clients():
        before = cpu_seconds(daemon.process.pid), time.monotonic()
        seen.update(values(run(build, "api_load", daemon,
                               [options.streams, options.page_rate, seconds, jobs, ACTS],
                               targets(KINDS, jobs))))
        seen["daemon_share"] = ((cpu_seconds(daemon.process.pid) - before[0])
                                / (time.monotonic() - before[1]))

    thread = threading.Thread(target=clients)
    thread.start()
    time.sleep(SETTLING)
    flow = Flow(build, daemon, job)
    busy = flow.run(1, thread.is_alive)
    thread.join()
    seen["submits_failed"] = flow.refused
    calm += Flow(build, daemon, job).run(seconds / 4)
    with sqlite3.connect(f"file:{daemon.dir}/berth.db?mode=ro", uri=True) as db:
        told = db.execute("SELECT count(*) FROM history WHERE seq > ? AND seq <= ?",
                          (seen["first_event"], seen["last_event"])).fetchone()[0]
    # That no stream skips a number says something only if the store skips none.
    assert told == seen["last_event"] - seen["first_event"]
    return calm, busy, seen


def measure_load(build, Daemon, job, store, options):
    jobs = options.backlog
    out = {}
    with opened(build, Daemon, store, "sim:8x24GiB") as daemon:
        # Two browsers and nothing else: one holds a job and lets it go, the other is told.
        out["acts"] = values(run(build, "api_load", daemon, [1, 0, 10, jobs, ACTS], []))
        out["calm"], out["busy"], out["load"] = load(build, daemon, job, jobs, options)
        out["loop"] = daemon.call("GET", "/api/status")["loop"]
    return out


def load_figures(out, options):
    """Rows for the table: (name, measured, value, relation, goal)."""
    seen = out["load"]

    def delay(what, of):
        calm, busy = of(out["calm"]), of(out["busy"])
        return (f"start of a job under that load against idle, {what}",
                f"{busy:.1f} against {calm:.1f} ms", busy / calm, "<=", 2)

    lost = seen["broken"] + seen["incomplete"]
    failed = seen["failed"] + seen["acts_failed"] + seen["submits_failed"]
    return [
        (f"failed of {options.page_rate:,} pages per second for {options.seconds:.0f} s with "
         f"{options.streams} live streams",
         f"{failed:.0f} of {seen['pages']:,.0f}; half within {seen['page_p50']:.1f}, "
         f"99 % within {seen['page_p99']:.1f} ms", failed, "<=", 0),
        ("streams dropped, or missing an event",
         f"{lost:.0f} of {seen['streams']:.0f}, with {seen['events']:,.0f} events",
         lost, "<=", 0),
        delay("median", statistics.median),
        delay("95th percentile", lambda delays: percentile(delays, 0.95)),
        ("from an act to another client's stream, 99th percentile in ms",
         f"{out['acts']['act_p50']:.0f}, {out['acts']['act_p99']:.0f} ms",
         out["acts"]["act_p99"], "<=", 1000),
        (f"the same under that load, to each of {options.streams} streams",
         f"{seen['act_p50']:.0f}, {seen['act_p99']:.0f} ms", seen["act_p99"], "<=", 1000),
        ("longest a task held the loop (processor time)",
         f"{out['loop']['longest_us'] / 1000:.1f} ms of {out['loop']['tasks']:,} tasks",
         out["loop"]["longest_us"] / 1000, "<=", 5),
        ("processor share of the daemon and of all clients, in cores",
         f"{seen['daemon_share']:.2f} and {seen['cpu_share']:.2f}",
         seen["daemon_share"] + seen["cpu_share"], "<=", 2),
    ]
