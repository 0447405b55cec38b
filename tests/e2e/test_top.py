"""berth top as somebody at a terminal has it."""

import os
import re
import signal
import subprocess

import pytest

from berthlib import PATIENCE, eventually, job

ENTER = "\r"
ESCAPE = "\x1b"
CTRL_C = "\x03"
CTRL_Z = "\x1a"
DOWN = "\x1b[B"


@pytest.fixture
def busy(gpu_berth):
    """Job 1 runs on a card, job 2 waits for two, job 3 has failed."""
    gpu_berth.submit(
        [
            job("echo begun; sleep 1000", gpus=1, name="train"),
            job("true", gpus=2, name="eval", queue="nightly"),
            job("exit 3", name="bad"),
        ]
    )
    gpu_berth.wait_started(1)
    gpu_berth.wait_one(3)
    return gpu_berth


def test_shows_the_cards_and_the_jobs(busy, screen_of):
    top = screen_of(busy, "top")
    top.sees(r"^1 running  1 queued .*GPUs: 1/2 free")
    top.sees(r"^  0 .*24 GiB .*(job 1|free)$")
    top.sees(r"^>    1 train ")
    top.sees(r"^     2 eval .*asks for 2 GPUs")
    top.sees(r"^     3 bad .*failed .*exited with code 3")
    assert top.screen.alternate
    assert not top.screen.cursor_shown
    assert len(top.screen.lines()) == 24


def test_kill_asks_and_then_kills(busy, screen_of):
    top = screen_of(busy, "top")
    top.sees(r"^>    1 train ")
    top.send("K")
    top.sees(r"^kill job 1 train\? \[y/n\]")
    top.send("n")
    top.sees("left alone")
    assert busy.show(1)["job"]["state"] == "running"
    top.send("K")
    top.sees(r"^kill job 1 train\? \[y/n\]")
    top.send("y")
    busy.wait_state(1, "killed")
    top.sees(r"1 train .*killed")


def test_pause_resume_start_and_priority(busy, screen_of):
    top = screen_of(busy, "top")
    top.sees(r"^>    1 train ")
    top.send("p")
    busy.wait_state(1, "paused")
    top.sees(r"^PAUSED 1")
    top.send("p")
    busy.wait_state(1, "running")
    top.sees(r"^RUNNING 1")
    top.send(DOWN)
    top.sees(r"^>    2 eval")
    top.send("+")
    top.sees("job 2: priority 4")
    assert busy.show(2)["job"]["priority"] == 4
    top.send("s")
    top.sees("job 2: starts next")
    assert busy.show(2)["job"]["expedited"]


def test_what_changes_nothing_does_not_claim_to(busy, screen_of):
    busy.cli("pause", "--instance", check=0)
    top = screen_of(busy, "top")
    top.sees("berth is paused: berth resume --instance")
    top.sees(r"^ +3 bad ")
    top.send("G")
    top.sees(r"^> +3 bad ")
    top.send("+")
    top.sees("^job 3: has ended already")
    top.send("s")
    top.sees("^job 3: has ended already")
    assert busy.show(3)["job"]["priority"] == 5


def test_a_queue_is_paused_and_its_jobs_are_shown(busy, screen_of):
    top = screen_of(busy, "top")
    top.sees(r"^>    1 train ")
    top.send("\t")
    top.sees(r"\[Queues\]")
    top.send("j")
    top.sees(r"^> nightly .*open")
    top.send("p")
    top.sees(r"^> nightly .*paused")
    assert [q["paused"] for q in busy.status()["queues"] if q["name"] == "nightly"] == [True]
    top.send(ENTER)
    top.sees("only 'nightly'")
    assert "train" not in top.screen.text()
    top.send(ESCAPE)
    top.sees("train")


def test_looks_into_a_job_and_follows_its_log(busy, screen_of, tmp_path):
    go = tmp_path / "go"
    script = f"echo first; until [ -e {go} ]; do sleep 0.05; done; echo second; sleep 1000"
    talker = busy.submit_one(script, name="talker")
    busy.wait_started(talker)
    top = screen_of(busy, "top")
    top.sees("talker")
    top.send("/talker" + ENTER)
    top.sees(rf"^> +{talker} talker")
    top.send(ENTER)
    top.sees(r"^state +running")
    top.sees(r"^ATTEMPT")
    top.send("l")
    top.sees("^first$")
    go.touch()
    top.sees("^second$")
    top.send("q")
    top.sees(r"\[Jobs\]")
    top.send(ESCAPE + "g" + DOWN * 2)
    top.sees(r"^>    2 eval")
    top.send(ENTER)
    top.sees(r"^job 2 eval is queued:")


