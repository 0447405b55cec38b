"""Removing jobs, retention, history, backup and restore, with the real programs."""

import json
import os
import signal
import sqlite3
import subprocess
import threading

import berthlib
import pytest
from berthlib import eventually, job



def ids_of(instance):
    return [j["id"] for j in instance.jobs()]


def own_log(instance, job_id):
    return instance.dir / "logs" / str(job_id // 1000) / f"{job_id}.1.log"


def cli_json(instance, *words, check=0):
    return json.loads(instance.cli(*words, "--json", check=check).stdout)


# --- rm and clean ---------------------------------------------------------------------------------


@pytest.mark.smoke
def test_rm_forgets_a_job_and_its_log_but_not_a_log_the_user_named(berth, tmp_path):
    named = tmp_path / "mine.log"
    first = berth.submit_one("echo one")
    second = berth.submit_one("echo two", log=str(named))
    berth.wait([first, second])
    assert own_log(berth, first).exists()
    done = berth.cli("rm", f"{first}-{second}", check=0)
    assert done.stdout == f"removed jobs {first}-{second} and 1 log\n"
    assert ids_of(berth) == []
    assert not own_log(berth, first).exists()
    assert named.read_text() == "two\n"
    gone = berth.cli("show", first)
    assert gone.returncode == 1 and "no job" in gone.stderr
    again = berth.cli("rm", first)
    assert again.returncode == 1 and f"there is no job {first}" in again.stderr
    # Ids are never given again, not even after a restart.
    berth.restart()
    assert berth.submit_one("true") == second + 1


def test_rm_cancels_what_waits_and_refuses_what_runs_or_is_needed(berth):
    running = berth.submit_one("sleep 1000")
    berth.wait_started(running)
    follows = berth.submit_one("true", after=[running])
    needed = berth.submit_one("true", after=[running])
    last = berth.submit_one("true", after=[needed])
    refused = berth.cli("rm", running)
    assert refused.returncode == 1
    assert f"job {running} is running; kill it first: berth kill {running}" in refused.stderr
    answer = cli_json(berth, "rm", f"{running}-{needed}", check=1)
    assert answer["removed"] == [follows] and answer["cancelled"] == [follows]
    assert answer["running"] == [running] and answer["needed"] == [needed]
    # With those that follow it, it goes.
    answer = cli_json(berth, "rm", f"{needed},{last}")
    assert answer["removed"] == [needed, last]
    assert ids_of(berth) == [running]
    berth.kill_jobs([running], grace_ms=0)
    berth.wait([running])
    cli_json(berth, "rm", running)
    assert berth.status()["counts"]["killed"] == 0


def test_a_job_goes_on_though_what_it_followed_was_removed(berth):
    gate = berth.dir / "gate"
    slow = berth.submit_one(f"while ! [ -e {gate} ]; do sleep 0.02; done")
    quick = berth.submit_one("true")
    follower = berth.submit_one("true", after=[slow, quick])
    berth.wait([quick])
    berth.cli("rm", quick, check=0)
    berth.restart()
    gate.touch()
    assert berth.wait_one(follower)["state"] == "succeeded"


def test_clean_removes_what_has_ended_by_state_queue_and_number(berth):
    good = [berth.submit_one("true") for _ in range(4)]
    bad = berth.submit_one("false", queue="car")
    berth.wait([*good, bad])
    waiting = berth.submit_one("true", gpus=1)  # there is none
    would = cli_json(berth, "clean", "--dry-run")
    assert would["removed"] == [*good, bad] and len(ids_of(berth)) == 6
    assert cli_json(berth, "clean", "--older", "1h")["removed"] == []
    assert cli_json(berth, "clean", "--queue", "car", "--state", "succeeded")["removed"] == []
    done = berth.cli("clean", "--state", "succeeded", "--keep", "1", check=0)
    assert f"removed jobs {good[0]}-{good[2]} and 3 logs" in done.stdout
    assert ids_of(berth) == [good[3], bad, waiting]
    assert cli_json(berth, "clean", "--older", "0s")["removed"] == [good[3], bad]
    assert berth.cli("clean", check=0).stdout == "there is nothing to remove\n"
    assert berth.cli("clean", "--state", "running").returncode == 2


def test_a_large_batch_is_removed_in_parts(berth):
    ids = berth.submit([job("true", gpus=1) for _ in range(2300)])
    berth.kill_jobs(ids)
    done = berth.cli("clean", check=0)
    assert done.stdout == f"removed jobs {ids[0]}-{ids[-1]}\n"
    assert ids_of(berth) == []
    with sqlite3.connect(f"file:{berth.dir}/berth.db?mode=ro", uri=True) as db:
        for table in ("jobs", "payloads", "batches", "attempts"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table


# --- retention ------------------------------------------------------------------------------------


def test_retention_removes_the_oldest_and_what_belongs_to_them(make_instance):
    berth = make_instance(env={"BERTH_TEST_RETENTION": "0,3,200"})
    berth.start()
    ids = [berth.submit_one("true", env=[f"N={n}"]) for n in range(8)]
    berth.wait(ids)
    eventually(lambda: len(ids_of(berth)) <= 3, "only three finished jobs are left")
    kept = ids_of(berth)
    assert len(kept) == 3
    for gone in set(ids) - set(kept):
        eventually(lambda: not own_log(berth, gone).exists(), f"the log of {gone} is gone")
    assert own_log(berth, kept[-1]).exists()

    def keys():
        with sqlite3.connect(f"file:{berth.dir}/berth.db?mode=ro", uri=True) as db:
            return db.execute("SELECT count(*) FROM client_keys").fetchone()[0]

    eventually(lambda: keys() == 3, "the keys of removed submissions are gone")
    history = berth.api("GET", "/api/events?after=0")["events"]
    assert {e["job"] for e in history if e["job"]} == set(kept)


def test_retention_by_age_spares_what_has_not_ended(make_instance):
    berth = make_instance(env={"BERTH_TEST_RETENTION": "300,0,100"})
    berth.start()
    waiting = berth.submit_one("true", gpus=1)
    done = berth.submit_one("true")
    eventually(lambda: ids_of(berth) == [waiting], f"job {done} is gone and {waiting} is not")
    # Lines that belong to no job go by age, too.
    eventually(
        lambda: all(e["job"] for e in berth.api("GET", "/api/events?after=0")["events"]),
        "no loose line is left",
    )


# --- history --------------------------------------------------------------------------------------


def test_history_tells_what_happened_the_newest_last(berth):
    good = berth.submit_one("true")
    berth.wait([good])
    bad = berth.submit_one("exit 3")
    berth.wait([bad])
    kinds = [e["kind"] for e in cli_json(berth, "history")]
    assert kinds == ["submitted", "started", "succeeded", "submitted", "started", "failed"]
    assert [e["job"] for e in cli_json(berth, "history", good)] == [good] * 3
    failed = cli_json(berth, "history", "--kind", "failed,killed", "--since", "1h")
    assert [(e["job"], e["detail"]) for e in failed] == [(bad, "exited with code 3")]
    assert [e["kind"] for e in cli_json(berth, "history", "--limit", "2")] == ["started", "failed"]
    text = berth.cli("history", check=0).stdout
    assert text.splitlines()[0].split()[:3] == ["WHEN", "WHAT", "JOB"]
    assert "exited with code 3" in text.splitlines()[-1]
    assert "nothing" in berth.cli("history", "--kind", "revived").stderr
    mistaken = berth.cli("history", "--kind", "nonsense", check=1)
    assert "there are submitted, started" in mistaken.stderr


def test_history_follows(berth):
    first = berth.submit_one("true")
    berth.wait([first])
    follower = subprocess.Popen(
        [str(berth.bin_dir / "berth"), "history", "-f", "--json", "--kind", "succeeded"],
        env=berth.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert json.loads(follower.stdout.readline())["job"] == first
        second = berth.submit_one("true")
        assert json.loads(follower.stdout.readline())["job"] == second
    finally:
        follower.kill()
        follower.wait()


# --- backup and restore ---------------------------------------------------------------------------


def check_database(path):
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return [row[0] for row in db.execute("SELECT id FROM jobs ORDER BY id")]


@pytest.mark.smoke
def test_backup_while_jobs_run_and_submissions_go_on(berth, tmp_path):
    before = berth.submit([job("true") for _ in range(50)])
    running = berth.submit_one("sleep 1000")
    berth.wait_started(running)
    stop = threading.Event()
    submitted = []

    def submit():
        while not stop.is_set():
            submitted.append(berth.submit_one("true"))

    thread = threading.Thread(target=submit)
    thread.start()
    target = tmp_path / "copy.db"
    try:
        eventually(lambda: len(submitted) > 3, "submissions go on")
        done = berth.cli("backup", target, check=0)
    finally:
        stop.set()
        thread.join()
    assert f"backed up to {target}" in done.stdout and "logs" in done.stdout
    saved = check_database(target)
    assert saved[: len(before) + 1] == [*before, running]
    assert set(saved) <= set(ids_of(berth))
    assert oct(target.stat().st_mode & 0o777) == "0o600"
    assert "copy.db.part" not in os.listdir(tmp_path)
    refused = berth.cli("backup", target)
    assert refused.returncode == 1 and "--force" in refused.stderr
    berth.cli("backup", "--force", target, check=0)
    elsewhere = berth.cli("backup", tmp_path / "none" / "copy.db")
    assert elsewhere.returncode == 1 and "none/copy.db" in elsewhere.stderr


def test_restore_goes_back_and_ids_go_on(berth, tmp_path):
    done = berth.submit_one("true")
    berth.wait([done])
    waiting = berth.submit_one("true", gpus=1)
    target = tmp_path / "copy.db"
    berth.cli("backup", target, check=0)
    later = berth.submit_one("echo later")
    berth.wait([later])

    running = berth.submit_one("sleep 1000")
    berth.wait_started(running)
    refused = berth.cli("restore", target)
    assert refused.returncode == 1 and "a job is running" in refused.stderr
    assert berth.running()
    # Also when no daemon is there to ask.
    berth.stop()
    refused = berth.cli("restore", target)
    assert refused.returncode == 1 and "running" in refused.stderr, refused
    berth.start()
    berth.kill_jobs([running], grace_ms=0)
    berth.wait([running])

    restored = berth.cli("restore", target, check=0)
    assert "restored 2 jobs" in restored.stdout and "1 of them wait" in restored.stdout
    assert ids_of(berth) == [done, waiting]
    assert berth.submit_one("true") == running + 1
    kept = list(berth.dir.glob("berth.db.before-restore-*"))
    assert len(kept) == 1 and check_database(kept[0]) == [done, waiting, later, running]
    berth.cli("stop", check=0)


def test_an_attempt_that_ran_when_the_backup_was_made_is_lost(berth, tmp_path):
    gate = tmp_path / "gate"
    wait = f"while ! [ -e {gate} ]; do sleep 0.02; done"
    lost = berth.submit_one(wait, rules={"retry_config.node_lost": "0"})
    retried = berth.submit_one(wait)
    berth.wait_started(lost)
    berth.wait_started(retried)
    target = tmp_path / "copy.db"
    berth.cli("backup", target, check=0)
    gate.touch()
    berth.wait([lost, retried])
    berth.cli("restore", target, check=0)
    assert berth.wait_one(lost)["failure_class"] == "node_lost"
    again = berth.wait_one(retried)
    assert again["state"] == "succeeded" and again["attempts"] == 2
    berth.cli("stop", check=0)


def test_a_backup_of_another_instance_never_touches_the_jobs_of_that_one(make_instance, tmp_path):
    one = make_instance()
    one.start()
    running = one.submit_one("sleep 1000", rules={"retry_config.node_lost": "0"})
    one.wait_started(running)
    target = tmp_path / "copy.db"
    one.cli("backup", target, check=0)
    two = make_instance()
    two.cli("restore", target, check=0)
    assert two.wait_one(running)["failure_class"] == "node_lost"
    assert one.show(running)["job"]["state"] == "running"
    assert len(one.shims()) == 1
    two.cli("stop", check=0)


def test_a_backup_of_the_first_version_can_be_restored(make_instance):
    berth = make_instance()
    fixture = berthlib.REPO / "tests" / "fixtures" / "0.1.0" / "berth.db"
    before = fixture.read_bytes()
    berth.cli("restore", fixture, check=0)
    assert len(ids_of(berth)) == 9
    assert fixture.read_bytes() == before
    berth.cli("stop", check=0)


def test_what_is_no_backup_is_refused(berth, tmp_path):
    done = berth.submit_one("true")
    berth.wait([done])
    rubbish = tmp_path / "rubbish"
    rubbish.write_text("rubbish")
    refused = berth.cli("restore", rubbish)
    assert refused.returncode == 1 and f"{rubbish}: not a berth store" in refused.stderr
    missing = berth.cli("restore", tmp_path / "missing")
    assert missing.returncode == 1 and "missing" in missing.stderr
    assert ids_of(berth) == [done]
    berth.cli("stop", check=0)


@pytest.mark.parametrize("where", ["restore_copied", "restore_prepared", "restore_kept", "restore_swapped"])
def test_a_restore_that_is_killed_leaves_one_of_the_two(berth, tmp_path, where):
    first = berth.submit_one("true")
    berth.wait([first])
    target = tmp_path / "copy.db"
    berth.cli("backup", target, check=0)
    second = berth.submit_one("true")
    berth.wait([second])
    killed = berth.cli("restore", target, env={"BERTH_CRASH_AT": where})
    assert killed.returncode == 1
    assert ids_of_after_start(berth) == ([first] if where == "restore_swapped" else [first, second])
    # And the next one succeeds.
    berth.cli("restore", target, check=0)
    assert ids_of(berth) == [first]
    assert berth.submit_one("true") == second + 1
    berth.cli("stop", check=0)


def ids_of_after_start(berth):
    berth.cli("status", check=0)
    return ids_of(berth)


@pytest.mark.parametrize("where", ["backup_step", "backup_copied"])
def test_a_backup_that_is_killed_leaves_no_file_that_looks_complete(make_instance, tmp_path, where):
    berth = make_instance()
    berth.start(env={"BERTH_CRASH_AT": where})
    done = berth.submit_one("true")
    berth.wait([done])
    target = tmp_path / "copy.db"
    tried = berth.cli("backup", target)
    assert berth.daemon.wait(berthlib.PATIENCE) == -signal.SIGKILL
    # If it died before it answered, the next daemon was asked, and has made all of it.
    if tried.returncode != 0:
        assert tried.returncode == 1 and not target.exists(), tried
        berth.cli("backup", target, check=0)  # what is left of the other is in nobody's way
    assert check_database(target) == [done]
    berth.cli("stop", check=0)


def test_a_full_disk_during_a_backup_is_told_and_nothing_is_left(berth, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(full)], capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        berth.wait(berth.submit([job(f"true {'x' * 2000}") for _ in range(60)]))
        failed = berth.cli("backup", full / "copy.db")
        assert failed.returncode == 1
        assert "full" in failed.stderr and str(full / "copy.db") in failed.stderr, failed
        assert os.listdir(full) == []
        assert berth.wait_one(berth.submit_one("true"))["state"] == "succeeded"
    finally:
        subprocess.run(["umount", str(full)], check=True)
