"""uni_id.json, state/{pid}.json and the log of a batch that was written for another scheduler."""

import contextlib
import json
import re

import pytest
from berthlib import PATIENCE, Gone, eventually, job

PYTHON = "/usr/bin/python3"

# What a pipeline of the seeds does: it tells of itself in uni_id.json, in place.
WRITE = """
import json, os, sys
path, uni_id = sys.argv[1:3]
entry = json.loads(sys.argv[3])
try:
    with open(path) as file:
        known = json.load(file)
except FileNotFoundError:
    known = {}
known.setdefault(uni_id, {}).update(entry)
with open(path + ".mine", "w") as file:
    json.dump(known, file)
os.rename(path + ".mine", path)
"""


class Batch:
    """A directory as the schedulers of old had it, and what is to be found there."""

    def __init__(self, berth, path, pid=4242):
        self.berth = berth
        self.dir = path / "logs"
        self.pid = pid
        # As whoever submits leaves it.
        self.dir.mkdir()
        (self.dir / "uni_id.json").write_text("{}\n")
        self.writer = path / "write.py"
        self.writer.write_text(WRITE)
        self.traits = {
            "dialect": "commands",
            "state_dir": str(self.dir),
            "log": "compete_gpu.log",
            "mode": "single",
            "config_file": "/w/command_gpu.txt",
            "config_index": 1,
            "pid": pid,
        }

    def submit(self, jobs, **fields):
        batch = {"name": "command_gpu", "traits": self.traits}
        return self.berth.submit(jobs, batch=batch, **fields)

    def write(self, entry):
        """The words of a command that writes this of itself."""
        text = json.dumps(entry)
        return f"{PYTHON} {self.writer} {self.dir}/uni_id.json {{uni_id}} '{text}'"

    def entries(self):
        return json.loads((self.dir / "uni_id.json").read_text())

    def state(self):
        return json.loads((self.dir / f"state/{self.pid}.json").read_text())

    def log(self):
        return (self.dir / "compete_gpu.log").read_text()

    def settle(self, state):
        """Waits until the files tell of the end."""
        return eventually(
            lambda: (
                (self.dir / f"state/{self.pid}.json").exists()
                and self.state()["state"] == state
                and "running" not in [e["state"] for e in self.entries().values()]
                and self.state()
            ),
            f"{self.dir} says {state}",
        )


@pytest.fixture
def batch(berth, tmp_path):
    return Batch(berth, tmp_path)


def test_a_batch_is_told_of_in_the_documented_shape(gpu_berth, tmp_path):
    batch = Batch(gpu_berth, tmp_path)
    go = tmp_path / "go"
    hold = f"until [ -e {go} ]; do sleep 0.05; done"
    ids = batch.submit(
        [
            job(hold, gpus=1, gpu_memory=8 * 2**30, queue="command_gpu/1"),
            job("true", gpus=1, queue="command_gpu/1"),
            job("exit 3", queue="command_gpu/2", retries=1),
        ],
        queues=[{"name": f"command_gpu/{i}", "limit": 1} for i in (1, 2)],
    )
    gpu_berth.wait_state(ids[2], "failed")
    state = eventually(
        lambda: (batch.dir / "state/4242.json").exists()
        and batch.state()["running_tasks"] == 1
        and batch.state()["failed_tasks"] == 1
        and batch.state(),
        "the state file tells of the running job",
    )
    entry = eventually(
        lambda: [e for e in batch.entries().values() if e["state"] == "running" and e["pid"]],
        "uni_id.json has the pid of the running job",
    )[0]
    assert entry == {"pid": entry["pid"], "state": "running", "retry_count": 0, "error_type": None}
    assert gpu_berth.wait_started(ids[0])[1] == entry["pid"]

    assert state["pid"] == 4242 and state["mode"] == "single"
    assert state["config_index"] == 1 and state["config_file"] == "/w/command_gpu.txt"
    assert state["state"] == "running"
    assert (state["pending_tasks"], state["completed_tasks"], state["total_tasks"]) == (1, 0, 3)
    [gpu] = state["gpus_used"]
    assert state["gpu_assignments"] == {str(gpu): "1"}
    queue = state["queues"]["1"]
    assert queue["current_task"] == hold and queue["current_gpu"] == [gpu]
    process = queue["processes"][0]
    assert process["commands"] == [hold]
    assert process["memory_gb"] == 8 and process["gpu_count"] == 1
    assert process["status"] == "running" and process["gpus"] == [gpu]
    assert process["started_at"] and process["finished_at"] is None
    failed = state["queues"]["2"]
    assert "exited with code 3" in failed["last_error"]
    assert failed["processes"][0]["retry_count"] == 1
    go.touch()
    gpu_berth.wait(ids)
    ended = batch.settle("failed")
    assert (ended["completed_tasks"], ended["failed_tasks"], ended["gpus_used"]) == (2, 1, [])
    states = sorted(e["state"] for e in batch.entries().values())
    assert states == ["abnormal_exit"] * 2 + ["normal_exit"] * 2
    log = eventually(
        lambda: "completed 2, failed 1" in batch.log() and batch.log(), "the log tells of the end"
    )
    assert f"queue 1: job {ids[0]} started on GPU {gpu}: {hold}" in log
    assert f"queue 2: job {ids[2]} retried" in log
    assert f"queue 2: job {ids[2]} failed: exited with code 3" in log
    assert "busy queues: 1; idle queues: 2" in log
    stamp = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - (INFO|WARNING|ERROR) - \S"
    assert all(re.match(stamp, line) for line in log.splitlines())
    assert not list(batch.dir.rglob("*.tmp"))


