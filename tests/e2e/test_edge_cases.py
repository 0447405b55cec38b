"""Every row of docs/failures.md, done to a real instance.

A case brings about what its row describes and returns what the user is shown; the row says what
that must be. A row without a case fails, and so does a case without a row.
"""

import contextlib
import errno
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib

import pytest

from berthlib import (
    LONG,
    PATIENCE,
    ApiError,
    alive,
    eventually,
    job,
    kill_process,
    process_stat,
    shell,
)
from failures import CASES, PAGE, ROWS, Seen, World, case, fits, refused, shown
from trouble import HungMount, JumpingClock, SmallDisk, stranger


@pytest.fixture
def world(make_instance, tmp_path):
    return World(make_instance, tmp_path)


@pytest.mark.parametrize("slug", sorted(ROWS))
def test_case(world, slug):
    assert slug in CASES, f"{PAGE.name} has a row '{slug}' that nobody tests"
    seen = CASES[slug](world)
    assert fits(seen, ROWS[slug]), f"{slug}:\n  the page says {ROWS[slug]}\n  there was    {seen}"


def test_every_case_has_a_row():
    assert set(CASES) - set(ROWS) == set()


def test_the_comparison_can_fail():
    row = Seen("failed", "exit", "exited with code <n>; really")
    assert fits(Seen("failed", "exit", "exited with code 3; really"), row)
    for wrong in (
        Seen("killed", "exit", "exited with code 3; really"),
        Seen("failed", None, "exited with code 3; really"),
        Seen("failed", "exit", "exited with code 3; reallx"),
        Seen("failed", "exit", None),
    ):
        assert not fits(wrong, row)
    assert not fits(Seen("succeeded", None, "but"), Seen("succeeded", None, None))


# --- it cannot start ------------------------------------------------------------------------------


@case("command-not-found")
def command_not_found(world):
    [word] = world.berth.cli("add", "--gpus", 0, "no-such-program", check=0).stdout.split()
    seen = world.look(int(word))
    log = world.berth.cli("log", word)
    assert log.stdout == "" and seen.message in log.stderr  # an empty log is not the last word
    return seen


@case("path-not-found")
def path_not_found(world):
    return world.run(argv=["./gone.sh"], cwd=str(world.directory))


@case("not-executable")
def not_executable(world):
    return world.run(argv=[str(world.file("data", "#!/bin/sh\n"))])


@case("is-a-directory")
def is_a_directory(world):
    return world.run(argv=[str(world.directory)])


@case("interpreter-missing")
def interpreter_missing(world):
    return world.run(argv=[str(world.file("script", "#!/no/such/sh\n", 0o755))])


@case("argument-too-long")
def argument_too_long(world):
    long = "x" * 200_000
    with pytest.raises(OSError) as caught:
        world.berth.cli("add", "echo", long)
    assert caught.value.errno == errno.E2BIG  # so it cannot even reach `berth add`
    with pytest.raises(ApiError) as wire:
        world.berth.submit_one(argv=["echo", long])
    assert wire.value.status == 400
    file = world.file("long.yaml", f"version: 1\njobs:\n  - run: [[echo, {long}]]\n")
    done = world.berth.cli("run", file)
    assert done.returncode == 1 and "long.yaml:3:" in done.stderr and "131071" in done.stderr
    assert world.berth.jobs() == []
    return Seen("refused", None, wire.value.body["error"]["message"])


@case("arguments-too-long")
def arguments_too_long(world):
    return world.run(argv=["echo"] + ["x" * 100_000] * 30)


@case("cwd-deleted")
def cwd_deleted(world):
    here = world.directory / "here"
    here.mkdir()
    gate = world.directory / "gate"
    first = world.berth.submit_one(f"until [ -e {gate} ]; do sleep 0.02; done")
    second = world.berth.submit_one("true", cwd=str(here), after=[first])
    here.rmdir()
    gate.touch()
    return world.look(second)