def test_a_resize_is_followed(busy, screen_of):
    top = screen_of(busy, "top")
    top.sees(r"^>    1 train ")
    top.resize(40, 140)
    top.sees(r"^>    1 train .*echo begun")
    top.resize(10, 60)
    top.sees(r"^>    1 train ")
    top.sees("^q quit")
    assert len(top.screen.lines()) == 10


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("q", 0),
        (CTRL_C, 128 + signal.SIGINT),
        (signal.SIGTERM, 128 + signal.SIGTERM),
        (signal.SIGHUP, 128 + signal.SIGHUP),
    ],
)
def test_whatever_ends_it_gives_the_terminal_back(busy, screen_of, how, code):
    top = screen_of(busy, "top")
    top.sees(r"^>    1 train ")
    top.hold()
    assert top.mode() == (False, False)
    if isinstance(how, str):
        top.send(how)
    else:
        os.kill(top.pid, how)
    assert top.ended() == code
    assert top.mode() == (True, True)
    assert not top.screen.alternate
    assert top.screen.cursor_shown


def test_stops_for_a_while_and_comes_back(busy, screen_of):
    shell = screen_of(busy, command=["bash", "--norc", "-i"], env={"PS1": "ready> "})
    shell.expect("ready> ")
    shell.send(f"{busy.bin_dir / 'berth'} top{ENTER}")
    eventually(lambda: shell.read(0.02) is None or shell.screen.alternate, "its screen")
    shell.sees("train")
    shell.text = ""
    shell.send(CTRL_Z)
    shell.expect("ready> ")
    assert not shell.screen.alternate
    shell.send(f"fg{ENTER}")
    eventually(lambda: shell.read(0.02) is None or shell.screen.alternate, "its screen")
    shell.sees(r"^>    1 train ")
    shell.text = ""
    shell.send("q")
    shell.expect("ready> ")
    assert not shell.screen.alternate


def test_says_that_the_daemon_is_gone_and_goes_on_when_it_is_back(busy, screen_of):
    top = screen_of(busy, "top")
    top.sees(r"^>    1 train ")
    busy.stop()
    top.sees(r"\Aberth top .*no answer since")
    top.sees("train")
    busy.start()
    top.sees(r"\Aberth top .*\d\d:\d\d:\d\d$")
    assert "no answer" not in top.screen.text()


def test_keys_are_answered_while_the_daemon_hangs(busy, screen_of):
    top = screen_of(busy, "top")
    top.sees(r"^>    1 train ")
    os.kill(busy.pid, signal.SIGSTOP)
    try:
        top.send(DOWN)
        top.sees(r"^>    2 eval")
        top.hold()
        top.send("q")
        assert top.ended() == 0
    finally:
        os.kill(busy.pid, signal.SIGCONT)


def test_updates_can_be_stopped(busy, screen_of):
    top = screen_of(busy, "top")
    top.sees(r"^>    1 train ")
    top.send(" ")
    top.sees("updates stopped")
    top.send(" ")
    top.sees(r"\Aberth top .*\d\d:\d\d:\d\d$")
    late = busy.submit_one("sleep 1000", name="late")
    top.sees(rf"^ +{late} late")


def test_without_utf8_and_colours(busy, screen_of):
    name = busy.submit_one("sleep 1000", name="训练")
    top = screen_of(busy, "top", env={"LANG": "C", "LC_ALL": "C", "NO_COLOR": "1"})
    top.sees(rf"^ +{name} \?\?\?\? ")
    assert top.screen.text().isascii()
    assert not re.search(r"\x1b\[3[0-9]m", top.text)


def test_wide_characters_align(busy, screen_of):
    chinese = busy.submit_one("sleep 1000", name="训练模型")
    latin = busy.submit_one("sleep 1000", name="abcdefgh")
    top = screen_of(busy, "top")
    top.sees(rf"^ +{latin} abcdefgh +default")
    top.sees(rf"^ +{chinese} 训练模型 +default")
    rows = {line: cells for line, cells in zip(top.screen.lines(), top.screen.cells, strict=True)}

    def column(start):
        cells = next(cells for line, cells in rows.items() if line.lstrip().startswith(start))
        return next(i for i in range(len(cells)) if "".join(cells[i : i + 7]) == "default")

    assert column(f"{chinese} ") == column(f"{latin} ")


def test_tells_where_it_cannot_draw(busy, screen_of):
    plain = busy.cli("top", stdin=subprocess.DEVNULL, timeout=PATIENCE)
    assert plain.returncode == 1
    assert "berth ls --watch" in plain.stderr
    assert "--json" in plain.stderr
    dumb = screen_of(busy, "top", env={"TERM": "dumb"})
    text = dumb.finish()
    assert "berth --watch" in text
    assert dumb.code == 1
    assert "1049" not in text
