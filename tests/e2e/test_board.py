"""Berths of different users on one machine, which agree about cards on the claims board.

As root the two daemons run as two users, as they are meant to. An ordinary user cannot become
another: then they are two instances of one user, for whom the same holds. Both look at the same
simulated card.
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import pytest

from berthlib import BIN, LONG, Instance, eventually, job

USERS = (65534, 12345)


def others_can_run_it(path):
    """Whether any user may execute what lies there."""
    path = pathlib.Path(path).resolve()
    return all(p.stat().st_mode & 0o001 for p in [path, *path.parents])


TWO_USERS = os.geteuid() == 0 and others_can_run_it(BIN / "berthd")


@pytest.fixture
def ground():
    """A directory that all may use: with the board, the cards and room for what jobs write."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="berth-", dir="/tmp"))
    base.chmod(0o755)
    for name, mode in (("board", 0o1777), ("work", 0o777)):
        (base / name).mkdir()
        (base / name).chmod(mode)
    yield base
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture
def make_berths(ground):
    """Two instances on the one card, of two users where that is possible."""
    made = []

    def make(env=None):
        # The card belongs to nobody: both reach the same files.
        subprocess.run([BIN / "berth-simgpu", "init", ground / "simgpu", "1x24GiB"], check=True)
        for path in [ground / "simgpu", *(ground / "simgpu").rglob("*")]:
            path.chmod(0o777 if path.is_dir() else 0o666)
        for number, user in enumerate(USERS):
            berth = Instance(
                ground,
                gpus="sim:1x24GiB",
                name=f"b{number}",
                env={"BERTH_BOARD": str(ground / "board"), **(env or {})},
                user=user if TWO_USERS else None,
            )
            made.append(berth)
            berth.dir.mkdir(mode=0o700)
            (berth.dir / "simgpu").symlink_to(ground / "simgpu")
            if TWO_USERS:
                for path in (berth.dir, berth.dir / "simgpu"):
                    os.chown(path, user, user, follow_symlinks=False)
        for berth in made:
            berth.start()
        return made

    yield make
    for berth in made:
        print(f"--- {berth.dir}: the daemon's last words\n{berth.log_tail()}")
        berth.close(keep=True)


def owner_words(number):
    return "the berth of user" if TWO_USERS else "another berth of yours"


def claims(ground):
    """What stands on the board: {place: text}."""
    return {
        path.parent.name: path.read_text(errors="replace")
        for path in (ground / "board").glob("berth-*/claims")
    }


def training(seconds=1000, memory="2GiB"):
    # What it writes of its memory on the card is for everybody to read, as a driver's word would be.
    return f"umask 022; exec {BIN}/berth-simgpu train --memory {memory} --time {seconds}s"


def take_turns(berths, ground, each=5, time="200ms", patience=240):
    """Short jobs of each on the one card there is; whose they were, in the order in which they began."""
    work = ground / "work"
    for name in ("clashes", "turns"):
        (work / name).touch()
        (work / name).chmod(0o666)
    # mkdir fails if the directory is there: then somebody else is on the card.
    script = (
        f"umask 022; mkdir {work}/busy || echo clash >> {work}/clashes; echo $WHO >> {work}/turns; "
        f"{BIN}/berth-simgpu train --memory 2GiB --time {time}; rmdir {work}/busy"
    )
    ids = [
        b.submit([job(f"WHO={n}; {script}", gpus=1) for _ in range(each)])
        for n, b in enumerate(berths)
    ]
    for berth, mine in zip(berths, ids):
        ended = berth.wait(mine, timeout=patience)
        assert all(j["state"] == "succeeded" for j in ended.values()), ended
    assert (work / "clashes").read_text() == ""
    turns = (work / "turns").read_text().split()
    assert sorted(turns) == ["0"] * each + ["1"] * each
    return turns


@pytest.mark.smoke
def test_two_berths_never_use_a_card_at_once_and_take_turns(make_berths, ground):
    berths = make_berths()
    turns = take_turns(berths, ground)
    assert turns not in (sorted(turns), sorted(turns, reverse=True)), "nobody waits for the end of the other's queue"
    eventually(lambda: not claims(ground), "nothing is claimed any more")
    for berth in berths:
        assert berth.stop() == 0
    assert list((ground / "board").iterdir()) == []


def test_many_turns_without_a_clash(make_berths, ground):
    """Each job that ends is a race for the card; the long run has thousands of them."""
    each = 1000 if LONG else 8
    turns = take_turns(make_berths(), ground, each, "1ms", 7200)
    changes = sum(a != b for a, b in zip(turns, turns[1:]))
    assert changes > each / 10, "both were there"


def test_a_card_that_another_berth_has_only_claimed_is_not_called_free(make_berths, ground):
    first, second = make_berths()
    running = first.submit_one("sleep 1000", gpus=1)  # no process of it is on the card
    first.wait_started(running)
    # Nothing waits there, so nobody has looked at the board before.
    [card] = second.api("GET", "/api/gpus")["gpus"]
    assert card["state"] == "reserved" and owner_words(0) in card["reserved"], card
    assert "GPUs: 0 of 1 free, 1 reserved" in second.cli("status", check=0).stdout
    first.kill_jobs([running], grace_ms=0)
    eventually(lambda: second.api("GET", "/api/gpus")["gpus"][0]["state"] == "free", "it is free")