def test_what_a_job_reports_is_told_there_too(batch):
    report = '"$BERTH_BIN_DIR/berth" report --state abnormal_exit '
    ids = batch.submit([job(report + "--error-type runtime_error"), job(report)])
    batch.berth.wait(ids)
    batch.settle("failed")
    assert sorted(e["error_type"] for e in batch.entries().values()) == ["exit", "runtime_error"]


def test_what_a_script_says_of_itself_decides(batch):
    ids = batch.submit(
        [
            job(batch.write({"pid": 1, "state": "abnormal_exit", "error_type": "oom"})),
            job(batch.write({"pid": 1, "state": "abnormal_exit", "error_type": "nan"})),
            job(batch.write({"pid": 1, "state": "normal_exit"})),
            job(batch.write({"pid": 1, "state": "normal_exit"}) + "; exit 3"),
        ],
        # One after the other: scripts that use no lock would lose each other's words.
        queues=[{"name": "default", "limit": 1}],
    )
    ended = batch.berth.wait(ids)
    told = [(ended[i]["state"], ended[i]["failure_class"]) for i in ids]
    assert told == [
        ("failed", "gpu_oom"),
        ("failed", "exit"),
        ("succeeded", None),
        ("failed", "exit"),
    ]
    assert "abnormal_exit: nan" in ended[ids[1]]["message"]
    batch.settle("failed")
    known = batch.entries().values()
    assert sorted(e["error_type"] or "" for e in known) == ["", "exit", "nan", "oom"]
    assert {e["pid"] for e in known} == {1}


@pytest.mark.parametrize("end,state", [("normal_exit", "succeeded"), ("abnormal_exit", "failed")])
def test_a_pipeline_that_goes_into_the_background_lasts(batch, tmp_path, end, state):
    go = tmp_path / "go"
    began = tmp_path / "began"
    pipeline = tmp_path / "pipeline.sh"
    pipeline.write_text(
        "#!/bin/bash\n"
        "(\n"
        f"  {PYTHON} {batch.writer} {batch.dir}/uni_id.json $1 "
        '"{\\"pid\\": $BASHPID, \\"state\\": \\"running\\"}"\n'
        f"  touch {began}\n"
        f"  until [ -e {go} ]; do sleep 0.05; done\n"
        f"  {PYTHON} {batch.writer} {batch.dir}/uni_id.json $1 "
        f"'{json.dumps({'state': end, 'error_type': 'oom' if end != 'normal_exit' else None})}'\n"
        ") > /dev/null 2>&1 < /dev/null &\n"
        "disown\n"
        "exit 0\n"
    )
    [job_id] = batch.submit([job(f"bash {pipeline} {{uni_id}}", linger=True)])
    eventually(began.exists, "the pipeline has begun in the background")
    assert batch.berth.show(job_id)["job"]["state"] == "running"
    [entry] = batch.entries().values()
    assert entry["state"] == "running" and entry["pid"]
    go.touch()
    ended = batch.berth.wait_one(job_id)
    assert ended["state"] == state
    assert ended["failure_class"] == (None if state == "succeeded" else "gpu_oom")
    batch.settle("completed" if state == "succeeded" else "failed")
    [after] = batch.entries().values()
    assert after["pid"] == entry["pid"] and after["state"] == end


