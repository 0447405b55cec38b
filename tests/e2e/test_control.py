"""Pausing, resuming, moving, starting out of turn and changing, with real processes."""

import json
import os
import signal
import threading
import time

import pytest

from berthlib import REPO, ApiError, alive, eventually, job, process_stat


def counter(tmp_path, name="n"):
    """A job that counts in a file for ever, and says what its process is."""
    path = tmp_path / name
    script = (
        f"echo $$ > {path}.pid; i=0; "
        f"while :; do i=$((i+1)); echo $i >> {path}; sleep 0.02; done"
    )
    return path, job(script)


def count(path):
    return len(path.read_text().splitlines()) if path.exists() else 0


def counting(path):
    before = count(path)
    eventually(lambda: count(path) > before, f"{path.name} goes on")


def stands_still(path):
    pid = int((path.parent / f"{path.name}.pid").read_text())
    eventually(lambda: process_stat(pid)[0] == "T", "its process is stopped")
    eventually(lambda: not moved(path), "it stands still")


def moved(path):
    before = count(path)
    time.sleep(0.3)
    return count(path) != before


def kinds(berth, job_id):
    return [e["kind"] for e in berth.api("GET", f"/api/events?job={job_id}")["events"]]


def reasons(berth, job_id):
    return berth.api("GET", f"/api/jobs/{job_id}/why")["reasons"]


def order_of(tmp_path):
    path = tmp_path / "order"
    return path.read_text().split() if path.exists() else []


def noting(tmp_path, word, **fields):
    return job(f"echo {word} >> {tmp_path / 'order'}", name=word, **fields)


def blocker(tmp_path, queue):
    """A job that keeps a serial queue busy until told to end."""
    gate = tmp_path / "gate"
    return gate, job(f"until test -e {gate}; do sleep 0.02; done", name="blocker", queue=queue)


# --- pause and resume -----------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_paused_job_stands_still_and_goes_on(berth, tmp_path):
    path, spec = counter(tmp_path)
    [job_id] = berth.submit(spec)
    counting(path)
    done = berth.cli("pause", job_id, check=0)
    assert done.stdout == f"paused: {job_id}\n"
    assert berth.show(job_id)["job"]["state"] == "paused"
    stands_still(path)
    assert "berth resume" in berth.cli("why", job_id, check=0).stdout
    assert berth.status()["counts"]["paused"] == 1
    assert berth.cli("pause", job_id, check=0).stdout == f"paused already: {job_id}\n"
    assert json.loads(berth.cli("resume", job_id, "--json", check=0).stdout) == {
        "resumed": [job_id], "finished": [], "unknown": [],
    }
    counting(path)
    assert berth.show(job_id)["job"]["state"] == "running"
    assert [k for k in kinds(berth, job_id) if k in ("paused", "resumed")] == ["paused", "resumed"]


def test_pauses_survive_the_death_of_the_daemon(berth, tmp_path):
    path, spec = counter(tmp_path)
    [running] = berth.submit(spec)
    counting(path)
    gate, block = blocker(tmp_path, "car")
    [blocked] = berth.submit(block, queues=[{"name": "car", "limit": 1}])
    berth.wait_started(blocked)
    [held, in_queue] = berth.submit([job("true", queue="car"), job("true", queue="car")])
    assert berth.cli("pause", f"{running},{held}", check=0).stdout == (
        f"paused: {running}\nheld: {held}\n"
    )
    berth.cli("pause", "--queue", "car", check=0)
    stands_still(path)
    berth.kill9()
    berth.start()
    gate.touch()
    berth.wait([blocked])
    assert berth.show(running)["job"]["state"] == "paused"
    stands_still(path)
    assert berth.show(held)["job"]["state"] == "paused"
    assert reasons(berth, in_queue)[0]["kind"] == "queue_paused"
    assert "queue 'car' is paused" in berth.cli("status", check=0).stdout
    berth.cli("resume", "--queue", "car", check=0)
    assert berth.wait_one(in_queue)["state"] == "succeeded"
    assert reasons(berth, held)[0]["kind"] == "held"
    berth.cli("resume", "all", check=0)
    assert berth.wait_one(held)["state"] == "succeeded"
    counting(path)