def test_whoever_waits_is_told_whose_berth_has_the_card(make_berths, ground):
    first, second = make_berths()
    running = first.submit_one(training(), gpus=1)
    first.wait_started(running)
    waiting = second.submit_one("true", gpus=1)
    eventually(
        lambda: f"GPU 0: held by {owner_words(0)}" in second.why(waiting), "it says who holds it"
    )
    assert f"GPU 0 is held by {owner_words(0)}" in second.log_text()
    assert second.show(waiting)["job"]["state"] == "queued"
    second.kill_jobs([waiting])
    # Nothing waits here any more; it is not free all the same.
    [card] = second.api("GET", "/api/gpus")["gpus"]
    assert card["state"] in ("reserved", "foreign") and card["reserved_kind"] == "other_berth"
    said = second.cli("gpus", check=0).stdout
    assert f"GPU 0: held by {owner_words(0)}" in said and "free" not in said, said
    assert "GPUs: 0 of 1 free" in second.cli("status", check=0).stdout
    assert "free" not in second.cli(check=0).stdout
    waiting = second.submit_one("true", gpus=1)
    first.kill_jobs([running], grace_ms=0)
    ended = second.wait_one(waiting)
    assert ended["state"] == "succeeded"
    assert ended["attempts"] == 1, "what was given up before it began does not count"


def test_jobs_without_gpus_ask_nobody(make_berths, ground):
    first, second = make_berths()
    running = first.submit_one(training(), gpus=1)
    first.wait_started(running)
    assert second.wait_one(second.submit_one("true"))["state"] == "succeeded"
    assert len(claims(ground)) == 1


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_daemon_that_is_gone_keeps_the_card_its_job_is_on(make_berths, ground, how):
    # Age counts for nothing here: the job's process on the card must do.
    first, second = make_berths({"BERTH_TEST_BOARD_LAPSE_MS": "1"})
    running = first.submit_one(training(), gpus=1)
    first.wait_started(running)
    for berth in (first, second):  # a look from before would not count
        eventually(
            lambda: berth.api("GET", "/api/gpus")["gpus"][0]["processes"],
            "its process is seen on the card",
        )
    first.kill9() if how == "killed" else first.stop()
    waiting = second.submit_one(f"touch {ground}/work/ran", gpus=1)
    eventually(
        lambda: f"held by {owner_words(0)}" in second.why(waiting), "the card is known to be held"
    )
    first.start()
    eventually(lambda: claims(ground), "what it adopted is claimed")
    assert not (ground / "work" / "ran").exists()
    assert first.show(running)["job"]["state"] == "running"
    first.kill_jobs([running], grace_ms=0)
    assert second.wait_one(waiting)["state"] == "succeeded"


def test_a_claim_that_nobody_is_behind_lapses(make_berths, ground):
    first, second = make_berths({"BERTH_TEST_BOARD_LAPSE_MS": "1"})
    running = first.submit_one("sleep 1000", gpus=1)  # it never touches its card
    first.wait_started(running)
    assert second.wait_one(second.submit_one("true", gpus=1))["state"] == "succeeded"


def test_garbage_on_the_board_is_left_alone(make_berths, ground):
    board = ground / "board"
    for name in ("berth-0-x", f"berth-{os.geteuid()}-y"):
        (board / name).mkdir()
    (board / "berth-0-x" / "claims").write_bytes(os.urandom(5000))
    os.mkfifo(board / f"berth-{os.geteuid()}-y" / "claims")
    (board / "berth-0-link").symlink_to("/proc/self/fd")
    os.mkfifo(board / "berth-1-pipe")
    (board / "berth-2-file").write_text("x")
    (board / "berth-").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(board / "berth-3-socket"))
        first, second = make_berths()
        for berth in (first, second):
            assert berth.wait_one(berth.submit_one("true", gpus=1))["state"] == "succeeded"
            assert berth.running()


def test_the_board_can_be_switched_off(make_berths, ground):
    first, second = make_berths({"BERTH_BOARD": "off"})
    running = first.submit_one("sleep 1000", gpus=1)
    first.wait_started(running)
    assert second.wait_one(second.submit_one("true", gpus=1))["state"] == "succeeded"
    assert list((ground / "board").iterdir()) == []


def test_a_board_that_cannot_be_used_is_told_and_berth_goes_on(make_berths, ground):
    (ground / "board").chmod(0o777)  # not sticky: others could remove what is ours
    first, _ = make_berths()
    assert first.wait_one(first.submit_one("true", gpus=1))["state"] == "succeeded"
    assert "event=no_board" in first.log_text() and "sticky" in first.log_text()


def test_the_doctor_shows_who_is_on_the_board(make_berths, ground):
    first, _ = make_berths()
    running = first.submit_one(training(), gpus=1)
    first.wait_started(running)

    def board():
        found = json.loads(first.cli("doctor", "--json").stdout)
        return next(entry for entry in found if entry["check"] == "claims board")

    assert board()["result"] == "ok"
    assert str(ground / "board") in board()["text"] and "claimed by the berths of" in board()["text"]
    first.kill9()
    assert "without a daemon" in board()["text"]
    (ground / "board").chmod(0o777)
    assert board()["result"] == "warn" and "sticky" in board()["text"]
