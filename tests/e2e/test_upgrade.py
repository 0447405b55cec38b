"""What version 0.1.0 left behind, in the hands of this one: its state directory, a supervisor of its
that is still running, and its client. The fixtures are described in tests/fixtures/README.md."""

import gzip
import json
import os
import shutil
import socket

import pytest

from berthlib import BIN, REPO, alive, eventually, shell

OLD = REPO / "tests" / "fixtures" / "0.1.0"


# --- a state directory ----------------------------------------------------------------------------


@pytest.fixture
def inherited(make_instance):
    """An instance whose directory 0.1.0 has left; the machine has been started again since."""
    instance = make_instance(gpus="sim:4x24GiB")
    instance.dir.mkdir(mode=0o700, parents=True)
    # Its jobs run in a directory that only the machine of that day had; this one is as long.
    kept = (OLD / "berth.db").read_bytes().replace(b"/tmp/fx", b"/tmp/./")
    (instance.dir / "berth.db").write_bytes(kept)
    shutil.copytree(OLD / "attempts", instance.dir / "attempts")
    (instance.dir / "attempts").chmod(0o700)
    # As that version did: what is lost is not tried again by itself.
    (instance.dir / "berth.yaml").write_text("retry_config.not_its_fault: 0\n")
    return instance


@pytest.mark.smoke
def test_a_state_directory_of_0_1_0_is_taken_over(inherited):
    inherited.start()
    # Attempts 4 and 5 ran when that machine went down: nobody can say how they ended.
    for job_id in (3, 5):
        attempt = eventually(
            lambda: (a := inherited.show(job_id)["attempts"][0])["ended_at"] and a,
            f"the attempt of job {job_id} has ended",
        )
        assert attempt["failure_class"] == "node_lost" and attempt["message"], attempt
    # What had ended is told as it was.
    old = inherited.show(2)
    assert (old["job"]["state"], old["job"]["exit_code"]) == ("failed", 3)
    assert [a["exit_code"] for a in old["attempts"]] == [3, 3]
    assert inherited.show(1)["job"]["state"] == "succeeded"
    assert inherited.show(9)["job"]["name"] == "gone"
    events = inherited.api("GET", "/api/events?after=0&limit=1000")["events"]
    assert {e["job"] for e in events} >= {1, 2, 3}
    assert inherited.cli("history", check=0).stdout
    assert "bad" in inherited.cli("ls", "--all", check=0).stdout
    # Job 4 follows one that has failed. The others run: 6 and 7, one at a time, and 8 on all cards.
    assert inherited.wait_one(4)["state"] == "cancelled"
    for job_id in (6, 7):
        inherited.wait_started(job_id)
        inherited.kill_jobs([job_id], grace_ms=100)
        assert inherited.wait_one(job_id)["state"] == "killed"
    assert inherited.wait_one(8)["state"] == "succeeded"
    # New ids go on after the old ones.
    assert inherited.submit_one("true") == 10
    assert inherited.wait_one(10)["state"] == "succeeded"


def test_a_state_directory_of_0_1_0_survives_a_crash_of_the_first_new_daemon(inherited):
    inherited.start({"BERTH_CRASH_AT": "before_commit"}, must=False)
    inherited.kill9()
    inherited.start()
    assert inherited.show(2)["job"]["exit_code"] == 3
    assert inherited.submit_one("true") >= 10


# --- a supervisor ---------------------------------------------------------------------------------


