"""Logs with a limit, and the daemon's own log."""

import json
import os
import re
import signal
import subprocess

from berthlib import PATIENCE, eventually, job, kill_process, read_bytes

MIB = 1024**2
HEAD = MIB // 2
LINES = 5 * MIB // 16 + 1000  # of 16 bytes each: five times the limit, and in the midst of a part
GAP = re.compile(rb"\[berth: (\d+) bytes left out here, log_limit is 1MiB\]\n")


def output(lines=LINES):
    return b"".join(b"line %010d\n" % i for i in range(lines))


def writer(lines=LINES, then="true"):
    return job(f"awk 'BEGIN {{ for (i = 0; i < {lines}; i++) printf \"line %010d\\n\", i }}'; {then}")


def log_of(berth, job_id, *words):
    return berth.cli("log", *words, job_id, check=0).stdout.encode()


def all_written(berth, job_id):
    """Waits for the last line of a job that goes on; at first there may be no log at all."""
    last = output()[-16:].decode()
    eventually(lambda: berth.cli("log", "-n", 1, job_id).stdout == last, "all is written")


def check_cut(text, wanted=None):
    """Head, what is missing, tail: all as it was written. How much is missing."""
    wanted = wanted or output()
    [gap] = GAP.finditer(text)
    assert text[: gap.start()] == wanted[:HEAD]
    tail = text[gap.end() :]
    assert MIB // 4 < len(tail) <= MIB // 2
    assert wanted.endswith(tail)
    missing = int(gap[1])
    assert HEAD + missing + len(tail) == len(wanted)
    return missing


def test_a_log_beyond_its_limit_keeps_head_and_tail(berth, tmp_path):
    berth.cli("set", "log_limit=1MiB", check=0)
    named = tmp_path / "named.log"
    capped, users, small = berth.submit([writer(), {**writer(), "log": str(named)}, writer(9)])
    berth.wait([capped, users, small])
    missing = check_cut(log_of(berth, capped))
    [attempt] = json.loads(berth.cli("show", "--json", capped, check=0).stdout)["attempts"]
    assert attempt["log_dropped"] == missing
    assert attempt["state"] == "succeeded" and attempt["message"] is None
    shown = berth.cli("show", capped, check=0).stdout
    assert re.search(r"\.log \([0-9.]+ MiB left out of its middle\)", shown), shown
    assert log_of(berth, capped, "-n", "2") == output()[-32:]
    # Logs that people name are theirs, and what is short stays whole.
    assert named.read_bytes() == output()
    assert log_of(berth, small) == output(9)
    assert "left out" not in berth.cli("show", small, check=0).stdout
    logs = os.listdir(os.path.dirname(attempt["log"]))
    assert not [name for name in logs if ".tail" in name]
    # It survives a restart of the daemon, as everything of an attempt does.
    berth.restart()
    assert berth.show(capped)["attempts"][0]["log_dropped"] == missing
    # No limit, from the next start on.
    berth.cli("set", "log_limit=0", check=0)
    [unlimited] = berth.submit([writer()])
    berth.wait_one(unlimited)
    assert log_of(berth, unlimited) == output()


def test_a_running_log_is_whole_for_those_who_look(berth, tmp_path):
    berth.cli("set", "log_limit=1MiB", check=0)
    go = tmp_path / "go"
    [running] = berth.submit(
        [writer(then=f"while ! test -e {go}; do sleep 0.05; done; echo the end")]
    )
    berth.wait_started(running)
    all_written(berth, running)
    check_cut(log_of(berth, running))
    with open(tmp_path / "followed", "wb") as to:
        follow = subprocess.Popen(
            [str(berth.bin_dir / "berth"), "log", "-f", str(running)],
            env=berth.environment(),
            stdin=subprocess.DEVNULL,
            stdout=to,
        )
    try:
        followed = tmp_path / "followed"
        eventually(lambda: followed.read_bytes().endswith(output()[-16:]), "it follows")
        go.touch()
        assert follow.wait(PATIENCE) == 0
    finally:
        follow.kill()
        follow.wait()
    check_cut(followed.read_bytes(), output() + b"the end\n")
    check_cut(log_of(berth, running), output() + b"the end\n")


def test_a_killed_supervisor_costs_no_kept_output(berth):
    berth.cli("set", "log_limit=1MiB", "retry_config.not_its_fault=0", check=0)
    [lost] = berth.submit([writer(then="exec sleep 1000")])
    _, shim = berth.wait_started(lost)
    all_written(berth, lost)
    assert kill_process(shim, number=signal.SIGKILL)
    berth.wait_one(lost)
    check_cut(log_of(berth, lost))
    log = berth.show(lost)["attempts"][0]["log"]
    assert os.path.exists(log + ".tail.old")
    berth.cli("rm", lost, check=0)
    eventually(lambda: not os.path.exists(log), "its log is gone")
    eventually(lambda: not os.path.exists(log + ".tail"), "with its parts")
    assert not os.path.exists(log + ".tail.old")


def follow(berth, tmp_path, *words):
    """`berth log -f` with what it prints and says in files."""
    out, err = tmp_path / "followed", tmp_path / "said"
    with open(out, "wb") as to, open(err, "wb") as said:
        return subprocess.Popen(
            [str(berth.bin_dir / "berth"), "log", "-f", *map(str, words)],
            env=berth.environment(),
            stdin=subprocess.DEVNULL,
            stdout=to,
            stderr=said,
        ), out, err