def test_what_the_daemon_wrote_but_did_not_say_is_said_by_the_next(berth, tmp_path):
    """The shim is told again after a restart, so a resumed job does not stay stopped."""
    path, spec = counter(tmp_path)
    [job_id] = berth.submit(spec)
    counting(path)
    _, shim = berth.wait_started(job_id)
    os.kill(shim, signal.SIGSTOP)  # hears nothing for now
    try:
        berth.cli("pause", job_id, check=0)
        berth.kill9()
        berth.start()
    finally:
        os.kill(shim, signal.SIGCONT)
    stands_still(path)
    berth.cli("resume", job_id, check=0)
    counting(path)


def test_kill_ends_paused_jobs_of_both_kinds(berth, tmp_path):
    path, spec = counter(tmp_path)
    [running] = berth.submit(spec)
    counting(path)
    berth.cli("pause", running, check=0)
    stands_still(path)
    pid = int((tmp_path / "n.pid").read_text())
    [held] = berth.submit(job("true", after=[running]))
    berth.cli("pause", held, check=0)
    done = berth.cli("kill", f"{running}-{held}", check=0)
    assert f"killed: {running}\n" in done.stdout and f"cancelled: {held}\n" in done.stdout
    ended = berth.wait([running, held])
    assert ended[running]["state"] == "killed" and ended[held]["state"] == "cancelled"
    assert not alive(pid)


def test_a_paused_run_that_dies_is_held_for_its_retry(berth, tmp_path):
    path, spec = counter(tmp_path)
    [job_id] = berth.submit({**spec, "retries": 1})
    counting(path)
    berth.cli("pause", job_id, check=0)
    stands_still(path)
    os.kill(int((tmp_path / "n.pid").read_text()), signal.SIGKILL)
    eventually(lambda: berth.show(job_id)["job"]["retries_used"] == 1, "the run has ended")
    assert berth.show(job_id)["job"]["state"] == "paused"
    berth.cli("resume", job_id, check=0)
    counting(path)
    assert berth.show(job_id)["job"]["attempts"] == 2


def test_time_spent_paused_does_not_count_against_the_limit(berth, tmp_path):
    path, spec = counter(tmp_path)
    [job_id] = berth.submit({**spec, "time_ms": 3000})
    counting(path)
    berth.cli("pause", job_id, check=0)
    stands_still(path)
    time.sleep(4)
    assert berth.show(job_id)["job"]["state"] == "paused"
    berth.cli("resume", job_id, check=0)
    ended = berth.wait_one(job_id)
    assert ended["failure_class"] == "timeout"


def test_the_next_command_of_a_paused_job_waits(berth, tmp_path):
    """The first command ends at the moment of the pause, whichever comes first: no second one."""
    marks = [tmp_path / f"m{i}" for i in range(8)]
    ids = berth.submit([
        job(commands=[{"shell": True, "argv": ["sleep 0.4"]},
                      {"shell": True, "argv": [f"touch {mark}"]}]) for mark in marks
    ])
    berth.wait_started(ids[-1])
    berth.cli("pause", f"{ids[0]}-{ids[-1]}")
    states = {i: berth.show(i)["job"]["state"] for i in ids}
    paused = [i for i in ids if states[i] == "paused"]
    time.sleep(0.1)
    there = {i for i, mark in zip(ids, marks) if mark.exists()}
    time.sleep(1)
    assert {i for i, mark in zip(ids, marks) if mark.exists() and i in paused} == there & set(paused)
    berth.cli("resume", "all")
    assert all(j["state"] == "succeeded" for j in berth.wait(ids).values())


def test_a_paused_job_keeps_its_card(gpu_berth):
    berth = gpu_berth
    [first, second] = berth.submit([job("sleep 60", gpus=2), job("true", gpus=1)])
    berth.wait_state(first, "running")
    berth.cli("pause", first, check=0)
    reason = eventually(lambda: reasons(berth, second), "the second waits")[0]
    assert reason["kind"] == "gpu" and f"job {first}" in reason["text"]
    berth.cli("kill", "all", check=0)


# --- move and start -------------------------------------------------------------------------------


def test_move_changes_the_order(berth, tmp_path):
    gate, block = blocker(tmp_path, "line")
    words = ["a", "b", "c", "d", "e"]
    ids = berth.submit(
        [block] + [noting(tmp_path, w, queue="line") for w in words],
        queues=[{"name": "line", "limit": 1}],
    )
    a, b, c, d, e = ids[1:]
    berth.wait_started(ids[0])
    assert berth.cli("move", f"{d}-{e}", "--first", check=0).stdout == f"moved: {d}-{e}\n"
    berth.cli("move", a, "--last", check=0)
    berth.cli("move", c, "--before", b, check=0)
    refused = berth.cli("move", ids[0], "--last")
    assert refused.returncode == 1 and "runs already" in refused.stderr
    berth.kill9()
    berth.start()
    gate.touch()
    berth.wait(ids)
    assert order_of(tmp_path) == ["d", "e", "c", "b", "a"]
    assert "moved" in kinds(berth, d)


