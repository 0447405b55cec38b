"""`berth retry`: ended jobs run again under their ids. And `POST /api/done`: what was done before."""

import json

from berthlib import job


def until_there(tmp_path, name="go"):
    """A job that fails until a file is there."""
    return job(f"echo attempt $BERTH_ATTEMPT; test -e {tmp_path / name}", name="picky")


def one(berth, spec):
    [job_id] = berth.submit(spec)
    return job_id


def kinds(berth, job_id):
    return [e["kind"] for e in berth.api("GET", f"/api/events?job={job_id}")["events"]]


def test_a_failed_job_runs_again_under_its_id(berth, tmp_path):
    job_id = one(berth, until_there(tmp_path))
    assert berth.wait_one(job_id)["state"] == "failed"
    (tmp_path / "go").touch()
    answer = json.loads(berth.cli("retry", str(job_id), "--json", check=0).stdout)
    assert answer["revived"] == [job_id]
    ended = berth.wait_one(job_id)
    assert ended["state"] == "succeeded"
    assert ended["exit_code"] == 0 and ended["failure_class"] is None
    detail = berth.show(job_id)
    assert [a["number"] for a in detail["attempts"]] == [1, 2], "what was is still known"
    assert [a["state"] for a in detail["attempts"]] == ["failed", "succeeded"]
    assert detail["attempts"][0]["log"] != detail["attempts"][1]["log"]
    assert "revived" in kinds(berth, job_id)


def test_all_that_failed_and_only_of_one_batch(berth, tmp_path):
    first = berth.submit([until_there(tmp_path), job("true")], batch={"name": "one"})
    other = berth.submit([until_there(tmp_path), until_there(tmp_path)], batch={"name": "two"})
    batch = berth.show(other[0])["job"]["batch"]
    berth.wait_all()
    (tmp_path / "go").touch()
    out = berth.cli("retry", "--failed", "--batch", str(batch), check=0).stdout
    assert out == f"wait again: {other[0]}-{other[1]}\n"
    berth.wait_all()
    states = {j["id"]: j["state"] for j in berth.jobs()}
    assert states[first[0]] == "failed"
    assert [states[i] for i in other] == ["succeeded", "succeeded"]
    berth.cli("retry", "--failed", check=0)
    berth.wait_all()
    assert {j["state"] for j in berth.jobs()} == {"succeeded"}
    assert berth.cli("retry", "--failed", check=0).stdout == "no job has failed\n"


def test_what_cannot_run_again_is_told(berth):
    done = one(berth, job("true"))
    berth.wait_one(done)
    waiting = one(berth, job("sleep 600"))
    berth.wait_started(waiting)
    answer = berth.cli("retry", f"{done},{waiting}")
    assert answer.returncode == 1
    assert f"job {done}: has succeeded" in answer.stderr
    assert f"job {waiting}: has not ended" in answer.stderr
    missing = berth.cli("retry", "999")
    assert missing.returncode != 0 and "999" in missing.stderr
    berth.cli("retry", str(done), "--succeeded", check=0)
    assert berth.wait_one(done)["attempts"] == 2
    assert berth.cli("retry").returncode == 2
    berth.kill_jobs([waiting])
    berth.wait_all()


def test_a_revived_job_survives_the_daemon(berth, tmp_path):
    job_id = one(berth, until_there(tmp_path))
    follower = one(berth, job("true", after=[job_id]))
    berth.wait_all()
    assert berth.show(follower)["job"]["state"] == "cancelled"
    berth.cli("pause", "--instance", check=0)
    refused = berth.cli("retry", str(follower))
    assert f"follows job {job_id}, which failed" in refused.stderr
    berth.cli("retry", f"{job_id},{follower}", check=0)
    berth.kill9()
    berth.start()
    states = {j["id"]: j["state"] for j in berth.jobs()}
    assert states == {job_id: "queued", follower: "queued"}
    (tmp_path / "go").touch()
    berth.cli("resume", "--instance", check=0)
    berth.wait_all()
    assert {j["state"] for j in berth.jobs()} == {"succeeded"}
    assert berth.show(job_id)["job"]["attempts"] == 2


def test_what_was_asked_for_comes_back(berth, tmp_path):
    traits = {"dialect": "fedwhat", "state_dir": str(tmp_path), "pid": 7}
    log = str(tmp_path / "{job_id}.txt")
    [job_id] = berth.submit(
        [job("true", params={"lr": "0.1"}, work_dir=str(tmp_path), log=log, fingerprint="00000000000000ff")],
        batch={"name": "sweep", "traits": traits},
    )
    berth.wait_one(job_id)
    berth.restart()
    detail = berth.show(job_id)
    assert detail["job"]["params"] == {"lr": "0.1"}
    assert detail["work_dir"] == str(tmp_path)
    assert detail["log"] == log and detail["job"]["log"] == str(tmp_path / f"{job_id}.txt")
    assert detail["fingerprint"] == "00000000000000ff"
    assert detail["batch_traits"] == traits
    assert json.loads(berth.cli("ls", "--all", "--json", check=0).stdout)[0]["params"] == {"lr": "0.1"}
    assert "lr=0.1" in berth.cli("show", str(job_id), check=0).stdout


def test_what_was_done_before_is_known(berth, tmp_path):
    same = {"name": "lr-0.1", "fingerprint": "fedcba9876543210"}

    def ask(**changed):
        return berth.api("POST", "/api/done", {"jobs": [{**same, **changed}]})["jobs"][0]

    nothing = {"succeeded": None, "log": None, "alive": None}
    assert ask() == nothing
    failed = one(berth, job("false", **same))
    berth.wait_one(failed)
    assert ask() == nothing
    log = tmp_path / "own.log"
    first = one(berth, job("true", log=str(log), **same))
    berth.wait_one(first)
    assert ask() == {"succeeded": first, "log": str(log), "alive": None}
    second = one(berth, job("true", **same))
    berth.wait_one(second)
    assert ask()["succeeded"] == second
    assert ask()["log"] == berth.show(second)["attempts"][-1]["log"]
    worse = one(berth, job("false", log=str(log), **same))
    berth.wait_one(worse)
    assert ask() == nothing, "what ran last has failed"
    berth.api("POST", "/api/jobs/remove", {"ids": f"{worse}"})
    assert ask()["succeeded"] == second
    third = one(berth, job("sleep 600", **same))
    assert ask()["alive"] == third
    assert ask(name="another") == nothing
    assert ask(fingerprint="fedcba9876543211") == nothing
    berth.kill_jobs([third])
    berth.wait_all()
    berth.api("POST", "/api/jobs/remove", {"ids": f"{first}-{second}"})
    assert ask() == nothing
