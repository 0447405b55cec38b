"""`berth --server`: every command, against an instance that only TCP leads to."""

import json
import os
import re
import signal
import subprocess

import pytest

import berthlib
import tcp
from berthlib import eventually, job
from tcp import remote

ENTER = "\r"

TWO = """version: 1
jobs:
  - {name: a, run: 'true', gpus: 0}
  - {name: b, run: 'true', gpus: 0, after: [a]}
"""

FEDWHAT = """seed_in: config
command: python3 test.py --cfp {config} --algo {algorithm} {extra_args}
jobs:
  - name: A
    config: configs/x.yaml
    algorithm: A
    log_path: logs/A.log
    extra_args: {seed: 42}
"""

PROGRAM = """import sys
print(open(sys.argv[sys.argv.index("--cfp") + 1]).read())
"""


# --- all of them ----------------------------------------------------------------------------------


def commands(instance):
    """The names of all commands, from the program itself."""
    text = instance.cli("--help", check=0).stdout
    return set(re.findall(r"^  ([a-z]+) {2,}[A-Z]", text, re.M))


# What is typed for each command; {…} is filled in by the test. More than one line: all of them.
EVERY = {
    "add": ["add --gpus 0 true", "add --gpus 0 --snapshot --cwd {tree} true"],
    "run": ["run {file}", "run --resume {file}", "run --redo --detach --json {file}"],
    "sweep": ["sweep --gpus 0 --grid x=1,2 -- echo {{x}}"],
    "check": ["check {file}", "check --json {file}"],
    "convert": ["convert {file}"],
    "ls": ["ls --all", "ls --all --json"],
    "show": ["show {told}", "show --json {told}"],
    "log": ["log {told}", "log -n 1 {told}", "log -f {told}", "log -f {told},{other}",
            "log --json {told}"],
    "results": ["results {told}", "results --json {told}", "results {told} --format csv"],
    "why": ["why {waiting}"],
    "wait": ["wait {told}"],
    "history": ["history", "history --json"],
    "gpus": ["gpus", "gpus --json"],
    "status": ["status", "status --json"],
    "pause": ["pause {waiting}"],
    "resume": ["resume {waiting}"],
    "start": ["start {waiting}"],
    "retry": ["retry --succeeded {other}"],
    "move": ["move --first {waiting}"],
    "set": ["set", "set max_concurrent=3"],
    "kill": ["kill {waiting}"],
    "rm": ["rm {waiting}"],
    "clean": ["clean --dry-run"],
    "report": ["report --state normal_exit"],
    "backup": ["backup {backup}"],
    "restore": ["restore {backup}"],
    "doctor": ["doctor", "doctor --json"],
    "ui": ["ui --print"],
    "token": ["token ls", "token add other"],
    "completion": ["completion bash"],
    "stop": ["stop"],
}
# Shown on a terminal below.
ON_A_TERMINAL = {"top"}


def test_every_command_works_from_another_machine(gpu_berth, tmp_path):
    names = commands(gpu_berth)
    assert len(names) > 25
    assert names == set(EVERY) | ON_A_TERMINAL, "a new command needs a line here"
    (tmp_path / "two.yaml").write_text(TWO)
    (tmp_path / "tree").mkdir()
    ids = gpu_berth.submit([job("echo acc: 0.5", name="told"), job("echo more", name="other")])
    gpu_berth.wait(ids)
    places = {
        "file": tmp_path / "two.yaml",
        "tree": tmp_path / "tree",
        "backup": tmp_path / "backup.db",
        "told": ids[0],
        "other": ids[1],
        "waiting": gpu_berth.submit_one("true", name="waiting", gpus=2, queue="later",
                                        start_at=4102444800000),
    }
    inside = {"BERTH_REPORT": str(tmp_path / "report")}
    for name in sorted(EVERY, key=lambda n: (n == "stop", n in ("rm",), n == "kill", n)):
        for line in EVERY[name]:
            words = line.format(**places).split()
            done = remote(gpu_berth, tmp_path, *words, env=inside)
            assert done.returncode == 0, (line, done)
            assert done.stdout or name in ("add", "report", "log", "kill"), (line, done)
    assert not (tmp_path / "elsewhere").exists(), "nothing was begun on this machine"


