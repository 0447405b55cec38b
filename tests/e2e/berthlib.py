"""A berth instance of a test's own, and whatever tests need to look at it from outside.

Everything an Instance started is gone after close(): the daemon, the probes, the supervisors and
what runs below them. Waiting is always for a condition, with a generous limit, never for a time.
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid

REPO = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(
    os.environ.get("BERTH_BUILD") or REPO / "build"
).resolve()
BIN = BUILD / "bin"
LONG = os.environ.get("BERTH_TEST_LONG") == "1"
PATIENCE = 60.0  # seconds; only ever used up by a test that fails
GIB = 1024**3
TERMINAL = ("succeeded", "failed", "killed", "cancelled")

SOCKET_PATH_MAX = 100  # of sun_path's 108


class ApiError(Exception):
    """The daemon answered, and the answer is an error."""

    def __init__(self, status, body):
        self.status = status
        self.body = body
        super().__init__(f"HTTP {status}: {json.dumps(body)}")


class Gone(ConnectionError):
    """No daemon answers, or it died before its answer was complete."""


def eventually(condition, what, timeout=PATIENCE, every=0.02):
    """Asks again until `condition` returns something true, and returns that."""
    until = time.monotonic() + timeout
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > until:
            raise AssertionError(f"after {timeout:.0f} s still not: {what}")
        time.sleep(every)


# --- processes ------------------------------------------------------------------------------------


def read_bytes(path):
    """The content, or nothing where it cannot be read: processes come and go."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def process_stat(pid):
    """(state, start ticks) of a process; None when there is none."""
    text = read_bytes(f"/proc/{pid}/stat")
    fields = text[text.rfind(b")") + 2 :].split()
    return (fields[0].decode(), int(fields[19])) if len(fields) > 19 else None


def alive(pid):
    stat = process_stat(pid)
    return stat is not None and stat[0] not in "ZX"


