"""The daemon as its neighbours meet it: starting, stopping, being replaced, and the trouble it must
live through or refuse to touch."""

import hashlib
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time

import pytest

from berthlib import BUILD, GIB, Gone, Instance, eventually, job, kill_process, unique_key

PROGRAMS = ("berthd", "berth-shim", "berth-simgpu")


def gated(gate, code):
    """A script that runs until the file is there, then exits with the code."""
    return f"until [ -e '{gate}' ]; do sleep 0.02; done; exit {code}"


# --- one daemon after the other -------------------------------------------------------------------


@pytest.mark.smoke
def test_jobs_run_and_their_results_are_told(berth):
    good, bad = berth.submit([job("echo hello"), job("echo oops >&2; exit 7")])
    ended = berth.wait([good, bad])
    assert (ended[good]["state"], ended[good]["exit_code"]) == ("succeeded", 0)
    assert (ended[bad]["state"], ended[bad]["exit_code"]) == ("failed", 7)
    assert ended[bad]["failure_class"] == "exit"
    assert pathlib.Path(ended[good]["log"]).read_text() == "hello\n"
    assert pathlib.Path(ended[bad]["log"]).read_text() == "oops\n"
    berth.assert_nothing_left()


@pytest.mark.smoke
def test_a_second_daemon_refuses_and_the_first_goes_on(berth):
    running = berth.submit_one("sleep 1000")
    attempt, shim = berth.wait_started(running)
    code, said = berth.run_daemon()
    assert code == 1
    assert str(berth.pid) in said and "already" in said and str(berth.dir) in said
    assert berth.status()["pid"] == berth.pid
    assert berth.shims()[attempt][0] == shim
    assert berth.wait_one(berth.submit_one("true"))["state"] == "succeeded"


