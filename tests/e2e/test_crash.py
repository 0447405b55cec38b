"""SIGKILL of the daemon, of supervisors and of both, at random and at every instrumented point.

One instance lives through all of it while jobs come and go. Each job writes a line when it begins
and one when it ends; at the end those lines, the acknowledgements a client got and the database
must tell the same story: no acknowledged job lost, none run twice, no exit code lost, no id given
twice, no process left over.
"""

import collections
import contextlib
import os
import random
import signal
import sqlite3
import time

import pytest

from berthlib import LONG, TERMINAL, Gone, eventually, job, kill_process, shell

DAEMON_POINTS = (
    "before_prepare",
    "after_prepare",
    "before_commit",
    "after_commit",
    "before_spawn",
    "after_spawn",
    "exit_seen",
    "before_adopt",
    "after_adopt",
)
SHIM_POINTS = (
    "shim_before_start",
    "shim_after_start",
    "shim_before_exit_record",
    "shim_after_exit_record",
)
POINTS = DAEMON_POINTS + SHIM_POINTS
# Where a supervisor that dies takes the verdict with it.
LOSING_POINTS = ("shim_after_start", "shim_before_exit_record")

ROUNDS, KILLS = (20, 510) if LONG else (4, 135)
POINT_DEATHS_MIN = 3  # at each point, in each round
OUTSTANDING_MAX = 40
FAILURE_EXIT, FAILURE_NODE_LOST = 0, 6  # as in the database

# Of one length that divides a page: a write is cut short by SIGKILL only between two pages.
LINE = 'printf "%-63s\\n" "$BERTH_JOB_ID $BERTH_ATTEMPT $BERTH_ATTEMPT_NUMBER {}" >>"$RUNS"'
BEGIN = LINE.format("begin")
END = LINE.format("end")


class Plan:
    """One job as its client knows it."""

    def __init__(self, rng, number, runs, kind=None):
        self.kind = kind or rng.choices(
            ["plain", "retried", "two_commands", "litter", "endless"], [50, 20, 10, 10, 10]
        )[0]
        self.code = rng.choice([0, 0, 1, 3, 42, 255])
        self.retries = {"retried": rng.randint(1, 3), "plain": rng.choice([0, 0, 2])}.get(
            self.kind, 0
        )
        self.name = f"{self.kind}-{number}"
        self.kill_wanted = self.kill_acknowledged = False
        pause = rng.choice(["", "sleep 0.01;", "sleep 0.05;", "sleep 0.2;"])
        last = f"{END}; exit {self.code}"
        if self.kind == "retried":  # a new code each time, success at the third run
            last = f"{END}; exit $((BERTH_ATTEMPT_NUMBER < 3 ? BERTH_ATTEMPT_NUMBER + 10 : 0))"
        elif self.kind == "endless":
            pause, last = "sleep 1000;", f"{END}; exit 99"
        commands = [shell(f"{BEGIN}; {pause} {last}")]
        if self.kind == "two_commands":
            commands = [shell(f"{BEGIN}; {pause} true"), shell(last)]
        elif self.kind == "litter":  # somebody must end these two, whoever dies first
            commands = [shell(f"sleep 1000 & setsid sleep 1000 & {BEGIN}; {pause} {last}")]
        self.spec = job(
            name=self.name,
            commands=commands,
            retries=self.retries,
            env=[f"RUNS={runs}"],
            grace_ms=200,
            priority=rng.choice([5, 5, 4, 6]),
            # Then a death of its supervisor is charged to the job as anything else is.
            rules={"retry_config.not_its_fault": "0", "retry_config.max_retry_before_backoff": "0"},
        )

    def expected_code(self, attempt_number):
        if self.kind == "retried":
            return attempt_number + 10 if attempt_number < 3 else 0
        return self.code


class Submission:
    def __init__(self, key, plans):
        self.key = key
        self.plans = plans
        self.ids = None
        self.tries = 0


