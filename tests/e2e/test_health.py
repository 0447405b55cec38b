"""Cards that fail, and jobs that are where they should not be."""

import json
import time

import pytest

from berthlib import eventually


def card(berth, index):
    return berth.api("GET", "/api/gpus")["gpus"][index]


def history(berth, kind):
    return [e for e in berth.api("GET", "/api/events?limit=500")["events"] if e["kind"] == kind]


def train(berth, *words, memory="4GiB", seconds="600s"):
    done = berth.cli("add", *words, "--", berth.bin_dir / "berth-simgpu", "train", "--memory", memory, "--time",
                     seconds, check=0)
    return int(done.stdout)


def test_a_card_lost_in_mid_job_costs_one_attempt_and_the_job_goes_elsewhere(gpu_berth):
    berth = gpu_berth
    job = train(berth)
    berth.wait_started(job)
    [index] = berth.show(job)["job"]["gpu_indices"]
    berth.simgpu("set", index, "lost", "yes")
    eventually(
        lambda: berth.show(job)["job"]["gpu_indices"] == [1 - index]
        and berth.show(job)["job"]["state"] == "running",
        "the job runs on the other card",
    )
    first = berth.show(job)["attempts"][0]
    assert first["failure_class"] == "gpu_lost", first
    assert "lost" in card(berth, index)["trouble"]
    berth.simgpu("set", index, "lost", "no")
    eventually(lambda: card(berth, index)["state"] == "drained", "the card stays out of use")
    assert any(f"GPU {index}" in e["detail"] for e in history(berth, "drained"))
    berth.cli("resume", "--gpu", str(index), check=0)
    eventually(lambda: card(berth, index)["state"] == "free", "somebody has given it back")


@pytest.mark.parametrize("setting", [("xid", "79"), ("ecc", "2")])
def test_hardware_errors_take_a_card_out_of_use_at_once(gpu_berth, setting):
    berth = gpu_berth
    job = train(berth)  # while something runs the cards are looked at
    berth.wait_started(job)
    [index] = berth.show(job)["job"]["gpu_indices"]
    other = 1 - index
    berth.simgpu("set", other, *setting)
    eventually(lambda: card(berth, other)["state"] == "drained", "the card is taken out of use")
    waiting = train(berth)
    eventually(lambda: "out of use" in berth.why(waiting), "the reason says so")
    health = berth.api("GET", "/health")
    assert health["status"] == "degraded" and [r["what"] for r in health["reasons"]] == ["gpu"]
    assert f"GPU {other} is out of use" in health["reasons"][0]["message"]
    berth.cli("resume", "--gpu", str(other), check=0)
    assert berth.api("GET", "/health")["status"] == "ok"
    berth.wait_started(waiting)


def test_an_application_error_does_not_blame_the_card(gpu_berth):
    berth = gpu_berth
    job = train(berth)
    berth.wait_started(job)
    [index] = berth.show(job)["job"]["gpu_indices"]
    berth.simgpu("set", index, "xid", "31")
    berth.simgpu("set", 1 - index, "xid", "79")
    eventually(lambda: card(berth, 1 - index)["state"] == "drained", "the other is drained")
    assert card(berth, index)["state"] == "claimed"


def test_an_application_error_fails_the_job_and_nothing_else(gpu_berth, tmp_path):
    berth = gpu_berth
    gate = tmp_path / "gate"
    script = f"{berth.bin_dir}/berth-simgpu train --time 600s & while [ ! -e {gate} ]; do sleep 0.05; done; exit 1"
    job = int(berth.cli("add", "--", "bash", "-c", script, check=0).stdout)
    berth.wait_started(job)
    [index] = berth.show(job)["job"]["gpu_indices"]
    eventually(lambda: card(berth, index)["processes"], "it is seen at work")
    berth.simgpu("set", index, "xid", "13")
    # Seen with the same look or a later one.
    berth.simgpu("set", 1 - index, "xid", "79")
    eventually(lambda: card(berth, 1 - index)["state"] == "drained", "the driver has been heard")
    gate.touch()
    ended = berth.wait_one(job)
    assert ended["state"] == "failed" and ended["failure_class"] == "exit", ended
    assert "XID 13" in ended["message"], ended
    assert len(berth.show(job)["attempts"]) == 1, "a bug is not tried again"
    eventually(lambda: card(berth, index)["state"] == "free", "its card stays in use")