def test_start_jumps_the_queue(berth, tmp_path):
    gate, block = blocker(tmp_path, "line")
    ids = berth.submit(
        [block] + [noting(tmp_path, w, queue="line") for w in "abc"],
        queues=[{"name": "line", "limit": 1}],
    )
    berth.wait_started(ids[0])
    berth.cli("pause", ids[2], check=0)
    berth.cli("pause", "--queue", "line", check=0)
    done = berth.cli("start", f"{ids[2]},{ids[3]}", check=0)
    assert done.stdout == f"start next: {ids[2]}-{ids[3]}\n"
    berth.wait(ids[2:])
    assert sorted(order_of(tmp_path)) == ["b", "c"]
    assert berth.show(ids[1])["job"]["state"] == "queued"
    assert "expedited" in kinds(berth, ids[3])
    gate.touch()
    berth.cli("resume", "--queue", "line", check=0)
    berth.wait(ids)


def test_start_says_what_going_first_does_not_help_against(berth, tmp_path):
    gate, block = blocker(tmp_path, "line")
    [first] = berth.submit([block])
    berth.wait_started(first)
    follower = berth.submit_one("true", after=[first])
    done = berth.cli("start", follower, check=0)
    assert f"start next: {follower}\njob {follower} still waits: " in done.stdout
    assert f"job {first}" in done.stdout.splitlines()[1]
    gate.touch()
    berth.wait([follower])


# --- set ------------------------------------------------------------------------------------------


def test_set_changes_waiting_jobs(berth, tmp_path):
    gate, block = blocker(tmp_path, "line")
    ids = berth.submit([block, job("sleep 60", queue="line")], queues=[{"name": "line", "limit": 1}])
    berth.wait_started(ids[0])
    done = berth.cli(
        "set", ids[1], "name=better", "queue=other", "priority=2", "retries=0", "time=500ms",
        "grace=1s", "memory=1MiB", check=0,
    )
    assert done.stdout == f"changed: {ids[1]}\n"
    ended = berth.wait_one(ids[1])
    assert ended["name"] == "better" and ended["queue"] == "other" and ended["priority"] == 2
    assert ended["failure_class"] == "timeout"
    late = berth.cli("set", ids[0], "name=x", "gpus=2")
    assert late.returncode == 1 and "too late for gpus" in late.stderr
    berth.cli("set", ids[0], "name=known", "retries=3", check=0)
    shown = berth.show(ids[0])["job"]
    assert (shown["name"], shown["retries"]) == ("known", 3)
    gate.touch()
    berth.wait(ids)
    gone = berth.cli("set", ids[0], "name=late", check=0)
    assert gone.stdout == f"had already ended: {ids[0]}\n"


def test_rules_of_this_run_and_saved_ones(berth):
    assert berth.cli("set", "max_concurrent", check=0).stdout == "0\n"
    done = berth.cli("set", "max_concurrent=1", "queue.car.limit=2", check=0)
    assert "max_concurrent = 1 (for this run; --save keeps it)" in done.stdout
    [first, second] = berth.submit([job("sleep 60"), job("true")])
    assert eventually(lambda: reasons(berth, second), "it waits")[0]["kind"] == "max_concurrent"
    berth.cli("kill", "all", check=0)
    berth.wait([first, second])
    config = berth.dir / "berth.yaml"
    config.write_text("# ours\nmax_utilization: 50 # shared\nresources:\n  licence: 3\n")
    berth.restart()
    rules = {r["key"]: r for r in json.loads(berth.cli("set", "--json", check=0).stdout)["rules"]}
    assert (rules["max_concurrent"]["value"], rules["max_concurrent"]["source"]) == ("0", "default")
    assert rules["max_utilization"]["value"] == "50"
    assert rules["max_utilization"]["source"] == "berth.yaml"
    assert rules["resources.licence"]["value"] == "3"
    assert rules["queue.car.limit"]["value"] == "2"
    berth.cli("set", "max_utilization=60", "resources.licence=4", "keep_finished=7d", "--save",
              check=0)
    assert config.read_text() == (
        "# ours\nmax_utilization: 60 # shared\nresources:\n  licence: 4\nkeep_finished: 7d\n"
    )
    berth.restart()
    assert berth.cli("set", "keep_finished", check=0).stdout == "7d\n"
    listed = berth.cli("set", check=0).stdout
    assert "keep_finished" in listed and "berth.yaml" in listed and "default" in listed