class Harness:
    def __init__(self, berth, rng, runs):
        self.berth = berth
        self.rng = rng
        self.runs = runs
        self.submissions = []
        self.plans = {}  # by id
        self.kills = collections.Counter()  # by what died how
        self.shot_attempts = set()  # whose supervisor we have killed ourselves
        self.daemons = []  # (crash point, wall clock at birth, at death)
        self.highest_id = 0

    # -- what a client does

    def send(self, submission):
        """False when the answer got lost."""
        submission.tries += 1
        try:
            ids = self.berth.submit([plan.spec for plan in submission.plans], submission.key)
        except Gone:
            return False
        assert len(ids) == len(submission.plans)
        if submission.tries == 1:  # else the daemon may have numbered it before it died
            assert ids[0] > self.highest_id, "ids must grow"
        assert not self.plans.keys() & set(ids), "an id was given twice"
        self.highest_id = max(self.highest_id, ids[-1])
        submission.ids = ids
        self.plans.update(zip(ids, submission.plans))
        return True

    def submit_new(self, count=None, kind=None):
        number = len(self.submissions)
        count = count or self.rng.choice([1, 1, 1, 2, 5])
        plans = [Plan(self.rng, f"{number}.{i}", self.runs, kind) for i in range(count)]
        self.submissions.append(Submission(f"key-{number}", plans))
        return self.send(self.submissions[-1]) and self.submissions[-1].ids

    def resend_lost(self):
        return all(self.send(s) for s in self.submissions if s.ids is None)

    def repeat_a_known_key(self):
        """A client that repeats what was acknowledged gets the same ids."""
        known = [s for s in self.submissions if s.ids is not None]
        if known:
            submission = self.rng.choice(known)
            with contextlib.suppress(Gone):
                specs = [plan.spec for plan in submission.plans]
                assert self.berth.submit(specs, submission.key) == submission.ids

    def kill_endless(self, everything=False):
        wanted = [
            (job_id, plan)
            for job_id, plan in self.plans.items()
            if plan.kind == "endless" and not plan.kill_acknowledged
        ]
        for job_id, plan in wanted if everything else wanted[:1]:
            plan.kill_wanted = True
            try:
                answer = self.berth.kill_jobs([job_id], grace_ms=0)
            except Gone:
                return
            assert job_id not in answer["unknown"], f"job {job_id} was acknowledged"
            plan.kill_acknowledged = True

    def outstanding(self):
        try:
            counts = self.berth.status()["counts"]
        except Gone:
            return 0
        return counts["queued"] + counts["running"]

    # -- what misfortune does

    def shoot_shims(self, most=1):
        shims = list(self.berth.shims().items())
        self.rng.shuffle(shims)
        for attempt, (pid, ticks) in shims[:most]:
            # Written down first: from here on its verdict may be lost.
            self.shot_attempts.add(attempt)
            if kill_process(pid, ticks):
                self.kills["shim"] += 1

    def birth(self, point=None):
        """Starts a daemon; false when it died before it served."""
        env = {"BERTH_CRASH_AT": point} if point else {}
        self.daemons.append([point.split(":")[0] if point else None, time.time(), None])
        return self.berth.start(env, must=False)

    def death(self, patience=0.0):
        """Waits for the daemon to die of its point, else kills it."""
        point = self.daemons[-1][0]
        until = time.monotonic() + patience
        while self.berth.running() and time.monotonic() < until:
            time.sleep(0.005)
        shot = self.berth.kill9()
        assert self.berth.daemon.returncode == -signal.SIGKILL, "it ended of something else"
        self.kills["daemon" if shot else point] += 1
        self.daemons[-1][2] = time.time()

    def open_some_attempts(self):
        """Leaves jobs running with no daemon, so that the next one has something to adopt."""
        if self.birth() and self.resend_lost() and (ids := self.submit_new(2, "endless")):
            self.berth.wait_started(ids[0])
        self.death()

    def cycle_at(self, point, passes):
        """Whether somebody died there."""
        before = self.kills[point]
        if point in ("before_adopt", "after_adopt"):
            self.open_some_attempts()
        served = self.birth(f"{point}:{passes}")
        ids = None
        if served and self.resend_lost():
            ids = self.submit_new(self.rng.choice([1, 2]), "plain")
            self.kill_endless()
        if ids and point in SHIM_POINTS:
            self.await_shim_death(point, ids[0])
        self.death(patience=0.0 if point in SHIM_POINTS else 1.5)
        return self.kills[point] > before

    def await_shim_death(self, point, job_id):
        def over():
            attempts = self.berth.show(job_id)["attempts"]
            return len(attempts) > 1 or (
                attempts and attempts[0]["state"] not in ("starting", "running")
            )

        # Of several that die the first is waited for; each is counted from the database.
        eventually(over, f"the supervisor of job {job_id} has died at {point}")
        self.kills[point] += 1

    def cycle_at_random(self):
        if self.birth():
            self.resend_lost()
            if self.outstanding() < OUTSTANDING_MAX:
                self.submit_new()
            until = time.monotonic() + self.rng.choice([0.0, 0.01, 0.03, 0.06, 0.12])
            while True:
                act = self.rng.random()
                if act < 0.35:
                    self.shoot_shims(self.rng.choice([1, 1, 2, 100]))
                elif act < 0.5:
                    self.submit_new(1)
                elif act < 0.6:
                    self.kill_endless()
                elif act < 0.65:
                    self.repeat_a_known_key()
                if time.monotonic() >= until:
                    break
                time.sleep(self.rng.choice([0.0, 0.002, 0.01]))
        if self.berth.running() and self.rng.random() < 0.1:
            assert self.berth.stop(signal.SIGTERM) == 0
            self.daemons[-1][2] = time.time()
        else:
            both = self.rng.random()
            if both < 0.15:
                self.shoot_shims(100)
            self.death()
            if 0.15 < both < 0.4:  # now nobody sees it happen
                self.shoot_shims(self.rng.choice([1, 100]))

    def run(self, kills):
        """Visits every point in turn, random misfortune in between, until there were enough."""
        points, visits = [], 0
        while points or visits < POINT_DEATHS_MIN or sum(self.kills.values()) < kills:
            if not points:
                points = self.rng.sample(POINTS, len(POINTS))
                visits += 1
            if self.rng.random() < 0.5:
                passes = 1 if points[-1] in SHIM_POINTS else self.rng.choice([1, 1, 1, 2, 3, 5])
                if self.cycle_at(points[-1], passes) or self.cycle_at(points[-1], 1):
                    points.pop()
            else:
                self.cycle_at_random()

    def finish(self):
        """A quiet end: everything that was accepted comes to its end."""
        self.birth()
        assert self.resend_lost()
        self.kill_endless(everything=True)
        self.berth.wait_all(timeout=180)
        self.berth.assert_nothing_left()
        counts = self.berth.status()["counts"]
        assert self.berth.stop() == 0
        self.daemons[-1][2] = time.time()
        assert not self.berth.processes(), "a process outlived the daemon and all jobs"
        return counts

    # -- the verdict

    def begins_and_ends(self):
        """{(job, attempt): ["begin", "end"]}, in the order of the file; also per job."""
        per_attempt = collections.defaultdict(list)
        per_job = collections.defaultdict(list)
        if os.path.exists(self.runs):
            with open(self.runs, encoding="utf-8") as lines:
                for line in lines:
                    job_id, marker, number, what = line.split()
                    attempt = int(marker.rpartition(".")[2])
                    per_attempt[int(job_id), attempt].append((int(number), what))
                    per_job[int(job_id)].append((attempt, what))
        return per_attempt, per_job

    def point_at_birth_of(self, started_ms):
        for point, born, died in self.daemons:
            if born * 1000 - 2 <= started_ms <= died * 1000 + 2:
                return point
        raise AssertionError(f"an attempt of {started_ms} was started by nobody")

    def check(self, counts):
        with contextlib.closing(sqlite3.connect(self.berth.dir / "berth.db")) as db:
            db.row_factory = sqlite3.Row
            assert [tuple(r) for r in db.execute("PRAGMA integrity_check")] == [("ok",)]
            jobs = {row["id"]: row for row in db.execute("SELECT * FROM jobs")}
            attempts = list(db.execute("SELECT * FROM attempts ORDER BY id"))
            ends = collections.Counter(
                (row["job"])
                for row in db.execute(
                    f"SELECT job FROM history WHERE kind IN ({','.join('?' * 4)})", TERMINAL
                )
            )
        # Every submission got its ids, so what is there beyond them was submitted twice.
        assert jobs.keys() == self.plans.keys()
        assert sum(counts[state] for state in TERMINAL) == len(jobs) == sum(counts.values())

        lines, job_lines = self.begins_and_ends()
        assert {attempt for _, attempt in lines} <= {row["id"] for row in attempts}
        per_job = collections.defaultdict(list)
        deaths = collections.Counter()
        for row in attempts:
            self.check_attempt(row, lines.get((row["job"], row["id"]), []), deaths)
            per_job[row["job"]].append(row)
        for job_id, plan in self.plans.items():
            assert jobs[job_id]["name"] == plan.name
            assert ends[job_id] == 1, f"job {job_id} ended {ends[job_id]} times"
            self.check_job(jobs[job_id], plan, per_job[job_id])
            self.check_order(job_id, job_lines[job_id])
        for point in SHIM_POINTS:
            assert deaths[point] >= self.kills[point]
            self.kills[point] = deaths[point]

    def check_attempt(self, row, lines, deaths):
        what = f"attempt {row['id']} of job {row['job']}: {dict(row)}, lines {lines}"
        plan = self.plans[row["job"]]
        point = self.point_at_birth_of(row["started"])
        seen = [line for _, line in lines]
        assert row["ended"] is not None, what
        assert seen in ([], ["begin"], ["begin", "end"]), f"run twice: {what}"
        assert all(number == row["number"] for number, _ in lines), what
        if row["revoked"]:
            assert not seen, f"revoked, but it ran: {what}"
            deaths[point] += point == "shim_before_start"
        elif row["failure"] == FAILURE_NODE_LOST:
            shot = row["id"] in self.shot_attempts
            assert shot or point in LOSING_POINTS, f"a verdict was lost: {what}"
            deaths[point] += not shot
        elif row["killed"]:
            assert plan.kill_wanted, f"nobody wanted to kill it: {what}"
        else:
            code = plan.expected_code(row["number"])
            assert seen == ["begin", "end"], what
            assert row["exit_code"] == code and row["signal"] is None, what
            assert row["failure"] == (None if code == 0 else FAILURE_EXIT), what
            deaths[point] += point == "shim_after_exit_record"

    def check_job(self, row, plan, attempts):
        what = f"job {dict(row)}, attempts {[dict(a) for a in attempts]}"
        charged = [a for a in attempts if not a["revoked"]]
        assert [a["number"] for a in charged] == list(range(1, len(charged) + 1)), what
        assert row["attempts"] == len(charged) and row["retries_used"] == max(0, len(charged) - 1)
        assert len(charged) <= plan.retries + 1, what
        state = ("queued", "running", "paused", *TERMINAL)[row["state"]]
        if plan.kill_acknowledged and state not in ("killed", "cancelled"):
            # Whoever was asked to kill it found it ended already, by a death of its supervisor.
            assert state == "failed" and charged[-1]["failure"] == FAILURE_NODE_LOST, what
        if state in ("killed", "cancelled"):
            assert plan.kill_wanted, what
            return
        last = charged[-1]
        if state == "succeeded":
            assert last["failure"] is None and row["exit_code"] == 0, what
        else:
            assert state == "failed" and last["failure"] is not None, what
            assert len(charged) == plan.retries + 1, f"retries are left: {what}"
            assert row["failure"] == last["failure"], what
        assert all(a["failure"] is not None for a in charged[:-1]), what

    @staticmethod
    def check_order(job_id, lines):
        """Nothing of an attempt is heard any more once the next one has begun."""
        attempts = [attempt for attempt, _ in lines]
        assert attempts == sorted(attempts), f"attempts of job {job_id} overlapped: {lines}"