def test_a_daemon_elsewhere_starts_again_from_a_backup(berth, tmp_path):
    backup = tmp_path / "backup.db"
    kept = berth.submit_one("echo kept", name="kept")
    berth.wait([kept])
    remote(berth, tmp_path, "backup", backup, check=0)
    pid = berth.status()["pid"]
    later = berth.submit_one("sleep 1000", name="later")
    berth.wait_started(later)
    refused = remote(berth, tmp_path, "restore", backup, check=1)
    assert "a job is running" in refused.stderr
    berth.kill_jobs([later], grace_ms=0)
    berth.wait([later])
    rubbish = tmp_path / "rubbish"
    rubbish.write_text("not a database\n" * 100)
    for wrong, why in ((rubbish, "not an SQLite database"), (tmp_path / "missing", "missing"),
                       (berth.dir / "berth.db", "is what is there now"), ("backup.db", "begin with /")):
        refused = remote(berth, tmp_path, "restore", wrong, check=1)
        assert why in refused.stderr, (wrong, refused)
    assert [job["name"] for job in berth.jobs()] == ["kept", "later"]

    done = remote(berth, tmp_path, "restore", backup, check=0)
    assert "restored 1 jobs" in done.stdout and "the daemon runs again" in done.stdout
    assert [job["name"] for job in berth.jobs()] == ["kept"]
    assert berth.status()["pid"] == pid, "whoever watches the process sees no end of it"
    assert berth.submit_one("true") == later + 1
    # A request that comes a second time because its answer was lost changes nothing.
    told = berth.api("GET", "/api/restore")
    assert told["path"] == str(backup) and not told["running"] and not told["error"]
    again = berth.api("POST", "/api/restore", {"path": str(backup), "key": told["key"]})
    assert again == told and len(berth.jobs()) == 2


def test_a_restore_elsewhere_that_fails_leaves_all_as_it_was(berth, tmp_path):
    backup = tmp_path / "backup.db"
    kept = berth.submit_one("true", name="kept")
    berth.wait([kept])
    remote(berth, tmp_path, "backup", backup, check=0)
    later = berth.submit_one("true", name="later")
    berth.wait([later])
    whole = bytearray(backup.read_bytes())
    whole[4096:8192] = b"\xff" * 4096  # a page, which only the check of all of it finds
    backup.write_bytes(whole)
    refused = remote(berth, tmp_path, "restore", backup, check=1)
    assert str(backup) in refused.stderr or "damaged" in refused.stderr, refused
    assert [job["name"] for job in berth.jobs()] == ["kept", "later"]


def test_a_job_of_another_machine_is_looked_after(gpu_berth, tmp_path):
    job_id = int(remote(gpu_berth, tmp_path, "add", "--name", "far", "echo", "hello", check=0).stdout)
    remote(gpu_berth, tmp_path, "wait", job_id, check=0)
    assert "far" in remote(gpu_berth, tmp_path, "ls", "--all", check=0).stdout
    shown = json.loads(remote(gpu_berth, tmp_path, "show", job_id, "--json", check=0).stdout)
    assert shown["job"]["state"] == "succeeded"
    assert len(json.loads(remote(gpu_berth, tmp_path, "gpus", "--json", check=0).stdout)) == 2
    assert str(gpu_berth.dir) in remote(gpu_berth, tmp_path, "status", check=0).stdout


def test_a_read_only_token_only_looks(berth, tmp_path):
    done = berth.submit_one("echo acc: 0.5")
    berth.wait_one(done)
    remote(berth, tmp_path, "ls", scope="read", check=0)
    remote(berth, tmp_path, "results", done, scope="read", check=0)
    for words in (["add", "true"], ["results", done, "--file", "/etc/passwd"],
                  ["add", "--snapshot", "--cwd", tmp_path, "true"]):
        refused = remote(berth, tmp_path, *words, scope="read", check=1)
        assert "may only look" in refused.stderr, words


# --- logs -----------------------------------------------------------------------------------------