def test_mistakes_in_berth_yaml_are_told_and_ignored(berth):
    berth.stop()
    (berth.dir / "berth.yaml").write_text("max_concurent: 3\nmax_utilization: much\nkeep_jobs: 5\n")
    berth.start()
    status = berth.cli("status", check=0).stdout
    assert "berth.yaml:1: there is no rule 'max_concurent'" in status
    assert "did you mean 'max_concurrent'?" in status
    assert "berth.yaml:2: max_utilization: expected" in status
    assert "event=settings_problem" in berth.log_text()
    assert berth.cli("set", "keep_jobs", check=0).stdout == "5\n"
    wrong = berth.cli("set", "max_concurent=3")
    assert wrong.returncode == 2 and "did you mean" in wrong.stderr


def test_the_documentation_knows_every_rule(berth):
    text = (REPO / "docs/formats/berth-yaml.md").read_text()
    rules = json.loads(berth.cli("set", "--json", check=0).stdout)["rules"]
    listed = [r for r in rules if not r["key"].startswith(("resources.", "queue."))]
    assert listed
    for rule in listed:
        default = f"{rule['default']} |"
        assert f"| `{rule['key']}` |" in text and default in text and rule["help"] in text, rule


# --- usage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["pause"], "--queue NAME"),
        (["pause", "3", "--queue", "x"], "--queue NAME"),
        (["move", "3"], "--first, --last, --before ID"),
        (["move", "3", "--first", "--last"], "give one of"),
        (["move", "all", "--first"], "no place among themselves"),
        (["start"], "IDS"),
        (["set", "3-4"], "KEY=VALUE"),
        (["set", "3", "colour=red"], "these can: name, queue"),
        (["set", "3", "gpu_memory=0"], "more than 0"),
        (["set", "max_concurrent", "--save"], "--save needs"),
        (["set", "a=1", "b"], "not of the form"),
    ],
)
def test_wrong_usage_says_what_is_right(berth, words, says):
    done = berth.cli(*words)
    assert done.returncode == 2 and says in done.stderr, done


def test_what_is_not_there_is_told(berth):
    [ended] = berth.submit(job("true"))
    berth.wait([ended])
    done = berth.cli("pause", f"{ended},999")
    assert done.returncode == 1
    assert done.stdout == f"had already ended: {ended}\n" and "no job 999" in done.stderr
    done = berth.cli("pause", "--queue", "nobody")
    assert done.returncode == 1 and "there is no queue 'nobody'" in done.stderr
    assert "no jobs" in berth.cli("resume", "all", check=0).stdout
    with pytest.raises(ApiError, match="either ids"):
        berth.api("POST", "/api/jobs/pause", {})


def test_many_jobs_at_once_leave_the_daemon_answering(berth):
    """Requests about many jobs are done in parts: others are answered in between."""
    berth.cli("set", "queue.later.limit=1", check=0)
    first = berth.submit([job("sleep 60", queue="later")])
    ids = berth.submit([job("true", queue="later")] * 4000)
    slowest = 0.0
    done = threading.Event()

    def look():
        nonlocal slowest
        while not done.is_set():
            begun = time.monotonic()
            berth.api("GET", f"/api/jobs/{first[0]}")
            slowest = max(slowest, time.monotonic() - begun)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        answer = berth.api("POST", "/api/jobs/pause", {"all": True})
        assert answer["held"] == ids and answer["paused"] == first
        moved = berth.api("POST", "/api/jobs/move", {"ids": f"{ids[0]}-{ids[-1]}", "to": "first"})
        assert moved["moved"] == ids
        back = berth.api("POST", "/api/jobs/resume", {"ids": f"{ids[0]}-{ids[-1]}"})
        assert back["released"] == ids
    finally:
        done.set()
        watcher.join()
    assert slowest < 20
    berth.api("POST", "/api/jobs/kill", {"all": True})
    berth.wait(first)