def fails_until(go, text):
    """Writes, then fails at once, or when told to; the third attempt succeeds."""
    return (f"echo {text} $BERTH_ATTEMPT_NUMBER; "
            f"while ! test -e {go}.$BERTH_ATTEMPT_NUMBER; do sleep 0.05; done; "
            "test $BERTH_ATTEMPT_NUMBER = 3")


def test_following_goes_on_with_the_next_attempt_and_names_it(berth, tmp_path):
    go = tmp_path / "go"
    [one] = berth.submit([job(fails_until(go, "attempt"), retries=5)])
    berth.wait_started(one)
    (tmp_path / "go.1").touch()
    eventually(lambda: len(berth.show(one)["attempts"]) == 2, "the second attempt")
    process, out, err = follow(berth, tmp_path, one)
    try:
        eventually(lambda: out.read_text() == "attempt 2\n", "it shows the second")
        assert f"attempt 2 of job {one}" in err.read_text()
        (tmp_path / "go.2").touch()
        eventually(lambda: out.read_text() == "attempt 2\nattempt 3\n", "it goes on")
        (tmp_path / "go.3").touch()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
    assert [w for w in err.read_text().split() if w.isdigit()] == ["2", str(one), "3", str(one)]


def test_many_are_followed_at_once_each_line_behind_its_name(berth, tmp_path):
    go = tmp_path / "go"
    for number in (1, 2, 3):
        (tmp_path / f"go.{number}").touch()
    named = [job(fails_until(go, "again"), retries=5, name="again"), job("echo other", name="other"),
             job("echo nameless")]
    first, _, last = berth.submit(named)
    process, out, _ = follow(berth, tmp_path, f"{first},{first + 1}-{last}")
    try:
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
    lines = out.read_text().splitlines()
    assert [line for line in lines if line.startswith("again")][-1] == "again | again 3"
    assert "other | other" in lines and f"{last}     | nameless" in lines


def test_a_named_log_is_written_live_appended_and_never_moved_or_cut(berth, tmp_path):
    berth.cli("set", "log_limit=64KiB", check=0)
    go, named = tmp_path / "go", tmp_path / "logs" / "mine.log"
    named.parent.mkdir()
    named.write_text("from before\n")
    inode = named.stat().st_ino
    script = fails_until(go, "live") + " || { seq -w 100000; exit 1; }"
    [one] = berth.submit([job(script, retries=5, log=str(named))])
    eventually(lambda: named.read_text() == "from before\nlive 1\n", "it is written while it runs")
    for number in (1, 2, 3):
        (tmp_path / f"go.{number}").touch()
    assert berth.wait_one(one)["state"] == "succeeded"
    numbers = "".join(f"{i:06}\n" for i in range(1, 100001))
    assert named.read_text() == f"from before\nlive 1\n{numbers}live 2\n{numbers}live 3\n"
    assert named.stat().st_ino == inode
    assert os.listdir(named.parent) == ["mine.log"]
    berth.cli("rm", one, check=0)
    assert named.exists(), "it is the user's"


def daemon_logs(instance):
    names = [n for n in os.listdir(instance.dir) if n.startswith("daemon.log")]
    return {name: read_bytes(instance.dir / name).decode() for name in names}


def test_the_daemons_log_rotates_and_has_one_line_per_event(make_instance, tmp_path):
    berth = make_instance(env={"BERTH_TEST_LOG_BYTES": "4000"})
    strange = tmp_path / 'no\nlevel=error event=forged "x"'
    berth.cli("add", "--", "true", check=0)  # starts the daemon
    berth.wait(berth.submit([job("exit 3")] * 20 + [job(argv=[str(strange / "program")])]))
    assert "event=forged" in "".join(daemon_logs(berth).values()), "it is there, inside a value"
    berth.wait(berth.submit([job("exit 3")] * 20))
    logs = eventually(
        lambda: (found := daemon_logs(berth)).keys() >= {"daemon.log", "daemon.log.1"} and found,
        "it has been rotated",
    )
    assert logs.keys() <= {"daemon.log", "daemon.log.1", "daemon.log.2", "daemon.log.3"}
    line = re.compile(r'time=\S+ level=\w+ pid=\d+ event=\w+( \w+=("([^"\\]|\\.)*"|[^\s"]*))*')
    for name, text in logs.items():
        assert len(text) <= 4000
        assert os.stat(berth.dir / name).st_mode & 0o777 == 0o600
        for entry in text.splitlines():
            assert line.fullmatch(entry), (name, entry)
    berth.cli("stop", check=0)
    eventually(lambda: "event=stopped" in daemon_logs(berth)["daemon.log"], "it has stopped")
    # What goes wrong before there is much of a daemon is told to whoever asked, and in the log.
    (berth.dir / "berth.db").write_bytes(b"no database\n" * 1000)
    failed = berth.cli("ls")
    assert failed.returncode != 0 and "berth.db" in failed.stderr
    last = daemon_logs(berth)["daemon.log"].splitlines()[-1]
    assert "level=error" in last and "event=not_started" in last and line.fullmatch(last)


def test_in_the_foreground_the_log_is_standard_error(berth):
    assert "event=ready" in berth.log_text()
    assert not daemon_logs(berth)