@pytest.fixture
def under_old_shim(make_instance, tmp_path):
    """An instance whose daemon is new and whose supervisors are of 0.1.0; new_shim() puts the new
    one in place, for the next daemon."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    for name in ("berth", "berthd", "berth-simgpu"):
        copy_program(BIN / name, bin_dir / name)
    shim = bin_dir / "berth-shim"
    shim.write_bytes(gzip.decompress((OLD / "berth-shim.gz").read_bytes()))
    shim.chmod(0o755)
    instance = make_instance(bin_dir=bin_dir)
    instance.start()

    def new_shim():
        shim.unlink()
        copy_program(BIN / "berth-shim", shim)

    instance.new_shim = new_shim
    return instance


def copy_program(source, target):
    """The daemon looks for its supervisor beside itself, and sees through symbolic links."""
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def upgrade(instance):
    """The old daemon is killed, the new programs are put in place and a new daemon starts."""
    instance.kill9()
    instance.new_shim()
    instance.start()


def test_a_job_under_a_supervisor_of_0_1_0_is_adopted_and_its_exit_recorded(under_old_shim, tmp_path):
    gate = tmp_path / "gate"
    job_id = under_old_shim.submit_one(f"until [ -e {gate} ]; do sleep 0.05; done; exit 7")
    attempt, shim = under_old_shim.wait_started(job_id)
    upgrade(under_old_shim)
    assert under_old_shim.show(job_id)["job"]["state"] == "running"
    assert under_old_shim.wait_started(job_id) == (attempt, shim), "it was started again"
    gate.touch()
    ended = under_old_shim.wait_one(job_id)
    assert (ended["state"], ended["exit_code"], ended["attempts"]) == ("failed", 7, 1)
    assert under_old_shim.wait_one(under_old_shim.submit_one("true"))["state"] == "succeeded"


def test_what_ended_between_the_daemons_is_found_in_the_old_record(under_old_shim, tmp_path):
    gate = tmp_path / "gate"
    job_id = under_old_shim.submit(
        [{"name": "two", "gpus": {"min": 0, "max": 0}, "cwd": "/",
          "commands": [shell("true"), shell(f"until [ -e {gate} ]; do sleep 0.05; done; exit 3")]}]
    )[0]
    _, shim = under_old_shim.wait_started(job_id)
    under_old_shim.kill9()
    gate.touch()
    eventually(lambda: not alive(shim), "the old supervisor has ended")
    under_old_shim.new_shim()
    under_old_shim.start()
    ended = under_old_shim.wait_one(job_id)
    assert (ended["state"], ended["exit_code"]) == ("failed", 3)
    assert "command 2" in ended["message"]


def test_a_supervisor_of_0_1_0_obeys_pause_resume_and_kill(under_old_shim, tmp_path):
    ticks = tmp_path / "ticks"
    job_id = under_old_shim.submit_one(f"while sleep 0.02; do echo >>{ticks}; done")
    under_old_shim.wait_started(job_id)
    upgrade(under_old_shim)
    eventually(lambda: ticks.exists(), "the job runs")

    answer = under_old_shim.api("POST", "/api/jobs/pause", {"ids": str(job_id)})
    assert answer["paused"] == [job_id], answer
    under_old_shim.wait_state(job_id, "paused")

    def stands_still():
        before = ticks.stat().st_size
        try:
            eventually(lambda: ticks.stat().st_size > before, "", timeout=0.5)
        except AssertionError:
            return True
        return False

    eventually(stands_still, "the job stands still")
    under_old_shim.api("POST", "/api/jobs/resume", {"ids": str(job_id)})
    before = ticks.stat().st_size
    eventually(lambda: ticks.stat().st_size > before, "the job goes on")
    under_old_shim.kill_jobs([job_id], grace_ms=100)
    assert under_old_shim.wait_one(job_id)["state"] == "killed"
    eventually(lambda: not under_old_shim.shims(), "the old supervisor has ended")


# --- a client -------------------------------------------------------------------------------------

# In the order they were recorded: later ones ask about what earlier ones made.
TALKS = ("submit", "submit-gpu", "submit-waiting", "submit-file", "wait", "list", "show", "why",
         "gpus", "status", "kill", "kill-all", "unknown-job", "stop")


def recorded(name):
    """(request bytes, answer status, answer) as 0.1.0 left them."""
    request, _, answer = (OLD / "http" / f"{name}.txt").read_bytes().partition(b"\n=====\n")
    return request, *parse_answer(answer)


def parse_answer(data):
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def exchange(path, request):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        sock.connect(str(path))
        sock.sendall(request)
        data = b""
        while b"\r\n\r\n" not in data:
            piece = sock.recv(65536)
            assert piece, "the daemon closed the connection without an answer"
            data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                      if line.startswith(b"content-length:"))
        while len(body) < length:
            piece = sock.recv(65536)
            assert piece, "the answer was cut short"
            data += piece
            body += piece
        return data


def assert_understood(old, new, where):
    """Whatever the old answer had the new one has, of the same kind; more is allowed."""
    if isinstance(old, dict):
        assert isinstance(new, dict), where
        for key, value in old.items():
            assert key in new, f"{where} lacks '{key}', which 0.1.0 sent"
            assert_understood(value, new[key], f"{where}.{key}")
    elif isinstance(old, list):
        assert isinstance(new, list), where
        assert bool(new) or not old, f"{where} is empty"
        for value, other in zip(old, new):
            assert_understood(value, other, f"{where}[]")
    elif old is not None and new is not None:
        assert type(old) is type(new), f"{where} was {old!r} and is {new!r}"


def test_every_recording_is_replayed():
    assert sorted(TALKS) == sorted(path.stem for path in (OLD / "http").iterdir())


def test_requests_of_the_0_1_0_client_get_answers_it_understands(make_instance):
    instance = make_instance(gpus="sim:2x24GiB")
    instance.start()
    for name in TALKS:
        if name == "list":  # what the recording saw: one job runs, those of the file have ended
            instance.wait([1, 4, 5])
            instance.wait_state(2, "running")
        request, status, old = recorded(name)
        now_status, now = parse_answer(exchange(instance.dir / "sock", request))
        assert now_status == status, f"{name}: {now}"
        assert_understood(old, now, name)
        if name.startswith("submit"):
            assert now["ids"] == old["ids"], name
        if name == "unknown-job":
            assert now["error"]["code"] == old["error"]["code"]
    instance.daemon.wait(60)