@case("submit-from-nowhere")
def submit_from_nowhere(world):
    here = world.directory / "here"
    here.mkdir()
    inside = f'cd "$0" && rmdir "$0" && exec {world.berth.bin_dir}/berth add --gpus 0 "$@"'

    def add(*words):
        here.mkdir(exist_ok=True)
        return subprocess.run(
            ["sh", "-c", inside, str(here), *words],
            env=world.berth.environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    with_cwd = add("--cwd", "/", "true")  # then it does not matter where we are
    assert with_cwd.returncode == 0, with_cwd
    assert world.look(int(with_cwd.stdout)).state == "succeeded"
    return refused(add("true"))


@case("cwd-forbidden")
def cwd_forbidden(world):
    with stranger() as berth:
        closed = berth.base / "closed"
        closed.mkdir(mode=0)
        try:
            return world.look(berth.submit_one("true", cwd=str(closed)), berth)
        finally:
            closed.chmod(0o700)


@case("log-not-writable")
def log_not_writable(world):
    with stranger() as berth:
        log = berth.base / "log"
        log.write_text("")
        log.chmod(0o444)
        return world.look(berth.submit_one("true", log=str(log)), berth)


@case("log-is-a-directory")
def log_is_a_directory(world):
    return world.run("true", log=str(world.directory))


# --- it ends badly --------------------------------------------------------------------------------


@case("exit-code")
def exit_code(world):
    seen = world.run("exit 3")
    assert world.berth.show(1)["job"]["exit_code"] == 3
    return seen


@case("later-command")
def later_command(world):
    ran = world.directory / "ran"
    commands = [shell("true"), shell("exit 4"), shell(f"touch {ran}")]
    seen = world.run(commands=commands)
    assert not ran.exists()
    return seen


@case("signal")
def a_signal(world):
    seen = world.run("kill -SEGV $$")
    assert world.berth.show(1)["attempts"][0]["signal"] == signal.SIGSEGV
    return seen


@case("time-limit")
def time_limit(world):
    seen = world.run("sleep 1000", time_ms=700)
    world.berth.assert_nothing_left()
    return seen


@case("kill")
def kill(world):
    job_id = world.berth.submit_one("sleep 1000")
    world.berth.wait_started(job_id)
    assert world.berth.cli("kill", job_id, check=0).stdout == f"killed: {job_id}\n"
    seen = world.look(job_id)
    world.berth.assert_nothing_left()
    return seen


@case("kill-stubborn")
def kill_stubborn(world):
    ready = world.directory / "ready"
    job_id = world.berth.submit_one(
        f"trap '' TERM; (trap '' TERM; sleep 1000) & touch {ready}; while :; do sleep 1000; done"
    )
    eventually(ready.exists, "the trap is set")
    world.berth.cli("kill", job_id, "--grace", "300ms", check=0)
    seen = world.look(job_id)
    assert world.berth.show(job_id)["attempts"][0]["signal"] == signal.SIGKILL
    world.berth.assert_nothing_left()
    return seen


@case("kill-waiting")
def kill_waiting(world):
    first = world.berth.submit_one("sleep 1000")
    second = world.berth.submit_one("true", after=[first])
    assert world.berth.cli("kill", second, check=0).stdout == f"cancelled: {second}\n"
    return world.look(second)


@case("dependency-failed")
def dependency_failed(world):
    first = world.berth.submit_one("sleep 0.3; exit 1")
    return world.look(world.berth.submit_one("true", after=[first]))


@case("leftovers")
def leftovers(world):
    seen = world.run("sleep 1000 & exit 0", grace_ms=300)
    world.berth.assert_nothing_left()
    return seen


# Of what berth would try again by itself, the first end is what is told here.
FINAL = {"retry_config.node_lost": "0"}


def without_survivors(seen):
    """Whether the command was still there when it was looked for is a matter of luck."""
    message = re.sub("; 1 process of it was still running and was ended", "", seen.message)
    return seen._replace(message=message)


@case("supervisor-killed")
def supervisor_killed(world):
    job_id = world.berth.submit_one("sleep 1000", rules=FINAL)
    _, shim = world.berth.wait_started(job_id)
    eventually(lambda: len(world.berth.processes()) > 1, "the command runs")
    assert kill_process(shim)
    world.berth.wait_one(job_id)
    world.berth.assert_nothing_left()
    return without_survivors(shown(world.berth, job_id))


@case("reboot")
def reboot(world):
    berth = world.make_instance()
    berth.start({"BERTH_TEST_BOOT_ID": "boot-one"})
    job_id = berth.submit_one("sleep 1000", rules=FINAL)
    berth.wait_started(job_id)
    berth.kill9()
    for pid in berth.processes():
        kill_process(pid)
    eventually(lambda: not berth.processes(), "the machine is off")
    berth.start({"BERTH_TEST_BOOT_ID": "boot-two"})
    return world.look(job_id, berth)


@case("pid-reused")
def pid_reused(world):
    """The record names a process that lives but is another. While the record's lock is held, as by
    a child that hangs before its command, only the start time tells that it is not the shim."""
    berth = world.berth
    job_id = berth.submit_one("sleep 1000", rules=FINAL)
    attempt, shim = berth.wait_started(job_id)
    berth.kill9()
    kill_process(shim)
    eventually(lambda: not alive(shim), "the supervisor is dead")
    time.sleep(0.1)  # start times have a resolution of 10 ms
    innocent = subprocess.Popen(["sleep", "1000"])
    try:
        path = berth.dir / "attempts" / f"{attempt}.rec"
        [start] = [line for line in path.read_text().splitlines() if line.startswith("START")]
        ticks = int(re.search(r"start=(\d+)", start)[1])
        assert process_stat(innocent.pid)[1] != ticks
        body = re.sub(r"pid=\d+", f"pid={innocent.pid}", start.rpartition(" *")[0])
        path.write_text(f"{body} *{zlib.crc32(body.encode()):08x}\n")
        with open(path) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            berth.start()
            eventually(lambda: "event=ending" in berth.log_text(), "it is looked at")
            assert "event=adopted" not in berth.log_text()
            assert berth.show(job_id)["job"]["state"] == "running"
        berth.wait_one(job_id)
        berth.assert_nothing_left()
        assert innocent.poll() is None, "the innocent process was hit"
    finally:
        innocent.kill()
        innocent.wait()
    return without_survivors(shown(berth, job_id))


# --- it goes on -----------------------------------------------------------------------------------


@case("not-utf8")
def not_utf8(world):
    berth = world.berth
    odd = b"\xff\xfe caf\xe9 \xc3\xa9 \x01"
    here = os.fsencode(world.directory) + b"/d\xff"
    os.mkdir(here)
    script = b'printf "%s|" "$1" "$ODD" "$EXTRA" "${PWD##*/}"'
    done = subprocess.run(
        [os.fsencode(berth.bin_dir / "berth"), b"add", b"--gpus", b"0", b"--env", b"EXTRA=" + odd]
        # A short command: the table has room for its beginning alone.
        + [b"--env", b"SCRIPT=" + script, b"--log", here + b"/log\xfe"]
        + [b"--", b"bash", b"-c", b'eval "$SCRIPT"', b"-", odd],
        env={**berth.environment(), b"ODD": odd},
        cwd=here,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done
    job_id = int(done.stdout)
    seen = world.look(job_id)
    with open(here + b"/log\xfe", "rb") as log:
        assert log.read() == b"|".join([odd, odd, odd, b"d\xff"]) + b"|"
    for words in (["ls"], ["show", job_id], ["ls", "--json"], ["show", job_id, "--json"]):
        out = berth.cli(*words, check=0).stdout  # decoded strictly: what is printed is UTF-8
        assert "\x01" not in out and "caf" in out, out
        if "--json" in words:
            json.loads(out)
        else:
            assert "\ufffd\ufffd caf\ufffd é \\x01" in out, out
    assert subprocess.run(
        [str(berth.bin_dir / "berth"), "log", str(job_id)],
        env=berth.environment(),
        capture_output=True,
    ).stdout.startswith(odd)
    return seen


@case("log-directory-removed")
def log_directory_removed(world):
    assert world.run("echo one").state == "succeeded"
    shutil.rmtree(world.berth.dir / "logs")
    assert world.berth.cli("log", 1).returncode == 1
    seen = world.run("echo two")
    assert world.berth.cli("log", 2, check=0).stdout == "two\n"
    return seen


@case("log-parent-missing")
def log_parent_missing(world):
    log = world.directory / "not" / "yet" / "here.log"
    seen = world.run("echo here", log=str(log))
    assert log.read_text() == "here\n"
    return seen


@case("log-limit")
def log_limit(world):
    world.berth.cli("set", "log_limit=64KiB", check=0)
    seen = world.run("seq 100000")
    text = world.berth.cli("log", 1, check=0).stdout
    assert text.startswith("1\n2\n") and text.endswith("\n99999\n100000\n")
    assert "bytes left out here, log_limit is 64KiB]\n" in text
    assert len(text) <= 65536 + 100
    return seen


# Half a second's worth at once, again and again.
PRINTER = """
import sys, time
count = int(sys.argv[1])
begun = time.monotonic()
for first in range(0, count, 50_000):
    lines = b"".join(b"line %d\\n" % n for n in range(first, first + 50_000))
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()
    time.sleep(max(0, begun + (first + 50_000) / 100_000 - time.monotonic()))
"""


@case("fast-output")
def fast_output(world):
    count = 3_000_000 if LONG else 300_000
    job_id = world.berth.submit_one(argv=[sys.executable, "-c", PRINTER, str(count)])
    slowest = 0.0
    while world.berth.show(job_id)["job"]["state"] in ("queued", "running"):
        begun = time.monotonic()
        world.berth.status()
        slowest = max(slowest, time.monotonic() - begun)
        time.sleep(0.05)
    assert slowest < 10
    seen = world.look(job_id)
    with open(world.berth.show(job_id)["job"]["log"], "rb") as log:
        for number in range(count):
            assert log.readline() == b"line %d\n" % number
        assert log.read() == b""
    return seen


@case("clock-jump")
def clock_jump(world):
    """The daemon alone is shown another wall clock, which jumps while jobs run and wait."""
    clock = JumpingClock(world.directory)
    berth = world.make_instance()
    berth.start(clock.environment)
    year = 365 * 86400
    gate = world.directory / "gate"
    until_gate = f"until [ -e {gate} ]; do sleep 0.02; done"
    order = world.directory / "order"
    queue = {"queue": "serial", "time_ms": 3_600_000}
    first = job(f"{until_gate}; echo 1 >> {order}", name="first", **queue)
    second = job(f"echo 2 >> {order}", **queue)
    ids = berth.submit([first, second], queues=[{"name": "serial", "limit": 1}])
    berth.wait_started(ids[0])
    before = berth.show(ids[0])["job"]["submitted_at"]
    for seconds in (year, -year, 2 * year, 0, -year):
        clock.jump(seconds)
        ids += berth.submit([job(f"echo {len(ids) + 1} >> {order}", **queue)])
        other = berth.submit_one("true")  # something happens at the new time
        assert berth.wait_one(other)["state"] == "succeeded"
        assert abs(berth.show(other)["job"]["submitted_at"] - before - 1000 * seconds) < 600_000
        assert berth.show(ids[0])["job"]["state"] == "running"
        line = berth.cli("ls", ids[0], check=0).stdout.splitlines()[1]
        assert not re.search(r"-\d", line), f"time ran backwards: {line}"
    # A limit is still a limit.
    limited = berth.submit_one("sleep 1000", time_ms=500)
    assert berth.wait_one(limited)["failure_class"] == "timeout"
    gate.touch()
    assert {j["state"] for j in berth.wait(ids).values()} == {"succeeded"}
    assert order.read_text().split() == [str(n + 1) for n in range(len(ids))]
    berth.stop()
    clock.jump(year)
    berth.start(clock.environment)  # and nothing is different after a restart
    assert berth.show(ids[-1])["job"]["state"] == "succeeded"
    return shown(berth, ids[0])


@contextlib.contextmanager
def job_on_hung_mount(world):
    berth = world.berth
    where = world.directory / "mount"
    where.mkdir()
    with HungMount(where) as mount:
        job_id = berth.submit_one("true", cwd=f"{where}/work", name="hangs")
        eventually(lambda: mount.requests, "the job hangs in the mount")
        yield mount, job_id
        mount.let_go()
        berth.wait_one(job_id)  # the kernel lets go, and it ends


@case("cwd-hangs")
def cwd_hangs(world):
    with job_on_hung_mount(world) as (_, job_id):
        # Nobody else is held up.
        assert world.look(world.berth.submit_one("true")).state == "succeeded"
        assert world.berth.cli("ls", check=0).stdout.count("running") == 1
        seen = shown(world.berth, job_id)
        # Nor is the next daemon.
        world.berth.restart()
        assert world.look(world.berth.submit_one("true")).state == "succeeded"
        assert shown(world.berth, job_id) == seen
    # The mount is dead now, so the job could not enter its directory.
    assert shown(world.berth, job_id).failure_class == "cannot_start"
    return seen


@case("cwd-hangs-killed")
def cwd_hangs_killed(world):
    with job_on_hung_mount(world) as (_, job_id):
        world.berth.cli("kill", job_id, "--grace", "100ms", check=0)
        told = lambda: world.berth.show(job_id)["job"]["message"]
        eventually(told, "what holds it is named")
        assert world.berth.show(job_id)["attempts"][0]["state"] == "ending"
        assert world.look(world.berth.submit_one("true")).state == "succeeded"
        seen = shown(world.berth, job_id)
    assert shown(world.berth, job_id) == Seen("killed", None, "killed on request")
    return seen


def is_low(berth):
    return berth.status()["space"]["low"]


@case("disk-full-submit")
def disk_full_submit(world):
    with SmallDisk() as disk:
        berth = disk.berth
        assert world.look(berth.submit_one("true"), berth).state == "succeeded"
        disk.fill()
        eventually(lambda: is_low(berth), "the full disk is noticed")
        before = [j["id"] for j in berth.jobs()]
        done = berth.cli("add", "--gpus", 0, "true")
        assert str(berth.dir) in done.stderr
        assert [j["id"] for j in berth.jobs()] == before  # reading still works
        assert "disk space is low" in berth.cli("status", check=0).stdout
        disk.free()
        eventually(lambda: not is_low(berth), "the space is noticed")
        assert world.look(berth.submit_one("true"), berth).state == "succeeded"
        return refused(done)


@case("disk-full-running")
def disk_full_running(world):
    with SmallDisk() as disk:
        berth = disk.berth
        gate = world.directory / "gate"
        until_gate = f"until [ -e {gate} ]; do sleep 0.02; done"
        running = berth.submit([job(f"{until_gate}; exit 5") for _ in range(10)])
        waiting = berth.submit([job("true", after=[running[0]]), job(until_gate, after=running)])
        queued = berth.submit(
            [job(until_gate, queue="serial"), job("true", queue="serial")],
            queues=[{"name": "serial", "limit": 1}],
        )
        for job_id in running:
            berth.wait_started(job_id)
        disk.fill()
        eventually(lambda: is_low(berth), "the full disk is noticed")
        gate.touch()
        ended = berth.wait(running)
        assert {(j["state"], j["exit_code"]) for j in ended.values()} == {("failed", 5)}
        berth.restart()  # what was told is on the disk, and a full disk does not stop the daemon
        assert {j["state"] for j in berth.wait(running).values()} == {"failed"}
        assert "disk is full" in berth.why(queued[1])
        disk.free()
        rest = berth.wait(waiting + queued)
        assert [rest[n]["state"] for n in waiting + queued] == ["cancelled"] * 2 + ["succeeded"] * 2
        assert sorted(j["id"] for j in berth.jobs()) == running + waiting + queued
        return shown(berth, running[0])


@case("disk-full-output")
def disk_full_output(world):
    with SmallDisk() as disk:
        berth = disk.berth
        gate, halfway = world.directory / "gate", world.directory / "halfway"
        wait = lambda name: f"until [ -e {name} ]; do sleep 0.02; done"
        job_id = berth.submit_one(
            f"echo begun; {wait(gate)}; head -c 3000000 /dev/zero | tr '\\0' x; touch {halfway}; "
            f"{wait(world.directory / 'room')}; echo; echo done"
        )
        log = pathlib.Path(berth.wait_state(job_id, "running")["log"])
        eventually(lambda: log.exists() and log.read_text() == "begun\n", "it writes")
        disk.fill()
        gate.touch()
        eventually(halfway.exists, "it has written, and nobody has stopped it")
        disk.free()
        (world.directory / "room").touch()
        seen = world.look(job_id, berth)
        text = log.read_text()
        assert text.startswith("begun\n") and text.endswith("\ndone\n"), text[-200:]
        [lost] = re.findall(r"^\[berth\] (\d+) bytes of output lost: disk full$", text, re.M)
        kept = text.count("x")
        assert kept + int(lost) == 3_000_000
        assert seen.message.startswith(f"{lost} bytes")
        return seen