def test_of_daemons_that_start_at_once_one_serves(make_instance):
    berth = make_instance()
    daemons = [
        subprocess.Popen(
            [str(berth.bin_dir / "berthd")],
            env=berth.environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(5)
    ]
    try:
        eventually(lambda: sum(d.poll() is not None for d in daemons) == 4, "four have given up")
        [left] = [d for d in daemons if d.poll() is None]
        eventually(lambda: (berth.dir / "sock").exists(), "the last one serves")
        assert eventually(lambda: answers(berth), "it answers")["pid"] == left.pid
        for refused in daemons:
            if refused is not left:
                said = refused.stderr.read()
                assert refused.returncode == 1 and "already serves" in said, said
    finally:
        for daemon in daemons:
            daemon.kill()
            daemon.wait()
            daemon.stderr.close()


def answers(berth):
    try:
        return berth.status()
    except Gone:
        return None


@pytest.mark.parametrize("how", ["api", signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_running_jobs_outlive_the_daemon_and_the_next_adopts_them(berth, how):
    gate = berth.dir / "gate"
    waiting = berth.submit_one(gated(gate, 23))
    unseen = berth.submit_one("sleep 0.3; exit 5")
    attempt, shim = berth.wait_started(waiting)
    if how == signal.SIGKILL:
        berth.kill9()
    else:
        assert berth.stop(how) == 0
        assert not (berth.dir / "sock").exists(), "a clean stop takes its socket along"
    assert berth.shims()[attempt][0] == shim, "the job's supervisor must not have noticed"
    eventually(lambda: len(berth.shims()) <= 1, "the other job ends while nobody looks")

    berth.start()
    seen = berth.wait_one(unseen)
    assert (seen["state"], seen["exit_code"], seen["attempts"]) == ("failed", 5, 1)
    now = berth.show(waiting)
    assert now["job"]["state"] == "running" and [a["id"] for a in now["attempts"]] == [attempt]
    gate.touch()
    ended = berth.wait_one(waiting)
    assert (ended["exit_code"], ended["attempts"]) == (23, 1)
    berth.assert_nothing_left()


def test_an_adopted_job_can_be_killed(berth):
    job_id = berth.submit_one("trap '' TERM; while :; do sleep 1; done")
    berth.wait_started(job_id)
    berth.restart()
    assert berth.kill_jobs([job_id], grace_ms=100)["killed"] == [job_id]
    assert berth.wait_one(job_id)["state"] == "killed"
    berth.assert_nothing_left()


def test_a_kill_that_was_acknowledged_survives_the_daemon(berth):
    """Its grace goes on while there is no daemon, and ends as promised."""
    job_id = berth.submit_one("trap '' TERM; while :; do sleep 0.1; done", grace_ms=1500)
    berth.wait_started(job_id)
    berth.kill_jobs([job_id])
    berth.restart()
    assert berth.wait_one(job_id)["state"] == "killed"
    berth.assert_nothing_left()


def test_waiting_jobs_wait_through_a_restart_in_their_order(berth):
    gate, order = berth.dir / "gate", berth.dir / "order"
    serial = [{"name": "serial", "limit": 1}]
    scripts = [gated(gate, 0)] + [f"echo {i} >>'{order}'" for i in range(5)]
    ids = berth.submit([job(s, queue="serial") for s in scripts], queues=serial)
    berth.wait_started(ids[0])
    berth.restart()
    assert "serial" in berth.why(ids[1])
    gate.touch()
    assert {j["state"] for j in berth.wait(ids).values()} == {"succeeded"}
    assert order.read_text().split() == ["0", "1", "2", "3", "4"]


def test_where_supervisors_cannot_live_they_are_tried_ever_more_slowly(make_instance):
    berth = make_instance()
    berth.start({"BERTH_CRASH_AT": "shim_before_start"})
    job_id = berth.submit_one("exit 3")
    eventually(lambda: len(berth.show(job_id)["attempts"]) >= 5, "it is tried again and again")
    time.sleep(2)
    attempts = berth.show(job_id)["attempts"]
    assert len(attempts) < 30, "the pause between two must grow"
    assert {a["state"] for a in attempts[:-1]} == {"revoked"}
    assert "supervisor died" in attempts[0]["message"]
    berth.restart()
    ended = berth.wait_one(job_id)
    assert (ended["exit_code"], ended["attempts"]) == (3, 1), "what never ran is not charged"
    berth.assert_nothing_left()


# --- upgrade in place -----------------------------------------------------------------------------


def install(directory):
    """A copy of the programs, laid out as an installation is. Files are replaced as packages do:
    written anew and renamed into place."""
    (directory / "bin").mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        fresh = directory / "bin" / f"{name}.new"
        shutil.copy2(BUILD / "bin" / name, fresh)
        fresh.rename(directory / "bin" / name)
    shutil.copytree(BUILD / "lib", directory / "lib", dirs_exist_ok=True)
    return directory / "bin"


def test_upgrade_in_place(make_instance, tmp_path):
    berth = make_instance(gpus="sim:1x24GiB", bin_dir=install(tmp_path / "installed"))
    berth.start()
    gate = berth.dir / "gate"
    old = berth.submit_one(gated(gate, 31), gpus=1, gpu_memory=GIB)
    attempt, _ = berth.wait_started(old)

    # In the middle of an upgrade nothing on disk works, yet the daemon still starts jobs.
    for name in PROGRAMS:
        broken = berth.bin_dir / f"{name}.new"
        broken.write_text("#!/bin/false\n")
        broken.chmod(0o755)
        broken.rename(berth.bin_dir / name)
    during = berth.wait_one(berth.submit_one("exit 4", gpus=1, gpu_memory=GIB))
    assert (during["state"], during["exit_code"]) == ("failed", 4)

    install(tmp_path / "installed")
    assert berth.stop() == 0
    berth.start()
    gate.touch()
    ended = berth.wait_one(old)
    assert (ended["exit_code"], ended["attempts"]) == (31, 1)
    assert [a["id"] for a in berth.show(old)["attempts"]] == [attempt]
    after = berth.wait_one(berth.submit_one("true", gpus=1))
    assert after["state"] == "succeeded"
    berth.assert_nothing_left()


def test_who_waits_does_not_notice_that_the_daemon_was_replaced(berth):
    gate = berth.dir / "gate"
    waited_for = berth.submit_one(gated(gate, 0))
    berth.wait_started(waited_for)
    waiter = subprocess.Popen(
        [str(berth.bin_dir / "berth"), "wait", str(waited_for)],
        env=berth.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(0.5)
    assert berth.stop() == 0
    berth.start()
    gate.touch()
    _, said = waiter.communicate(timeout=60)
    assert waiter.returncode == 0, said


def test_a_missing_supervisor_is_said_at_the_start(make_instance, tmp_path):
    berth = make_instance(bin_dir=install(tmp_path / "installed"))
    (berth.bin_dir / "berth-shim").unlink()
    code, said = berth.run_daemon()
    assert code == 1 and "berth-shim" in said and "installed completely" in said


# --- databases that are not for us ----------------------------------------------------------------


def random_bytes(path):
    path.write_bytes(random.Random(1).randbytes(20_000))


def text(path):
    path.write_text("a shopping list\n" * 100)


def empty(path):
    path.write_bytes(b"")


def of_another_program(path):
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE photos(id INTEGER PRIMARY KEY, name TEXT)")
        db.execute("INSERT INTO photos VALUES(1, 'cat')")
    db.close()


def of_a_newer_version(path):
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode=DELETE")
        db.execute("PRAGMA user_version=99")
    db.close()


def cut_short(path):
    os.truncate(path, path.stat().st_size // 2)


def overwritten(path):
    content = bytearray(path.read_bytes())
    content[100:] = b"\xaa" * (len(content) - 100)
    path.write_bytes(content)


def a_table_dropped(path):
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE jobs")
    db.close()


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "spoil, expected",
    [
        (random_bytes, "not a berth store"),
        (text, "not a berth store"),
        (empty, "not a berth store"),
        (of_another_program, "not a berth store"),
        (of_a_newer_version, "newer berth"),
        (cut_short, "damaged"),
        (overwritten, "malformed"),
        (a_table_dropped, "damaged"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_database_that_is_not_for_us_is_refused_and_left_alone(berth, spoil, expected):
    berth.wait_one(berth.submit_one("true"))
    berth.stop()
    database = berth.dir / "berth.db"
    spoil(database)
    before = digest(database)
    code, said = berth.run_daemon()
    assert code == 1, said
    assert str(database) in said and expected in said, said
    assert digest(database) == before, "it must not be touched"
    log = berth.dir / "berth.db-wal"
    assert not log.exists() or log.stat().st_size == 0
    assert not (berth.dir / "sock").exists()


def test_a_log_without_its_database_is_not_replayed_into_a_new_one(berth):
    berth.wait_one(berth.submit_one("true"))
    berth.kill9()
    (berth.dir / "berth.db").unlink()
    log = berth.dir / "berth.db-wal"
    before = digest(log)
    code, said = berth.run_daemon()
    assert code == 1 and "berth.db" in said, said
    assert digest(log) == before and not (berth.dir / "berth.db").exists()


def test_a_database_that_somebody_else_has_locked(berth):
    berth.wait_one(berth.submit_one("true"))
    berth.stop()
    holder = sqlite3.connect(berth.dir / "berth.db", isolation_level=None)
    try:
        holder.execute("BEGIN EXCLUSIVE")
        code, said = berth.run_daemon()
        assert code == 1 and "berth.db" in said and "lock" in said, said
    finally:
        holder.close()
    berth.start()
    assert berth.jobs()[0]["state"] == "succeeded"


@pytest.fixture
def stranger_berth():
    """An instance of an ordinary user: of nobody when we are root, since nothing is read-only for
    root. Its programs are where that user can reach them."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="berth-", dir="/tmp"))
    uid = 65534 if os.geteuid() == 0 else os.geteuid()
    base.chmod(0o755)
    berth = Instance(base, bin_dir=install(base / "installed"))
    berth.dir.mkdir(mode=0o700)
    os.chown(berth.dir, uid, -1)
    berth.popen = {"user": uid, "group": uid, "extra_groups": []} if os.geteuid() == 0 else {}
    berth.uid = uid
    yield berth
    berth.close()
    shutil.rmtree(base)


def fill(berth):
    """A database with something in it, made by that user, and nobody serving it."""
    daemon = subprocess.Popen(
        [str(berth.bin_dir / "berthd")],
        env=berth.environment(),
        stderr=subprocess.DEVNULL,
        **berth.popen,
    )
    try:
        eventually(lambda: answers(berth), "it answers")
        berth.wait_one(berth.submit_one("true"))
    finally:
        daemon.terminate()
        assert daemon.wait(30) == 0


def test_a_read_only_directory(stranger_berth):
    stranger_berth.dir.chmod(0o500)
    code, said = stranger_berth.run_daemon(**stranger_berth.popen)
    assert code == 1 and str(stranger_berth.dir) in said, said
    assert "ermission denied" in said, said


def test_a_read_only_database(stranger_berth):
    fill(stranger_berth)
    database = stranger_berth.dir / "berth.db"
    database.chmod(0o400)
    before = digest(database)
    code, said = stranger_berth.run_daemon(**stranger_berth.popen)
    assert code == 1 and str(database) in said and "read-only" in said, said
    assert digest(database) == before


def test_a_directory_of_somebody_else(stranger_berth):
    if os.geteuid() == 0:
        code, said = stranger_berth.run_daemon()  # root is not its owner
        assert code == 1 and "belongs to user 65534" in said, said
    else:
        code, said = stranger_berth.run_daemon({"BERTH_DIR": "/"})
        assert code == 1 and "belongs to user 0" in said, said


def test_a_directory_that_others_can_write_to(stranger_berth):
    stranger_berth.dir.chmod(0o777)
    code, said = stranger_berth.run_daemon(**stranger_berth.popen)
    assert code == 1 and "chmod 700" in said, said


# --- GPUs in trouble ------------------------------------------------------------------------------


@pytest.fixture
def impatient(make_instance):
    """Two cards, and a daemon that gives up on a silent driver after half a second."""
    berth = make_instance(gpus="sim:2x24GiB", env={"BERTH_PROBE_PATIENCE_MS": "500"})
    berth.start()
    assert berth.wait_one(berth.submit_one("true", gpus=2))["state"] == "succeeded"
    return berth


def cards(berth):
    """The cards in the order of their index, from a look that is at most a second old."""
    return sorted(berth.api("GET", "/api/gpus")["gpus"], key=lambda gpu: gpu["index"])


def probe_trouble(berth):
    cards(berth)
    return berth.status()["probe"]["error"]


def test_a_driver_that_hangs_stops_gpu_jobs_and_nothing_else(impatient):
    berth = impatient
    gate = berth.dir / "gate"
    running = berth.submit_one(gated(gate, 3), gpus=1)
    berth.wait_started(running)
    berth.simgpu("set", "driver", "hang_ms", 600_000)
    assert "has not answered" in eventually(lambda: probe_trouble(berth), "the hang is noticed")
    waiting = berth.submit_one("true", gpus=1)
    assert "has not answered" in berth.why(waiting)
    assert berth.show(waiting)["job"]["state"] == "queued"
    assert {gpu["state"] for gpu in cards(berth)} == {"unknown"}

    # Everything that needs no card goes on.
    assert berth.wait_one(berth.submit_one("exit 9"))["exit_code"] == 9
    slowest = 0.0
    for _ in range(20):
        began = time.monotonic()
        berth.status()
        berth.jobs()
        slowest = max(slowest, time.monotonic() - began)
    assert slowest < 5, "the API must not wait for the driver"
    gate.touch()
    assert berth.wait_one(running)["exit_code"] == 3

    # Neither a stop nor a start waits for the driver.
    began = time.monotonic()
    assert berth.stop(signal.SIGTERM) == 0
    berth.start()
    assert time.monotonic() - began < 10
    assert berth.wait_one(berth.submit_one("exit 8"))["exit_code"] == 8
    eventually(lambda: "has not answered" in berth.why(waiting), "the next daemon sees it, too")
    assert len(berth.probes()) <= 1, "given-up probes must not pile up"

    berth.simgpu("set", "driver", "hang_ms", 0)
    assert berth.wait_one(waiting, timeout=120)["state"] == "succeeded"
    assert berth.status()["probe"]["error"] is None


def test_a_driver_that_hangs_keeps_nobody_waiting_who_looks_at_the_cards(make_instance):
    berth = make_instance(gpus="sim:2x24GiB")  # a silent driver is given up after ten seconds
    berth.start()
    known = cards(berth)
    berth.simgpu("set", "driver", "hang_ms", 600_000)
    time.sleep(1.1)  # what is known is too old to be told without another look
    began = time.monotonic()
    assert [card["uuid"] for card in cards(berth)] == [card["uuid"] for card in known]
    assert time.monotonic() - began < 5
    assert berth.status()["probe"]["error"] is None, "nobody has given up yet"


def test_a_card_lost_while_the_driver_hangs_stays_the_card_it_was(impatient):
    berth = impatient
    known = cards(berth)
    berth.simgpu("set", "driver", "hang_ms", 600_000)
    eventually(lambda: probe_trouble(berth), "the hang is noticed")
    berth.simgpu("set", 1, "lost", "yes")
    berth.simgpu("set", "driver", "hang_ms", 0)
    lost = eventually(lambda: [c for c in cards(berth) if c["lost"]], "the loss is noticed")
    assert [(c["uuid"], c["name"]) for c in lost] == [(known[1]["uuid"], known[1]["name"])]
    assert [card["index"] for card in cards(berth)] == [0, 1]


def test_a_card_that_fell_off_the_bus_gets_no_job(impatient):
    berth = impatient
    berth.simgpu("set", 0, "lost", "yes")
    eventually(lambda: cards(berth)[0]["state"] == "trouble", "the loss is noticed")
    one = berth.wait_one(berth.submit_one("true", gpus=1))
    assert one["state"] == "succeeded" and one["gpu_indices"] == [1]
    both = berth.submit_one("true", gpus=2)
    reason = berth.why(both)
    assert "GPU 0" in reason and "1 of 2" in reason, reason
    assert cards(berth)[0]["trouble"] in reason
    eventually(lambda: cards(berth)[1]["state"] == "free", "the other one is free")
    berth.simgpu("set", 0, "lost", "no")
    # Whether a card that was lost can be trusted is for somebody to say.
    eventually(lambda: cards(berth)[0]["state"] == "drained", "it stays out of use")
    berth.cli("resume", "--gpu", "0", check=0)
    assert berth.wait_one(both, timeout=120)["state"] == "succeeded"


def test_programs_without_the_library_of_simulated_cards_do_not_pretend(make_instance, tmp_path):
    alone = tmp_path / "elsewhere" / "bin"
    shutil.copytree(BUILD / "bin", alone)
    berth = make_instance(gpus="sim:2x24GiB", bin_dir=alone)
    assert berth.start(must=False) is False
    said = berth.log_text()
    assert f"{alone.parent}/lib/berth-sim/libnvidia-ml.so.1, which is not there" in said, said
    assert "copy both" in berth.cli("add", "true").stderr
    assert "no daemon can start" in " ".join(berth.cli("doctor").stdout.split())


def test_a_probe_that_dies_is_replaced(impatient):
    berth = impatient
    for _ in range(3):
        for pid in berth.probes():
            kill_process(pid)
        done = berth.wait_one(berth.submit_one("true", gpus=1), timeout=120)
        assert done["state"] == "succeeded"
    assert berth.running()


def test_a_driver_that_fails_is_named_in_the_reason(impatient):
    berth = impatient
    berth.simgpu("set", "driver", "error", 999)
    assert "code 999" in eventually(lambda: probe_trouble(berth), "the failure is noticed")
    waiting = berth.submit_one("true", gpus=1)
    assert "cannot be seen" in berth.why(waiting) and "code 999" in berth.why(waiting)
    assert berth.wait_one(berth.submit_one("true"))["state"] == "succeeded"
    berth.simgpu("set", "driver", "error", 0)
    assert berth.wait_one(waiting, timeout=120)["state"] == "succeeded"


def test_a_driver_that_recovers_while_nobody_waits_is_noticed(impatient):
    berth = impatient
    berth.simgpu("set", "driver", "error", 999)
    assert "code 999" in eventually(lambda: probe_trouble(berth), "the failure is noticed")
    berth.simgpu("set", "driver", "error", 0)
    time.sleep(4)  # longer than the pause after a failure: the look after it found nobody waiting
    done = berth.wait_one(berth.submit_one("true", gpus=1), timeout=60)
    assert done["state"] == "succeeded"


def test_an_instance_without_gpus_never_looks_for_any(berth):
    assert berth.api("GET", "/api/gpus")["gpus"] == []
    waiting = berth.submit_one("true", gpus=1)
    assert "no GPU" in berth.why(waiting)
    assert berth.api("GET", "/api/gpus")["gpus"] == []
    assert berth.probes() == [] and berth.status()["probe"]["error"] is None


# --- clients --------------------------------------------------------------------------------------


def test_a_repeated_client_key_gives_the_same_ids(berth):
    key = unique_key()
    jobs = [job("true"), job("true")]
    first = berth.submit(jobs, key)
    assert berth.submit(jobs, key) == first
    berth.wait(first)
    assert berth.submit(jobs, key) == first
    berth.restart()
    assert berth.submit(jobs, key) == first
    assert berth.submit(jobs, unique_key())[0] > first[-1]
    assert len(berth.jobs()) == 4


def test_a_key_that_many_send_at_once_is_one_submission(berth):
    for _ in range(5):
        key = unique_key()
        answers_seen = []
        senders = [
            threading.Thread(target=lambda: answers_seen.append(berth.submit(job("true"), key)))
            for _ in range(8)
        ]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert len(answers_seen) == 8 and all(ids == answers_seen[0] for ids in answers_seen)
    assert len(berth.jobs()) == 5


def test_submissions_while_the_daemon_dies_again_and_again(berth):
    """Clients that simply repeat what got no answer end up with every job once."""
    clients, each = 4, 60  # enough for three restarts on a fast machine
    acknowledged = {}
    problems = []

    def client(number):
        for i in range(each):
            key = f"{number}.{i}"
            until = time.monotonic() + 60
            while key not in acknowledged:
                try:
                    acknowledged[key] = berth.submit(job("true", name=key), key)
                except Gone:
                    time.sleep(0.01)
                except Exception as error:  # noqa: BLE001; reported below, whatever it is
                    problems.append((key, error))
                    return
                if time.monotonic() > until:
                    problems.append((key, "no answer in a minute"))
                    return

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    kills = 0
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.02 + 0.03 * (kills % 3))
        if kills < 15:
            berth.restart()
            kills += 1
    for thread in threads:
        thread.join()
    assert not problems and kills >= 3
    berth.wait_all()
    by_name = {}
    for entry in berth.jobs():
        assert entry["name"] not in by_name, "submitted twice"
        by_name[entry["name"]] = entry
    assert by_name.keys() == acknowledged.keys()
    for key, [job_id] in acknowledged.items():
        assert by_name[key]["id"] == job_id and by_name[key]["state"] == "succeeded"
    berth.assert_nothing_left()