@pytest.mark.parametrize("number", range(ROUNDS))
def test_nothing_is_lost_or_doubled_whatever_dies_when(make_instance, tmp_path, number):
    seed = os.environ.get("BERTH_SEED") or str(random.SystemRandom().getrandbits(32))
    print(f"BERTH_SEED={seed}")
    # Every second time by the path without cgroups, which is the usual one for users.
    berth = make_instance(env={"BERTH_NO_CGROUP": "1"} if number % 2 else {})
    harness = Harness(berth, random.Random(f"{seed}.{number}"), tmp_path / "runs")
    began = time.monotonic()
    harness.run(KILLS)
    killing = time.monotonic() - began
    counts = harness.finish()
    harness.check(counts)
    print(f"{sum(harness.kills.values())} kills in {killing:.0f} s, {len(harness.plans)} jobs")
    print(dict(harness.kills))
    assert sum(harness.kills.values()) >= KILLS
    for point in (*POINTS, "daemon", "shim"):
        assert harness.kills[point] >= POINT_DEATHS_MIN, f"too few at {point}: {harness.kills}"


def reboot(berth, boot_id):
    """Everything dies at once, and the machine comes back."""
    berth.kill9()
    for pid in berth.processes():
        kill_process(pid)
    eventually(lambda: not berth.processes(), "the machine is off")
    berth.start({"BERTH_TEST_BOOT_ID": boot_id})