def test_logs_come_from_another_machine(berth, tmp_path):
    talks = berth.submit_one("for i in 1 2 3; do echo line $i; done", name="talks")
    berth.wait_one(talks)
    assert remote(berth, tmp_path, "log", talks, check=0).stdout == "line 1\nline 2\nline 3\n"
    for words in (["log", talks, "-n", 1], ["log", "-f", talks, "-n", 1]):
        assert remote(berth, tmp_path, *words, check=0).stdout == "line 3\n"
    assert remote(berth, tmp_path, "log", "-f", talks, check=0).stdout == "line 1\nline 2\nline 3\n"
    silent = berth.submit_one("true")
    berth.wait_one(silent)
    told = json.loads(remote(berth, tmp_path, "log", "--json", f"{talks},{silent}", check=0).stdout)
    assert [j["attempts"][0]["size"] for j in told] == [len("line 1\nline 2\nline 3\n"), 0]
    assert told == json.loads(berth.cli("log", "--json", f"{talks},{silent}", check=0).stdout)
    os.unlink(told[1]["attempts"][0]["path"])
    told = json.loads(remote(berth, tmp_path, "log", "--json", silent, check=0).stdout)
    assert told[0]["attempts"][0]["size"] is None
    go_on = tmp_path / "go-on"
    growing = berth.submit_one(
        f"echo first; until [ -e {go_on} ]; do sleep 0.05; done; echo last", name="grows")
    berth.wait_started(growing)
    go_on.touch()
    assert remote(berth, tmp_path, "log", "-f", growing, check=0).stdout == "first\nlast\n"
    for words in (["log", talks], ["log", "-f", talks]):
        refused = remote(berth, tmp_path, *words, "--attempt", 7, check=1)
        assert "has no attempt 7; it has had 1" in refused.stderr


