"""The console of compete_gpu_retry over the API: command files by number, schedulers, logs."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import urllib.parse

import pytest
import tcp
from berthlib import PATIENCE, ApiError, Gone, eventually, job

FIRST_NUMBER = 4_194_304  # no process has a pid beyond it


class Console:
    """The files of a scheduler, and its API."""

    def __init__(self, berth, path):
        self.berth = berth
        self.dir = path / "compete"
        self.command = self.dir / "command"
        self.command.mkdir(parents=True)

    def write(self, name, text):
        (self.command / name).write_text(text)

    def get(self, path, **query):
        return self.call("GET", path, **query)

    def post(self, path, **query):
        return self.call("POST", path, **query)

    def call(self, method, path, body=None, **query):
        text = urllib.parse.urlencode(query)
        return self.berth.api(method, f"{path}?{text}" if text else path, body)

    def refused(self, status, method, path, body=None, **query):
        """The error of a request that must fail with this status."""
        with pytest.raises(ApiError) as error:
            self.call(method, path, body, **query)
        assert error.value.status == status, error.value
        assert error.value.body["error"]["message"]
        return error.value.body

    def state(self, mode="single", index=0):
        return self.get(f"/api/scheduler/{mode}/state", config_index=index)

    def wait_state(self, what, mode="single", index=0):
        return eventually(
            lambda: (s := self.state(mode, index)) and what(s) and s, f"{mode} {index}: {what}"
        )


@pytest.fixture
def console(make_instance, tmp_path):
    """Two simulated cards; the command files are where berth.yaml says."""
    instance = make_instance(gpus="sim:2x24GiB")
    made = Console(instance, tmp_path)
    instance.dir.mkdir(parents=True, mode=0o700)
    (instance.dir / "berth.yaml").write_text(f"command_dir: {made.command}\n")
    instance.start()
    return made


def block(queue, *commands, memory=1, gpus=None):
    lines = [queue, *commands, *([] if gpus is None else [gpus]), memory]
    return "\n".join(map(str, lines)) + "\n\n"


def test_command_files_by_their_numbers(console):
    empty = console.get("/api/commands/single/list")
    assert empty["mode"] == "single"
    assert [(c["index"], c["exists"]) for c in empty["configs"]] == [(0, False)]
    assert console.get("/api/commands/single") == {
        "mode": "single",
        "config_index": 0,
        "config_name": "configuration 1",
        "file_path": str(console.command / "command_gpu.txt"),
        "file_name": "command_gpu.txt",
        "exists": False,
        "queues": [],
        "problems": [],
        "version": console.get("/api/commands/single")["version"],
    }
    for index in range(3):
        made = console.post("/api/commands/single/new")["config"]
        assert (made["index"], made["exists"]) == (index, True)
    assert console.post("/api/commands/multi/new")["config"]["file_name"] == "command_gpus.txt"
    body = {"queues": [{"id": 1, "processes": [{"commands": ["python train.py"], "memory": 20}]}]}
    saved = console.call("PUT", "/api/commands/single", body, config_index=2)
    assert saved["queues"][0]["processes"][0]["memory"] == 20
    assert (console.command / "command_gpu_2.txt").read_text().endswith("\n1\npython train.py\n20\n")
    console.call("DELETE", "/api/commands/single/1")
    files = console.get("/api/commands/single/list")["configs"]
    assert [c["index"] for c in files] == [0, 2]
    everything = console.get("/api/commands/single/all")["configs"]
    assert [len(c["queues"]) for c in everything] == [0, 1]
    # What cannot be read hides none of the others.
    (console.command / "command_gpu_7.txt").mkdir()
    *others, bad = console.get("/api/commands/single/all")["configs"]
    assert others == everything
    assert bad["index"] == 7 and "no regular file" in bad["problems"][0]["message"]
    (console.command / "command_gpu_7.txt").rmdir()
    # What was read can be sent back, and is refused when somebody else was faster.
    read = console.get("/api/commands/single", config_index=2)
    read["queues"][0]["processes"].append({"commands": ["true"], "memory": 1.5})
    console.call("PUT", "/api/commands/single", read, config_index=2)
    console.refused(409, "PUT", "/api/commands/single", read, config_index=2)
    text = console.get("/api/commands/single", config_index=2, text="true")["text"]
    assert text.endswith("\n\n1\ntrue\n1.5\n")
    console.call("PUT", "/api/commands/single", {"text": "# mine\n" + text}, config_index=2)
    assert (console.command / "command_gpu_2.txt").read_text() == "# mine\n" + text
    assert (console.command / "command_gpu_2.txt.backup").read_text() == text


def test_command_files_that_cannot_be(console):
    console.refused(404, "GET", "/api/commands/both/list")
    console.refused(404, "GET", "/api/commands/single", config_index=7)
    console.refused(404, "DELETE", "/api/commands/single/7")
    console.refused(400, "DELETE", "/api/commands/single/0")
    console.refused(400, "DELETE", "/api/commands/single/x")
    console.refused(400, "GET", "/api/commands/single", config_index=-1)
    console.refused(400, "GET", "/api/commands/single", config_index=10000)
    console.refused(400, "GET", "/api/commands/single", unknown=1)
    console.refused(405, "PATCH", "/api/commands/single")
    for body in (
        None,
        [],
        {},
        {"queues": 3},
        {"queues": [], "text": ""},
        {"queues": [{"id": 1}]},
        {"queues": [{"id": -1, "processes": []}]},
        {"queues": [{"id": 1, "processes": [{"commands": [], "memory": 1}]}]},
        {"queues": [{"id": 1, "processes": [{"commands": ["x"]}]}]},
        {"queues": [{"id": 1, "processes": [{"commands": ["x"], "memory": 1, "gpu_count": 2}]}]},
        {"queues": [{"id": 1, "processes": [{"commands": ["x"], "memory": 1, "what": 2}]}]},
        {"queues": [{"id": 1, "processes": []}, {"id": 1, "processes": []}]},
        {"queues": [{"id": 1, "processes": [{"commands": ["a\n\nb"], "memory": 1}]}]},
        {"text": 3},
        {"text": "", "mode": "multi"},
        {"text": "", "config_index": 3},
    ):
        console.refused(400, "PUT", "/api/commands/single", body)
    wrong = console.refused(422, "PUT", "/api/commands/single", {"text": "1\ntrue\n2\n20\n"})
    assert [(p["line"], p["severity"]) for p in wrong["problems"]] == [(3, "error")]
    assert wrong["problems"][0]["file"] is None, "the text itself"
    assert not (console.command / "command_gpu.txt").exists()
    # A file that was edited by hand is shown as far as it can be read.
    console.write("command_gpu.txt", block(1, "true") + "3\nfalse\n")
    shown = console.get("/api/commands/single")
    assert [q["id"] for q in shown["queues"]] == [1]
    assert shown["problems"]


def test_a_command_file_from_start_to_end(console, tmp_path):
    out = tmp_path / "out"
    console.write(
        "command_gpu_1.txt",
        block(1, f"echo a {{work_dir}} >> {out}") + block(1, f"echo b >> {out}", "false || true")
        + block(7, "true", memory=2),
    )
    idle = console.state(index=1)
    assert (idle["state"], idle["running"], idle["pid"]) == ("idle", False, None)
    started = console.post("/api/scheduler/single/start", config_index=1)
    assert started["success"] is True
    assert started["pid"] > FIRST_NUMBER
    assert started["ids"][1] - started["ids"][0] == 2
    done = console.wait_state(lambda s: not s["running"], index=1)
    assert (done["state"], done["pid"], done["batch"]) == (
        "completed", started["pid"], started["batch"])
    assert (done["mode"], done["config_index"]) == ("single", 1)
    assert done["config_file"] == started["config_file"]
    assert done["completed_tasks"] == done["total_tasks"] == 3
    assert sorted(done["queues"]) == ["1", "7"]
    assert done["queues"]["1"]["processes"][1]["commands"] == [f"echo b >> {out}", "false || true"]
    assert out.read_text() == f"a {tmp_path}\nb\n"  # one after the other, in the work directory
    # The same as the file, but for what the answer adds.
    path = console.dir / "logs" / "state" / f"{started['pid']}.json"
    eventually(lambda: path.exists() and json.loads(path.read_text())["state"] == "completed",
               "the state file tells of the end")
    in_file = json.loads(path.read_text())
    assert in_file.items() <= {**done, "updated_at": in_file["updated_at"]}.items()
    assert console.get("/api/scheduler/running") == {"schedulers": []}
    assert started["log_file"] == str(console.dir / "logs" / "scheduler_single_1.log")
    eventually(lambda: pathlib.Path(started["log_file"]).exists(), "the log is there")
    log = console.get("/api/log/read", log_path=started["log_file"])
    assert "queue 7: job" in log["content"]
    # It can run again.
    again = console.post("/api/scheduler/single/start", config_index=1)
    assert again["pid"] > started["pid"]
    console.wait_state(lambda s: s["pid"] == again["pid"] and not s["running"], index=1)


def test_what_cannot_be_started(console):
    console.refused(404, "POST", "/api/scheduler/single/start")
    console.refused(404, "POST", "/api/scheduler/single/start", config_index=3)
    console.refused(404, "POST", "/api/scheduler/other/start")
    console.refused(400, "POST", "/api/scheduler/single/start", config_index="x")
    console.refused(409, "POST", "/api/scheduler/single/stop")
    console.refused(404, "POST", "/api/scheduler/stop/1")
    console.refused(400, "POST", "/api/scheduler/stop/x")
    console.refused(404, "GET", "/api/scheduler/single/state", config_index=3)
    # Reads both ways: a queue at its beginning, and queue,memory at its end.
    console.write("command_gpu.txt", "1\ntrue\n2,20\n")
    wrong = console.refused(422, "POST", "/api/scheduler/single/start")
    assert "reads both ways" in wrong["error"]["message"]
    assert wrong["problems"][0]["line"] == 3
    # A block for several GPUs in a file for one.
    console.write("command_gpu.txt", block(1, "true", gpus=2))
    console.refused(422, "POST", "/api/scheduler/single/start")
    console.write("command_gpu.txt", "# nothing\n")
    console.refused(422, "POST", "/api/scheduler/single/start")
    (console.dir / "config").mkdir()
    (console.dir / "config" / "gpu_manage.yaml").write_text("gpu_left: many\n")
    console.write("command_gpu.txt", block(1, "true"))
    wrong = console.refused(422, "POST", "/api/scheduler/single/start")
    assert wrong["problems"][0]["file"].endswith("gpu_manage.yaml")
    assert console.berth.jobs() == []


def test_stop_starts_nothing_more(console, tmp_path):
    go = tmp_path / "go"
    hold = f"until test -e {go}; do sleep 0.05; done; echo ran >> {tmp_path}/ran; false"
    console.write("command_gpus_2.txt", "".join(block(1, hold, gpus=1) for _ in range(3)))
    started = console.post("/api/scheduler/multi/start", config_index=2)
    console.wait_state(lambda s: s["running_tasks"] == 1, "multi", 2)
    console.refused(409, "POST", "/api/scheduler/multi/start", config_index=2)
    [running] = console.get("/api/scheduler/running")["schedulers"]
    assert (running["pid"], running["mode"]) == (started["pid"], "multi")
    first = started["ids"][0]
    stopped = console.post(f"/api/scheduler/stop/{started['pid']}")
    assert stopped["success"] is True
    assert (stopped["running"], stopped["killed"]) == ([first], [])
    assert stopped["cancelled"] == [first + 1, first + 2]
    assert console.state("multi", 2)["stopped"] is True
    go.touch()
    # What ran goes on to its end; it failed, and is not tried again.
    ended = console.wait_state(lambda s: not s["running"], "multi", 2)
    assert (ended["state"], ended["failed_tasks"]) == ("failed", 3)
    assert (tmp_path / "ran").read_text() == "ran\n"
    assert console.berth.show(first)["job"]["attempts"] == 1


def test_a_stopped_file_can_be_started_while_its_last_task_runs(console, tmp_path):
    go = tmp_path / "go"
    console.write("command_gpu.txt", block(1, f"until test -e {go}; do sleep 0.05; done") * 2)
    old = console.post("/api/scheduler/single/start")
    console.wait_state(lambda s: s["running_tasks"] == 1)
    console.post("/api/scheduler/single/stop")
    new = console.post("/api/scheduler/single/start", config_index=0)
    assert new["pid"] != old["pid"]
    both = console.get("/api/scheduler/running")["schedulers"]
    assert [s["pid"] for s in both] == [new["pid"], old["pid"]]
    go.touch()
    console.wait_state(lambda s: not s["running"])
    assert console.state()["completed_tasks"] == 2


def test_stop_and_kill(console):
    console.write("command_gpu.txt", block(1, "exec sleep 600") + block(1, "true"))
    started = console.post("/api/scheduler/single/start")
    console.wait_state(lambda s: s["running_tasks"] == 1)
    stopped = console.post("/api/scheduler/single/stop", kill="true")
    assert (stopped["killed"], stopped["cancelled"]) == ([started["ids"][0]], [started["ids"][1]])
    console.wait_state(lambda s: not s["running"])
    assert console.berth.show(started["ids"][0])["job"]["state"] == "killed"
    console.refused(409, "POST", "/api/scheduler/single/stop")
    console.refused(400, "POST", "/api/scheduler/single/stop", kill="perhaps")


def test_many_tasks_are_stopped_at_once(console, tmp_path):
    go = tmp_path / "go"
    hold = f"until test -e {go}; do sleep 0.05; done"
    console.write("command_gpu.txt", block(1, hold) + block(1, f"touch {tmp_path}/next") * 400)
    started = console.post("/api/scheduler/single/start")
    console.wait_state(lambda s: s["running_tasks"] == 1)
    stopped = console.post("/api/scheduler/single/stop")
    assert len(stopped["cancelled"]) == 400
    assert stopped["running"] == [started["ids"][0]]
    go.touch()
    console.wait_state(lambda s: not s["running"])
    assert not (tmp_path / "next").exists()
    assert not any(q["paused"] for q in console.berth.status()["queues"])


@pytest.mark.parametrize(
    "point, kill",
    [("stop_noted", "false"), ("stop_slice:1", "true"), ("stop_slice:3", "false"),
     ("after_commit:1", "false"), ("after_commit:2", "false"), ("after_commit:2", "true"),
     ("after_commit:3", "false"), ("stop_done", "true")],
)
def test_a_daemon_that_dies_while_it_stops_many_leaves_nothing_half_done(
    console, tmp_path, point, kill
):
    berth = console.berth
    hold = "while true; do sleep 0.05; done"
    console.write("command_gpu.txt", (block(1, hold) + block(2, hold)) * 301)
    console.post("/api/scheduler/single/start")
    console.wait_state(lambda s: s["running_tasks"] == 2)
    running = berth.jobs("running")
    # Of somebody else, in a queue that is paused meanwhile; and one that was paused before.
    name = running[0]["queue"]
    [other] = berth.submit([job("true", name="other", queue=name)])
    berth.api("POST", "/api/jobs/pause", {"queue": "default"})
    berth.restart({"BERTH_CRASH_AT": point})
    with contextlib.suppress(Gone):
        console.post("/api/scheduler/single/stop", kill=kill)
    # How many commits it takes is a matter of timing: then it dies a little later.
    with contextlib.suppress(subprocess.TimeoutExpired):
        berth.daemon.wait(2)
    berth.kill9()
    berth.start()

    def queues_paused():
        return {q["name"] for q in berth.status()["queues"] if q["paused"]}

    # Stopped or not, as before or as after, but never in between.
    eventually(lambda: queues_paused() == {"default"}, "the queues go on")
    eventually(lambda: not list((berth.dir / "stops").glob("*")), "nothing is left to be completed")
    counts = console.state()
    if counts["pending_tasks"] > 0:
        assert point in ("after_commit:1",), counts  # before anything was written down
        assert counts["pending_tasks"] == 600
        console.post("/api/scheduler/single/stop", kill=kill)
    ids = [j["id"] for j in running]
    if kill == "false":
        assert [berth.show(i)["job"]["state"] for i in ids] == ["running"] * 2
        berth.kill_jobs(ids, grace_ms=0)
    assert {j["state"] for j in berth.wait(ids).values()} == {"killed"}
    assert berth.wait_one(other)["state"] == "succeeded"
    assert berth.status()["counts"]["cancelled"] == 600


def test_batches_of_the_command_line_are_schedulers_too(console):
    console.write("command_gpu.txt", block(1, "exec sleep 600"))
    console.berth.cli("run", "--detach", console.command / "command_gpu.txt", check=0)
    state = console.wait_state(lambda s: s["running_tasks"] == 1)
    assert 0 < state["pid"] <= FIRST_NUMBER
    console.refused(409, "POST", "/api/scheduler/single/start")
    console.post(f"/api/scheduler/stop/{state['pid']}", kill="true")
    console.wait_state(lambda s: not s["running"])
    assert os.getpid()  # nobody has been signalled


def test_a_pid_that_two_batches_have_stops_neither(console, tmp_path):
    both = []
    for index in (0, 1):
        traits = {"dialect": "commands", "mode": "single", "pid": 4242, "config_index": index,
                  "config_file": str(tmp_path / f"command_gpu_{index}.txt")}
        [one] = console.berth.submit(job("sleep 600"), batch={"traits": traits})
        both.append((console.berth.show(one)["job"]["batch"], one))
    error = console.refused(409, "POST", "/api/scheduler/stop/4242", kill="true")["error"]
    for batch, one in both:
        assert f"batch {batch}" in error["message"] and str(FIRST_NUMBER + batch) in error["message"]
        assert console.berth.show(one)["job"]["state"] in ("queued", "running")
    (old, first), (_, second) = both
    assert console.post(f"/api/scheduler/stop/{FIRST_NUMBER + old}", kill="true")["batch"] == old
    console.berth.wait_one(first)
    console.post("/api/scheduler/stop/4242", kill="true")  # now it is one
    console.berth.wait_one(second)


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")
def test_the_lines_of_old_work_unchanged(console):
    console.write("command_gpu.txt", block(1, "true"))
    console.write("command_gpus_1.txt", block(1, "true", gpus=2))
    for line in (
        'curl -X POST "http://localhost:29214/api/scheduler/single/start?config_index=0"',
        'curl -X POST "http://localhost:29214/api/scheduler/multi/start?config_index=1"',
    ):
        words = line.replace("curl", f"curl -sS --unix-socket {console.berth.dir}/sock", 1)
        done = subprocess.run(words, shell=True, capture_output=True, text=True, timeout=PATIENCE)
        assert json.loads(done.stdout)["success"] is True, done
    console.wait_state(lambda s: s["state"] == "completed")
    console.wait_state(lambda s: s["state"] == "completed", "multi", 1)


def test_over_tcp_with_a_token(console):
    console.write("command_gpu.txt", block(1, "true"))
    port = tcp.listen(console.berth)["port"]
    looks = tcp.Client(port, token=tcp.make_token(console.berth, "read"))
    does = tcp.Client(port, token=tcp.make_token(console.berth))
    start = "/api/scheduler/single/start?config_index=0"
    assert tcp.Client(port).ask("POST", start).status == 401
    assert looks.ask("POST", start).status == 403
    assert does.ask("POST", start).json()["success"] is True
    console.wait_state(lambda s: s["state"] == "completed")
    assert looks.ask("GET", "/api/scheduler/single/state").json()["completed_tasks"] == 1
    looks.close()
    does.close()


# --- logs -------------------------------------------------------------------------------------------

PLACE = {"mode": "single", "config_index": 0, "queue_id": 1, "process_index": 0}


def test_bound_logs(console, tmp_path):
    log = tmp_path / "train.log"
    log.write_text("".join(f"line {i}\n" for i in range(1000)))
    assert console.get("/api/log/bindings") == {}
    console.refused(404, "GET", "/api/log/content", **PLACE)
    bound = console.post("/api/log/bind", **PLACE, log_path=log)
    assert bound["key"] == "single_0_1_0"
    [binding] = console.get("/api/log/bindings").values()
    assert binding.items() >= {**PLACE, "log_path": str(log)}.items()
    file = console.dir / "control" / "logs" / "log_bindings.json"
    assert json.loads(file.read_text()) == {"single_0_1_0": binding}
    shown = console.get("/api/log/content", **PLACE)
    assert shown["content"].startswith("line 900\n")
    assert shown["content"].endswith("line 999\n")
    assert (shown["total_lines"], shown["size"]) == (1000, log.stat().st_size)
    assert console.get("/api/log/content", **PLACE, tail_lines=1)["content"] == "line 999\n"
    assert console.get("/api/log/content", **PLACE, tail=2)["content"] == "line 998\nline 999\n"
    piece = console.get("/api/log/read", log_path=log, offset=5, limit=8)
    assert (piece["content"], piece["offset"], piece["next_offset"]) == ("0\nline 1", 5, 13)
    with log.open("a") as more:
        more.write("more\n")
    assert console.get("/api/log/read", log_path=log, offset=shown["size"])["content"] == "more\n"
    # In a body, and by somebody else's hand.
    console.call("POST", "/api/log/bind", {**PLACE, "queue_id": 2, "log_path": str(log)})
    assert len(console.get("/api/log/bindings")) == 2
    console.call("DELETE", "/api/log/bind", **PLACE)
    console.refused(404, "DELETE", "/api/log/bind", **PLACE)
    console.refused(404, "GET", "/api/log/content", **PLACE)
    entry = {**PLACE, "log_path": str(log), "bound_at": "2025-12-03T10:00:00"}
    file.write_text(json.dumps({"single_0_1_0": entry}))
    assert console.get("/api/log/content", **PLACE, tail=1)["content"] == "more\n"
    # With the file of commands the bindings go.
    console.post("/api/commands/single/new")
    console.post("/api/commands/single/new")
    console.post("/api/log/bind", **{**PLACE, "config_index": 1}, log_path=log)
    console.call("DELETE", "/api/commands/single/1")
    assert list(console.get("/api/log/bindings")) == ["single_0_1_0"]


def test_logs_of_jobs_are_read_and_nothing_else(console, tmp_path):
    job = console.berth.submit_one("echo printed")
    named = tmp_path / "named.log"
    other = console.berth.submit_one("echo named", log=str(named))
    console.berth.wait([job, other])
    own = console.berth.show(job)["job"]["log"]
    assert console.get("/api/log/read", log_path=own)["content"] == "printed\n"
    assert console.get("/api/log/read", log_path=named)["content"] == "named\n"
    assert console.get("/api/log/read", log_path=named, job=other)["content"] == "named\n"
    secret = tmp_path / "secret"
    secret.write_text("hush")
    for path in (secret, "/etc/passwd", tmp_path, f"{own}x", console.berth.dir / "berth.db",
                 console.berth.dir / "logs" / "99.1.log", tmp_path / "none"):
        console.refused(403, "GET", "/api/log/read", log_path=path)
    for path in ("", "named.log", f"{tmp_path}/x/../named.log", "/a\0b"):
        console.refused(400, "GET", "/api/log/read", log_path=path)
    console.refused(400, "GET", "/api/log/read", log_path=own, offset=1, tail=1)
    console.refused(400, "GET", "/api/log/read", log_path=own, limit=1048577)
    for query in ({}, {**PLACE, "mode": "x"}, {**PLACE, "queue_id": "a"}, {"mode": "single"}):
        console.refused(400, "GET", "/api/log/content", **query)
        console.refused(400, "POST", "/api/log/bind", **query, log_path=named)
    console.refused(404, "POST", "/api/log/bind", **PLACE, log_path=tmp_path / "none")
    console.refused(400, "POST", "/api/log/bind", **PLACE, log_path=tmp_path)
    console.refused(400, "POST", "/api/log/bind", **PLACE)
    # A pipe would make us wait.
    os.mkfifo(tmp_path / "pipe")
    console.refused(400, "POST", "/api/log/bind", **PLACE, log_path=tmp_path / "pipe")


def test_a_bound_log_is_looked_at_anew_every_time(console, tmp_path):
    log = tmp_path / "train.log"
    log.write_text("mine\n")
    console.post("/api/log/bind", **PLACE, log_path=log)
    # One's own link leads to what one wants.
    moved = tmp_path / "moved.log"
    log.rename(moved)
    console.refused(404, "GET", "/api/log/content", **PLACE)
    log.symlink_to(moved)
    assert console.get("/api/log/content", **PLACE)["content"] == "mine\n"
    if os.getuid() != 0:
        return  # giving files away takes root
    stranger = 65534
    os.lchown(log, stranger, stranger)
    refused = console.refused(403, "GET", "/api/log/content", **PLACE)
    assert "symbolic link" in refused["error"]["message"]
    log.unlink()
    log.write_text("theirs\n")
    os.chown(log, stranger, stranger)
    console.refused(403, "GET", "/api/log/content", **PLACE)


def test_no_link_of_a_stranger_leads_to_what_is_ours(console, tmp_path):
    """Others may write to the directory of the command files; they must not see through us."""
    if os.getuid() != 0:
        return  # giving files away takes root
    stranger = 65534
    secret = tmp_path / "secret"
    secret.write_text("hush\n")
    console.write("command_gpu.txt", block(1, "true"))
    link = console.dir / "command" / "command_gpu_5.txt"
    link.symlink_to(secret)
    assert "hush" in console.get("/api/commands/single", config_index=5, text="true")["text"]
    os.lchown(link, stranger, stranger)
    refused = console.refused(403, "GET", "/api/commands/single", config_index=5, text="true")
    assert "symbolic link" in refused["error"]["message"]
    link.unlink()
    link.write_text(block(1, "echo theirs"))
    os.chown(link, stranger, stranger)
    assert "theirs" in console.get("/api/commands/single", config_index=5, text="true")["text"]

    bindings = console.dir / "control" / "logs" / "log_bindings.json"
    console.post("/api/log/bind", **PLACE, log_path=secret)
    assert console.get("/api/log/content", **PLACE)["content"] == "hush\n"
    os.chown(bindings, stranger, stranger)
    for path, query in (("/api/log/content", PLACE), ("/api/log/read", {"log_path": secret})):
        refused = console.refused(403, "GET", path, **query)
        assert "log_bindings.json" in refused["error"]["message"]


def test_what_the_api_keeps_back_is_no_log(console):
    console.berth.api("POST", "/api/tokens", {"name": "kept", "scope": "read"})
    for path in (console.berth.dir / "berth.db", console.berth.dir / "access.json", "/proc/self/environ",
                 "/sys/kernel/notes"):
        console.refused(403, "POST", "/api/log/bind", **PLACE, log_path=path)


def test_a_broken_file_of_bindings_is_named_and_kept(console, tmp_path):
    file = console.dir / "control" / "logs" / "log_bindings.json"
    file.parent.mkdir(parents=True)
    file.write_text("{broken")
    log = tmp_path / "train.log"
    log.write_text("")
    assert "log_bindings.json" in console.refused(
        409, "POST", "/api/log/bind", **PLACE, log_path=log)["error"]["message"]
    assert file.read_text() == "{broken"
    # Of the logs of jobs it says nothing.
    console.berth.wait_one(console.berth.submit_one("echo named", log=str(log)))
    assert console.get("/api/log/read", log_path=log)["content"] == "named\n"
    assert "log_bindings.json" in console.refused(
        409, "GET", "/api/log/read", log_path=tmp_path / "none")["error"]["message"]


# --- settings ---------------------------------------------------------------------------------------


def test_control_setting(console):
    file = console.dir / "config" / "control_setting.yaml"
    file.parent.mkdir()
    file.write_text('port: 29214 # theirs\nsecret: "hush"\n')
    answer = console.get("/api/settings")
    assert "hush" not in json.dumps(answer)
    assert answer["settings"]["port"]["value"] == "29214"
    assert answer["settings"]["secret"] | {"description": ""} == {
        "value": None, "set": True, "used": False, "requires_restart": False, "description": ""}
    saved = console.call("PUT", "/api/settings", {"port": 8080, "target-yaml-path": "mine.yaml"})
    assert len(saved["warnings"]) == 2
    assert any("mine.yaml" in w and "no file" in w for w in saved["warnings"])
    assert file.read_text() == '''port: 8080 # theirs
secret: "hush"
target-yaml-path: mine.yaml
'''
    # That configuration is what command files are started with.
    console.write("command_gpu.txt", block(1, "true"))
    missing = console.refused(422, "POST", "/api/scheduler/single/start")
    assert "mine.yaml" in missing["error"]["message"]
    assert f"{file}: target-yaml-path" in missing["error"]["message"]
    assert [(p["file"], p["line"]) for p in missing["problems"]] == [(str(file), None)]
    (file.parent / "mine.yaml").write_text("max_gpu: 1\n")
    batch = console.post("/api/scheduler/single/start")["batch"]
    rules = console.get("/api/rules", batch=batch)["rules"] if console.state()["running"] else []
    assert [r["value"] for r in rules if r["key"] == "max_gpu"] in (["1"], [])
    for body in ({"port": 0}, {"secret": "x"}, {"what": 1}, [], {"port": None}):
        with pytest.raises(ApiError) as error:
            console.call("PUT", "/api/settings", body)
        assert error.value.status in (400, 403)


def test_what_is_told_of_the_settings_can_be_sent_back(console):
    shown = console.get("/api/settings")["settings"]["target-yaml-path"]
    assert not shown["set"]
    saved = console.call("PUT", "/api/settings", {"target-yaml-path": shown["value"]})
    assert saved["warnings"] == []
    console.write("command_gpu.txt", block(1, "true"))
    console.post("/api/scheduler/single/start")
    console.wait_state(lambda s: not s["running"])
    assert console.state()["completed_tasks"] == 1


def test_the_directory_is_a_setting(console, tmp_path):
    other = tmp_path / "other"
    (console.berth.dir / "berth.yaml").write_text(f"command_dir: {other}\n")
    path = lambda: console.get("/api/commands/single/list")["configs"][0]["file_path"]  # noqa: E731
    eventually(lambda: path() == str(other / "command_gpu.txt"), "the new directory counts")
    (console.berth.dir / "berth.yaml").write_text("command_dir: relative\n")
    eventually(lambda: any("command_dir" in p for p in console.berth.status()["problems"]),
               "a path that is none is told of")
    assert path() == str(other / "command_gpu.txt")
    (console.berth.dir / "berth.yaml").write_text("# nothing\n")
    usual = console.berth.dir / "berth" / "command" / "command_gpu.txt"  # the home of these tests
    eventually(lambda: path() == str(usual), "the usual directory counts")


def test_a_start_survives_the_daemon(console, tmp_path):
    go = tmp_path / "go"
    console.write("command_gpu.txt", block(1, f"until test -e {go}; do sleep 0.05; done") * 2)
    started = console.post("/api/scheduler/single/start")
    console.wait_state(lambda s: s["running_tasks"] == 1)
    console.berth.restart()
    assert console.state()["pid"] == started["pid"]
    console.refused(409, "POST", "/api/scheduler/single/start")
    go.touch()
    assert console.wait_state(lambda s: not s["running"])["state"] == "completed"