def test_after_a_reboot_verdicts_stand_and_the_rest_is_node_lost(make_instance):
    berth = make_instance()
    berth.start({"BERTH_TEST_BOOT_ID": "boot-one"})
    running = berth.submit_one("sleep 1000", rules={"retry_config.node_lost": "0"})
    retried = berth.submit_one("if [ $BERTH_ATTEMPT_NUMBER = 1 ]; then sleep 1000; fi; exit 0")
    gate = berth.dir / "gate"
    ended = berth.submit_one(f"until [ -e {gate} ]; do sleep 0.01; done; exit 17")
    started = [berth.wait_started(job_id)[0] for job_id in (running, retried, ended)]
    # This one ends while no daemon looks, and its supervisor leaves the verdict in the record.
    berth.kill9()
    gate.touch()
    eventually(lambda: "EXIT" in berth.records()[started[2]], "the verdict is on disk")
    reboot(berth, "boot-two")

    after = berth.wait([running, retried, ended])
    assert (after[ended]["state"], after[ended]["exit_code"]) == ("failed", 17)
    assert after[ended]["failure_class"] == "exit"
    assert (after[running]["state"], after[running]["failure_class"]) == ("failed", "node_lost")
    assert "restarted" in after[running]["message"]
    assert after[retried]["state"] == "succeeded" and after[retried]["attempts"] == 2
    first, second = berth.show(retried)["attempts"]
    assert (first["failure_class"], second["failure_class"]) == ("node_lost", None)
    berth.assert_nothing_left()


def test_a_reboot_hits_no_process_that_only_looks_like_ours(make_instance):
    """After a reboot the pids in the records belong to strangers."""
    berth = make_instance()
    berth.start({"BERTH_TEST_BOOT_ID": "boot-one"})
    job_id = berth.submit_one("sleep 1000", rules={"retry_config.node_lost": "0"})
    _, shim = berth.wait_started(job_id)
    berth.kill9()
    berth.start({"BERTH_TEST_BOOT_ID": "boot-two"})  # the same pid lives on, as a stranger's would
    assert berth.wait_one(job_id)["failure_class"] == "node_lost"
    assert kill_process(shim, number=0), "it was not ours to end"