def test_errors_that_somebody_has_seen_are_no_news_to_the_next_daemon(gpu_berth):
    berth = gpu_berth
    first = train(berth, "--rule", "gpus=0")
    berth.wait_started(first)
    berth.simgpu("set", 1, "ecc", "2")
    eventually(lambda: card(berth, 1)["state"] == "drained", "the card is taken out of use")
    berth.cli("resume", "--gpu", "1", check=0)
    berth.restart()
    second = train(berth, "--rule", "gpus=1")
    berth.wait_started(second)
    assert len(history(berth, "drained")) == 1
    berth.simgpu("set", 1, "ecc", "3")
    eventually(lambda: card(berth, 1)["state"] == "drained", "one more is")


def test_an_attempt_on_a_card_it_was_not_given_is_told_of_once(gpu_berth):
    berth = gpu_berth
    uuids = [gpu["uuid"] for gpu in berth.api("GET", "/api/gpus")["gpus"]]
    script = (
        f"[ $CUDA_VISIBLE_DEVICES = {uuids[0]} ] && other={uuids[1]} || other={uuids[0]}; "
        f"CUDA_VISIBLE_DEVICES=$other exec {berth.bin_dir}/berth-simgpu train --memory 1GiB --time 600s"
    )
    job = int(berth.cli("add", "--", "bash", "-c", script, check=0).stdout)
    berth.wait_started(job)
    eventually(lambda: history(berth, "stray"), "it is told of")
    [stray] = history(berth, "stray")
    assert stray["job"] == job and "not given" in stray["detail"]
    [given] = berth.show(job)["job"]["gpu_indices"]
    assert card(berth, 1 - given)["state"] == "foreign", "a card at work is not free"
    assert "GPUs: 0 of 2 free" in berth.cli("status", check=0).stdout
    assert f"job {job} (strays)" in berth.cli("gpus", check=0).stdout
    assert f"seen on GPU {1 - given}, which it was not given" in berth.cli("show", job, check=0).stdout


def test_giving_a_card_back_says_what_is_true(gpu_berth):
    berth = gpu_berth
    assert berth.cli("resume", "--gpu", "0", check=0).stdout == "GPU 0 was not out of use\n"
    berth.cli("pause", "--gpu", "0", check=0)
    assert berth.cli("resume", "--gpu", "0", check=0).stdout == "GPU 0 is in use again\n"
    berth.simgpu("set", 0, "lost", "yes")
    eventually(lambda: card(berth, 0)["state"] == "trouble", "the card is lost")
    said = berth.cli("resume", "--gpu", "0", check=0).stdout
    assert said.startswith("nothing starts on GPU 0 yet: ") and "lost" in said


def test_the_status_of_an_idle_machine_is_of_now(gpu_berth):
    berth = gpu_berth
    assert "GPUs: 2 of 2 free" in berth.cli("status", check=0).stdout
    time.sleep(3)
    probe = json.loads(berth.cli("status", "--json", check=0).stdout)["probe"]
    assert probe["age_ms"] < 2500, probe


def test_a_card_can_be_taken_out_of_use_and_given_back_by_hand(gpu_berth):
    berth = gpu_berth
    assert "no GPU '9'" in berth.cli("pause", "--gpu", "0,9", check=1).stderr
    both = berth.cli("pause", "--gpu", "0", "--gpu", "1", check=0).stdout.splitlines()
    assert [line.split(";")[0] for line in both] == [f"nothing more starts on GPU {n}" for n in "01"]
    assert berth.cli("resume", "--gpu", "0-1", check=0).stdout == (
        "GPU 0 is in use again\nGPU 1 is in use again\n")
    berth.cli("pause", "--gpu", "0", "--why", "a new cooler", check=0)
    assert card(berth, 0)["state"] == "drained" and "a new cooler" in card(berth, 0)["trouble"]
    both = int(berth.cli("add", "--gpus", "2", "--", "true", check=0).stdout)
    eventually(lambda: "a new cooler" in berth.why(both), "the reason names it")
    berth.kill9()
    berth.start()
    eventually(lambda: "a new cooler" in berth.why(both), "a restart does not forget it")
    berth.cli("resume", "--gpu", "0", check=0)
    assert berth.wait_one(both)["state"] == "succeeded"