def kill_process(pid, start_ticks=None, number=signal.SIGKILL):
    """Signals exactly that process, not a later one with its pid. Whether it was there."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        stat = process_stat(pid)
        if stat is None or stat[0] in "ZX" or start_ticks not in (None, stat[1]):
            return False
        signal.pidfd_send_signal(pidfd, number)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(pidfd)


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


# --- the API --------------------------------------------------------------------------------------


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        patience = time.monotonic() + (self.timeout or 60)
        while True:
            try:
                return self.sock.connect(str(self.path))
            except BlockingIOError:  # the queue of connections is full for a moment
                if time.monotonic() > patience:
                    raise
                time.sleep(0.01)


def job(script="true", *, argv=None, gpus=0, name="", **fields):
    """A job of the submit request: a shell script, or `argv` executed as it is."""
    low, high = gpus if isinstance(gpus, tuple) else (gpus, gpus)
    commands = [{"shell": False, "argv": list(argv)}] if argv else [shell(script)]
    return {
        "name": name,
        "gpus": {"min": low, "max": high},
        "cwd": fields.pop("cwd", "/"),
        "commands": fields.pop("commands", commands),
        **fields,
    }


def shell(script):
    return {"shell": True, "argv": [script]}


def unique_key():
    return uuid.uuid4().hex


class Instance:
    """One BERTH_DIR and, from start() on, its daemon."""

    def __init__(self, base, *, gpus="none", env=None, bin_dir=BIN, name="b", user=None):
        base = pathlib.Path(base)
        self._short = None
        if len(str(base / name / "sock")) > SOCKET_PATH_MAX:
            self._short = base = pathlib.Path(tempfile.mkdtemp(prefix="berth-", dir="/tmp"))
        self.dir = base / name
        self.gpus = gpus
        self.env = dict(env or {})
        self.bin_dir = pathlib.Path(bin_dir)
        self.user = user  # whose daemon it is, where root runs the tests; None: ours
        self.log = base / f"{name}.log"  # what its daemons said, one after the other
        self.daemon = None

    # -- the daemon

    def environment(self, extra=None):
        env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.dir),
            "BERTH_DIR": str(self.dir),
            "BERTH_GPUS": self.gpus,
        }
        # How a sanitizer reports, and where coverage goes, is for whoever runs the tests to say.
        env.update({k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")})
        env.update(self.env)
        env.update(extra or {})
        return env

    def start(self, env=None, *, args=(), must=True, timeout=PATIENCE):
        """Starts the daemon and waits until it serves. With `must` false, returns False when it
        died before that."""
        assert self.daemon is None or self.daemon.poll() is not None, "it runs already"
        ready, tell = os.pipe()
        try:
            with open(self.log, "ab") as log:
                self.daemon = subprocess.Popen(
                    [str(self.bin_dir / "berthd"), *args],
                    env=self.environment({**(env or {}), "BERTH_READY_FD": str(tell)}),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[tell],
                    **({} if self.user is None else {"user": self.user, "group": self.user,
                                                     "extra_groups": []}),
                )
            os.close(tell)
            tell = -1
            if not select.select([ready], [], [], timeout)[0]:
                raise AssertionError(f"no daemon after {timeout} s\n{self.log_tail()}")
            line = os.read(ready, 65536).decode(errors="replace").strip()
        finally:
            os.close(ready)
            if tell >= 0:
                os.close(tell)
        if line == "ready":
            return True
        self.daemon.wait(timeout)
        if must:
            raise AssertionError(f"the daemon did not start: {line}\n{self.log_tail()}")
        return False

    def run_daemon(self, env=None, *, args=(), timeout=PATIENCE, **popen):
        """Runs a daemon that is expected to end by itself: (exit code, what it said)."""
        done = subprocess.run(
            [str(self.bin_dir / "berthd"), *args],
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            **popen,
        )
        return done.returncode, done.stdout.decode(errors="replace")

    @property
    def pid(self):
        return self.daemon.pid

    def running(self):
        return self.daemon is not None and self.daemon.poll() is None

    def stop(self, how="api", timeout=PATIENCE):
        """A clean stop, by request ("api") or by signal; its exit code."""
        if how == "api":
            self.api("POST", "/api/stop")
        else:
            self.daemon.send_signal(how)
        return self.daemon.wait(timeout)

    def kill9(self):
        """Ends the daemon as a power cut would. Whether it was still there to be ended."""
        if not self.running():
            return False
        self.daemon.kill()
        self.daemon.wait()
        return True

    def restart(self, env=None):
        self.kill9()
        self.start(env)

    def log_text(self):
        return read_bytes(self.log).decode(errors="replace")

    def log_tail(self, lines=60):
        return "".join(self.log_text().splitlines(keepends=True)[-lines:])

    # -- requests

    def api(self, method, path, body=None, timeout=PATIENCE):
        connection = UnixConnection(self.dir / "sock", timeout)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            status, text = answer.status, answer.read()
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException) as error:
            raise Gone(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()
        decoded = json.loads(text) if text else None
        if status != 200:
            raise ApiError(status, decoded)
        return decoded

    def submit(self, jobs, key=None, **fields):
        """Submits one job or a list of them; the list of ids."""
        jobs = jobs if isinstance(jobs, list) else [jobs]
        body = {
            "key": key or unique_key(),
            "environment": [f"PATH={os.environ.get('PATH', '/usr/bin:/bin')}", "LANG=C.UTF-8"],
            "jobs": jobs,
            **fields,
        }
        first, last = self.api("POST", "/api/jobs", body)["ids"]
        return list(range(first, last + 1))

    def submit_one(self, *args, key=None, **fields):
        [only] = self.submit(job(*args, **fields), key=key)
        return only

    def wait(self, ids, timeout=PATIENCE):
        """Waits until all have ended; their job objects, by id."""
        until = time.monotonic() + timeout
        text = ",".join(map(str, ids))
        while True:
            left = max(0, until - time.monotonic())
            answer = self.api("GET", f"/api/wait?ids={text}&timeout_ms={int(min(left, 10) * 1000)}")
            if answer["done"]:
                return {j["id"]: j for j in answer["jobs"]}
            if left == 0:
                open_jobs = [(j["id"], j["state"], j["reason"]) for j in self.jobs()]
                open_jobs = [j for j in open_jobs if j[1] not in TERMINAL]
                raise AssertionError(f"after {timeout:.0f} s these have not ended: {open_jobs}")

    def wait_one(self, job_id, timeout=PATIENCE):
        return self.wait([job_id], timeout)[job_id]

    def wait_all(self, timeout=PATIENCE):
        ids = [j["id"] for j in self.jobs("queued,running,paused")]
        return self.wait(ids, timeout) if ids else {}

    def wait_state(self, job_id, *states, timeout=PATIENCE):
        return eventually(
            lambda: (j := self.show(job_id)["job"])["state"] in states and j,
            f"job {job_id} is {' or '.join(states)}",
            timeout,
        )

    def wait_started(self, job_id, timeout=PATIENCE):
        """Waits until the job's supervisor has written START; its (attempt id, supervisor pid)."""

        def look():
            attempts = self.show(job_id)["attempts"]
            shim = self.shims().get(attempts[-1]["id"]) if attempts else None
            return shim and (attempts[-1]["id"], shim[0])

        return eventually(look, f"job {job_id} has started", timeout)

    def jobs(self, states=None):
        found, after = [], 0
        while after is not None:
            path = f"/api/jobs?limit=1000&after={after}" + (f"&state={states}" if states else "")
            page = self.api("GET", path)
            found += page["jobs"]
            after = page["next"]
        return found

    def show(self, job_id):
        return self.api("GET", f"/api/jobs/{job_id}")

    def why(self, job_id):
        """The reasons of a waiting job, as one text."""
        return "\n".join(r["text"] for r in self.api("GET", f"/api/jobs/{job_id}/why")["reasons"])

    def kill_jobs(self, ids, grace_ms=None):
        body = {"ids": list(ids)}
        if grace_ms is not None:
            body["grace_ms"] = grace_ms
        return self.api("POST", "/api/jobs/kill", body)

    def status(self):
        return self.api("GET", "/api/status")

    # -- programs

    def cli(self, *words, check=None, env=None, timeout=PATIENCE, **run):
        """Runs `berth` on this instance; with `check` given, its exit code must be that."""
        done = subprocess.run(
            [str(self.bin_dir / "berth"), *map(str, words)],
            env=self.environment(env),
            stdin=run.pop("stdin", subprocess.DEVNULL),
            capture_output=True,
            text=True,
            timeout=timeout,
            **run,
        )
        if check is not None:
            assert done.returncode == check, f"berth {words}: {done}"
        return done

    def simgpu(self, *words):
        subprocess.run(
            [str(self.bin_dir / "berth-simgpu"), *map(str, words)],
            env={"PATH": "/usr/bin:/bin", "BERTH_SIM_DIR": str(self.dir / "simgpu")},
            check=True,
            timeout=PATIENCE,
        )

    # -- what is left on the machine

    def records(self):
        """The attempts' records: {attempt id: text}."""
        found = {}
        with contextlib.suppress(FileNotFoundError):
            for path in (self.dir / "attempts").iterdir():
                if path.suffix == ".rec":
                    found[int(path.stem)] = read_bytes(path).decode(errors="replace")
        return found

    def shims(self):
        """Supervisors that have written START and live: {attempt id: (pid, start ticks)}."""
        found = {}
        for attempt, text in self.records().items():
            start = re.search(r"^START .*?pid=(\d+) start=(\d+)", text, re.MULTILINE)
            if start and (stat := process_stat(int(start[1]))) and stat[0] not in "ZX":
                if stat[1] == int(start[2]):
                    found[attempt] = (int(start[1]), int(start[2]))
        return found

    def belongs(self, pid):
        """Whether the process is the daemon's, a supervisor or something of a job of ours."""
        directory = os.fsencode(self.dir)
        environ = read_bytes(f"/proc/{pid}/environ").split(b"\0")
        for entry in environ:
            name, _, value = entry.partition(b"=")
            if value == directory and name == b"BERTH_DIR":
                return True
            if name == b"BERTH_SIM_DIR" and value == directory + b"/simgpu":
                return True
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            return False
        return any(link.startswith(f"{self.dir}/") for link in links)

    def processes(self):
        """Everything of this instance that is alive, the daemon itself apart: {pid: command}."""
        daemon = self.daemon.pid if self.running() else None
        return {
            pid: read_bytes(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace")
            for pid in pids()
            if pid not in (daemon, os.getpid()) and alive(pid) and self.belongs(pid)
        }

    def probes(self):
        return [pid for pid, line in self.processes().items() if "--probe" in line]

    def assert_nothing_left(self, timeout=10):
        """No process of a job and no record: for an instance whose jobs have all ended."""
        eventually(
            lambda: not [p for p in self.processes() if p not in self.probes()],
            f"no process is left over: {self.processes()}",
            timeout,
        )
        eventually(lambda: not self.records(), f"no record is left: {self.records()}", timeout)

    def close(self, keep=False):
        """Ends everything. The directory goes too, unless somebody may want to look at it."""
        self.kill9()
        until = time.monotonic() + 30
        while (left := self.processes()) and time.monotonic() < until:
            for pid in left:
                kill_process(pid)
            time.sleep(0.01)
        for cgroup in set(re.findall(r' cgroup="(/[^"]+)"', self.log_text())):
            for child in pathlib.Path(cgroup).glob("a*"):
                with contextlib.suppress(OSError):
                    child.rmdir()
            with contextlib.suppress(OSError):
                os.rmdir(cgroup)
        if not keep:
            shutil.rmtree(self._short or self.dir, ignore_errors=True)
        assert not left, f"these processes could not be ended: {left}"