def test_many_logs_are_followed_at_once(berth, tmp_path):
    go_on = tmp_path / "go-on"
    wait = f"until [ -e {go_on} ]; do sleep 0.05; done"
    ids = berth.submit([job(f"echo {name} begins; {wait}; echo {name} ends", name=name)
                        for name in ("one", "three")])
    for one in ids:
        berth.wait_started(one)
    never = berth.submit_one("true", name="never", start_at=4102444800000)
    berth.kill_jobs([never])
    watching = subprocess.Popen(
        [str(berth.bin_dir / "berth"), *tcp.way_to(berth, tmp_path), "log", "-f",
         ",".join(map(str, [*ids, never]))],
        env=berth.environment({"BERTH_DIR": str(tmp_path / "elsewhere")}), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    go_on.touch()
    out, errors = watching.communicate(timeout=berthlib.PATIENCE)
    assert sorted(out.splitlines()) == ["one   | one begins", "one   | one ends",
                                        "three | three begins", "three | three ends"]
    assert f"job {never} never started" in errors
    assert watching.returncode == 1, "of one there was nothing to tell"


def test_following_goes_on_when_the_daemon_comes_back(berth, tmp_path):
    go_on = tmp_path / "go-on"
    growing = berth.submit_one(
        f"echo first; until [ -e {go_on} ]; do sleep 0.05; done; echo last; exit 1", name="grows",
        retries=1)
    berth.wait_started(growing)
    seen = tmp_path / "seen"
    with seen.open("wb") as out:
        watching = subprocess.Popen(
            [str(berth.bin_dir / "berth"), *tcp.way_to(berth, tmp_path), "log", "-f", str(growing)],
            env=berth.environment({"BERTH_DIR": str(tmp_path / "elsewhere")}), text=True,
            stdout=out, stderr=subprocess.PIPE)
    eventually(lambda: seen.read_text() == "first\n", "the log is followed")
    berth.stop()
    berth.start()
    go_on.touch()
    _, errors = watching.communicate(timeout=berthlib.PATIENCE)
    assert seen.read_text() == "first\nlast\n" * 2
    assert f"attempt 2 of job {growing}" in errors
    assert watching.returncode == 0


def test_an_interrupt_ends_following_at_once(berth, tmp_path):
    waiting = berth.submit_one("true", name="later", start_at=4102444800000)
    watching = subprocess.Popen(
        [str(berth.bin_dir / "berth"), *tcp.way_to(berth, tmp_path), "log", "-f", str(waiting)],
        env=berth.environment({"BERTH_DIR": str(tmp_path / "elsewhere")}),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    caught = f"/proc/{watching.pid}/status"
    eventually(lambda: int(re.search(r"SigCgt:\s*(\w+)", open(caught).read())[1], 16)
               & (1 << (signal.SIGINT - 1)), "it catches the signal")
    watching.send_signal(signal.SIGINT)
    assert watching.wait(berthlib.PATIENCE) == 130


def test_top_shows_a_log_of_another_machine(berth, screen_of, tmp_path):
    go = tmp_path / "go"
    talker = berth.submit_one(
        f"echo first; until [ -e {go} ]; do sleep 0.05; done; echo second; sleep 1000", name="talker")
    berth.wait_started(talker)
    top = screen_of(berth, *tcp.way_to(berth, tmp_path), "top",
                    env={"BERTH_DIR": str(tmp_path / "elsewhere")})
    top.sees(rf"^> +{talker} talker")
    top.send(ENTER)
    top.sees(r"^state +running")
    top.send("l")
    top.sees("^first$")
    go.touch()
    top.sees("^second$")
    top.send("q")
    top.sees(r"\[Jobs\]")


# --- results --------------------------------------------------------------------------------------


SWEEP = """version: 1
defaults: {gpus: 0}
jobs:
  - name: "{lr}-{seed}"
    matrix: {lr: ["0.57", "0.93"], seed: [1, 2]}
    run: sh train.sh {lr} {seed}
"""

TRAIN = """for e in 1 2 3; do echo Epoch $e acc: $1; echo special=$2.25; done
mkdir -p out/$1-$2
echo '{"f1": 0.'$2'7}' > out/$1-$2/metrics.json
"""


def test_results_of_some_jobs_are_asked_of_these_alone(berth):
    ids = berth.submit([job(f"echo acc: 0.{n}") for n in range(1, 4)])
    berth.wait(ids)
    told = berth.api("POST", "/api/results/runs", {"ids": str(ids[1])})
    assert [run["job"] for run in told["runs"]] == [ids[1]] and told["next"] is None


def test_patterns_that_would_keep_the_daemon_busy_are_refused(berth):
    pattern = "(?:" + "a?" * 50 + "){60}b([0-9])"
    for metrics, words in (([{"name": f"m{n}", "pattern": pattern} for n in range(20)], "together are too large"),
                           ([{"name": f"m{n}", "pattern": "x([0-9])"} for n in range(101)], "more than 100")):
        with pytest.raises(berthlib.ApiError) as refused:
            berth.api("POST", "/api/results/runs", {"ids": "1", "metrics": metrics})
        assert refused.value.status == 400 and words in str(refused.value)


def test_results_are_the_same_from_another_machine(berth, tmp_path):
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    (tmp_path / "train.sh").write_text(TRAIN)
    berth.cli("run", "sweep.yaml", cwd=tmp_path, env={"PWD": str(tmp_path)}, check=0)
    pattern = "mine=special=([0-9.]+)"
    for words in ([], ["--json"], ["1-3", "--best", "acc"], ["--metric", pattern],
                  ["--file", "out/{name}/metrics.json"], ["sweep.yaml", "--format", "latex"],
                  ["--format", "csv", "--take", "mean"], ["--by", "lr", "--wide"]):
        here = berth.cli("results", *words, cwd=tmp_path, env={"PWD": str(tmp_path)}, check=0)
        there = remote(berth, tmp_path, "results", *words, cwd=tmp_path,
                       env={"PWD": str(tmp_path)}, check=0)
        assert there.stdout == here.stdout and "0." in here.stdout, words
    for run, name in ((berth.cli, "here"), (lambda *w, **k: remote(berth, tmp_path, *w, **k), "there")):
        run("results", "--html", tmp_path / name, check=0)
    strip = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?")
    assert strip.sub("", (tmp_path / "here").read_text()) == strip.sub(
        "", (tmp_path / "there").read_text()), "the curves, too"


def test_metrics_that_cannot_be_read_are_told(berth, tmp_path):
    done = berth.submit_one("echo acc: 0.5")
    berth.wait_one(done)
    (tmp_path / "bad.json").write_text("{")
    told = remote(berth, tmp_path, "results", done, "--file", tmp_path / "bad.json", check=0)
    assert f"warning: job {done}" in told.stderr and "0.5" in told.stdout


# --- doctor ---------------------------------------------------------------------------------------


def checks(done):
    return {f["check"]: f for f in json.loads(done.stdout)}


def test_doctor_looks_at_what_can_be_seen_from_here(gpu_berth, tmp_path):
    found = checks(remote(gpu_berth, tmp_path, "doctor", "--json", check=0))
    assert {name: f["result"] for name, f in found.items()} == dict.fromkeys(
        ["connection", "TLS", "token", "daemon", "health", "GPUs", "clock", "the rest"], "ok")
    assert "2, simulated" in found["GPUs"]["text"]
    assert "ssh " in found["the rest"]["text"] and "berth doctor" in found["the rest"]["text"]
    assert checks(remote(gpu_berth, tmp_path, "doctor", "--json", scope="read",
                         check=0))["token"]["result"] == "warn"

    (gpu_berth.dir / "berth.yaml").write_text("no_such_rule: 1\n")
    eventually(lambda: gpu_berth.status()["problems"], "the mistake is noticed")
    health = checks(remote(gpu_berth, tmp_path, "doctor", "--json", check=0))["health"]
    assert health["result"] == "warn" and "no_such_rule" in health["text"]


def test_doctor_tells_what_keeps_one_from_an_instance(berth, tmp_path):
    way = tcp.way_to(berth, tmp_path)
    (tmp_path / "token-full").write_text("berth_0\n")
    found = checks(berth.cli(*way, "doctor", "--json", check=1))
    assert found["connection"]["result"] == "ok" and found["token"]["result"] == "fail"
    berth.cli("ui", "--stop", check=0)
    found = checks(berth.cli(*way, "doctor", "--json", check=1))
    assert found["connection"]["result"] == "fail" and "tunnel" in found["connection"]["advice"]


# --- job files ------------------------------------------------------------------------------------


def test_a_job_file_runs_on_another_machine_and_is_resumed(berth, tmp_path):
    file = tmp_path / "two.yaml"
    file.write_text(TWO)
    remote(berth, tmp_path, "run", file, check=0)
    assert {j["name"]: j["state"] for j in berth.jobs()} == {"a": "succeeded", "b": "succeeded"}
    again = remote(berth, tmp_path, "run", "--resume", file, check=0)
    assert "2 of 2 have succeeded before" in again.stdout and "nothing is left" in again.stdout
    log = berth.show(1)["attempts"][0]["log"]
    berthlib.pathlib.Path(log).unlink()
    again = remote(berth, tmp_path, "run", "--resume", file, check=0)
    assert "1 of 2 have succeeded before" in again.stdout, "a deleted log asks for another run"


@pytest.fixture
def project(tmp_path):
    here = tmp_path / "project"
    (here / "configs").mkdir(parents=True)
    (here / "configs" / "x.yaml").write_text("dataset: cifar\nseed: 0\n")
    (here / "test.py").write_text(PROGRAM)
    (here / "jobs.yaml").write_text(FEDWHAT)
    return here


def test_configuration_files_are_written_where_the_jobs_run(gpu_berth, tmp_path, project):
    done = remote(gpu_berth, tmp_path, "run", "jobs.yaml", "--dialect", "fedwhat", cwd=project,
                  env={"PWD": str(project)}, check=0)
    assert "1 of 1 succeeded" in done.stdout
    assert "seed: 42" in (project / "logs" / "A.log").read_text()
    assert len(list((project / "configs" / "temp").glob("x_seed42_*.yaml"))) == 1
    again = remote(gpu_berth, tmp_path, "run", "jobs.yaml", "--dialect", "fedwhat", cwd=project,
                   env={"PWD": str(project)}, check=0)
    assert "nothing is left to run" in again.stdout


def test_files_are_written_by_the_daemon(berth, tmp_path):
    path = tmp_path / "new" / "x.yaml"
    berth.api("POST", "/api/files", {"files": [{"path": str(path), "content": "a: 1\n"}],
                                     "state_dir": str(tmp_path / "state")})
    assert path.read_text() == "a: 1\n"
    assert (tmp_path / "state" / "uni_id.json").read_text() == "{}\n"
    for body in ({}, {"files": [{"path": "x", "content": ""}]}, {"files": [], "state_dir": "x"}):
        with pytest.raises(berthlib.ApiError) as refused:
            berth.api("POST", "/api/files", body)
        assert refused.value.status == 400, body


def test_a_file_sent_as_text_leaves_out_what_is_done(gpu_berth, project):
    body = {"text": FEDWHAT, "name": "jobs.yaml", "dialect": "fedwhat", "cwd": str(project)}
    first = gpu_berth.api("POST", "/api/jobfiles", body)
    assert first["skipped"] == [] and len(first["ids"]) == 2
    gpu_berth.wait(first["ids"][:1])
    again = gpu_berth.api("POST", "/api/jobfiles", body)
    assert (again["ids"], again["batch"]) == ([], None)
    assert again["skipped"] == [{"name": "A", "job": first["ids"][0], "why": "succeeded"}]
    redone = gpu_berth.api("POST", "/api/jobfiles", {**body, "leave_out_done": False})
    assert redone["skipped"] == [] and redone["ids"][0] > first["ids"][0]
    gpu_berth.wait_all()


def test_a_native_file_sent_as_text_is_resumed_when_asked(berth, tmp_path):
    body = {"text": TWO, "name": "two.yaml", "cwd": str(tmp_path)}
    first = berth.api("POST", "/api/jobfiles", body)["ids"]
    berth.wait(range(first[0], first[1] + 1))
    assert berth.api("POST", "/api/jobfiles", body)["skipped"] == []
    berth.wait_all()
    resumed = berth.api("POST", "/api/jobfiles", {**body, "leave_out_done": True})
    assert [s["name"] for s in resumed["skipped"]] == ["a", "b"] and resumed["ids"] == []


# --- snapshots ------------------------------------------------------------------------------------


def test_a_snapshot_is_taken_of_the_tree_that_the_job_runs_in(berth, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "code.txt").write_text("old\n")
    berth.cli("pause", "--instance", check=0)
    added = remote(berth, tmp_path, "add", "--gpus", 0, "--snapshot", "--cwd", tree, "cat code.txt",
                   check=0)
    (tree / "code.txt").write_text("new\n")
    [kept] = (berth.dir / "snapshots").iterdir()
    berth.cli("resume", "--instance", check=0)
    berth.wait_one(int(added.stdout))
    assert remote(berth, tmp_path, "log", added.stdout.strip(), check=0).stdout == "old\n"
    remote(berth, tmp_path, "rm", added.stdout.strip(), check=0)
    eventually(lambda: not kept.exists(), "it goes with its job")
    refused = remote(berth, tmp_path, "add", "--gpus", 0, "--snapshot", "--cwd", tmp_path / "none",
                     "true", check=1)
    assert "no directory" in refused.stderr
    assert not list((berth.dir / "snapshots").iterdir()), "what failed has left nothing"


def test_a_snapshot_that_is_asked_for_again_is_the_same(berth, tmp_path):
    tree, other = tmp_path / "tree", tmp_path / "other"
    for made in (tree, other):
        made.mkdir()
    asked = {"key": "once", "dirs": [str(tree)]}
    first = berth.api("POST", "/api/snapshots", asked)
    assert berth.api("POST", "/api/snapshots", asked) == first
    with pytest.raises(berthlib.ApiError) as refused:
        berth.api("POST", "/api/snapshots", {"key": "once", "dirs": [str(other)]})
    assert refused.value.status == 409 and "once" in refused.value.body["error"]["message"]
    assert len(list((berth.dir / "snapshots").iterdir())) == 1
    # One that this daemon knows nothing of, as after a restart.
    (berth.dir / "snapshots" / "before").mkdir()
    with pytest.raises(berthlib.ApiError) as refused:
        berth.api("POST", "/api/snapshots", {**asked, "key": "before"})
    assert refused.value.status == 409


def test_a_key_that_is_a_path_is_refused(berth, tmp_path):
    for key in ("", "../x", "a/b", "x" * 129):
        with pytest.raises(berthlib.ApiError) as refused:
            berth.api("POST", "/api/snapshots", {"key": key, "dirs": [str(tmp_path)]})
        assert refused.value.status == 400, key