def test_broken_json_is_kept_aside_and_harms_nobody(batch):
    ids = batch.submit(
        [job(f"echo '{{\"mine\": ' > {batch.dir}/uni_id.json; true")]
    )
    assert batch.berth.wait_one(ids[0])["state"] == "succeeded"
    eventually(
        lambda: list(batch.dir.glob("uni_id.json.broken-*")) and batch.entries(),
        "the broken file is kept aside, and ours is there",
    )
    [aside] = batch.dir.glob("uni_id.json.broken-*")
    assert aside.read_text() == '{"mine": \n'
    batch.settle("completed")
    assert "uni_id.json.broken-" in batch.berth.log_text()


def test_a_directory_that_cannot_be_written_harms_nobody(berth, tmp_path):
    (tmp_path / "in the way").write_text("")
    batch = Batch(berth, tmp_path)
    batch.traits["state_dir"] = str(tmp_path / "in the way")
    for _ in range(3):
        [job_id] = batch.submit([job("true")])
        assert berth.wait_one(job_id)["state"] == "succeeded"
    eventually(lambda: "state_files_failed" in berth.log_text(), "the daemon says so")
    [job_id] = batch.submit([job("exit 1")])
    assert berth.wait_one(job_id)["state"] == "failed"
    assert berth.stop() == 0
    assert berth.log_text().count("event=state_files_failed") == 1


def test_they_go_on_after_the_daemon_was_killed(batch, tmp_path):
    go = tmp_path / "go"
    hold = f"until [ -e {go} ]; do sleep 0.05; done"
    ids = batch.submit([job(hold, queue="q/1"), job("true", queue="q/2"), job("true", queue="q/3")])
    batch.berth.wait(ids[1:])
    eventually(
        lambda: (batch.dir / "state/4242.json").exists() and batch.state()["completed_tasks"] == 2,
        "two are told of",
    )
    batch.berth.restart()
    go.touch()
    batch.berth.wait(ids)
    batch.settle("completed")
    log = eventually(
        lambda: "completed 3, failed 0" in batch.log() and batch.log(), "the log tells of the end"
    )
    for job_id in ids:
        assert len(re.findall(rf"job {job_id} started", log)) == 1, log
        assert len(re.findall(rf"job {job_id} ended normally", log)) == 1, log
    assert len(batch.entries()) == 3


def test_killed_just_after_a_line_the_daemon_does_not_repeat_it(batch):
    batch.berth.restart({"BERTH_CRASH_AT": "state_log_written"})
    with contextlib.suppress(Gone):
        batch.submit([job("true", queue="q/1"), job("true", queue="q/2")])
    batch.berth.daemon.wait(PATIENCE)
    assert batch.log()
    batch.berth.start()
    batch.berth.wait_all()
    batch.settle("completed")
    log = eventually(
        lambda: "completed 2, failed 0" in batch.log() and batch.log(), "the log tells of the end"
    )
    events = [line for line in log.splitlines() if "status:" not in line]
    assert len(events) == len(set(events)), log
    assert len([line for line in events if "started" in line]) == 2, log


def test_a_batch_without_such_a_directory_writes_nothing(berth, tmp_path):
    ids = berth.submit([job("true", cwd=str(tmp_path)), job("true", cwd=str(tmp_path))])
    berth.wait(ids)
    assert berth.stop() == 0
    assert not list(tmp_path.rglob("uni_id.json*"))
