"""Placing, sharing and giving way, with real processes on simulated cards."""

import subprocess

import pytest

from berthlib import BIN, alive, eventually, process_stat


def add(berth, *words):
    return int(berth.cli("add", *words, check=0).stdout)


def train(berth, *words, memory="4GiB", seconds="600s", extra=()):
    return add(berth, *words, "--", berth.bin_dir / "berth-simgpu", "train", "--memory", memory, "--time",
               seconds, *extra)


def state(berth, job):
    return berth.show(job)["job"]["state"]


def indices(berth, job):
    return berth.show(job)["job"]["gpu_indices"]


def running(berth):
    return {job["id"] for job in berth.jobs("running")}


class Hold:
    """A process of somebody who does not use berth."""

    def __init__(self, berth, gpu, *, memory="2GiB", util=90):
        self.process = subprocess.Popen(
            [BIN / "berth-simgpu", "hold", str(gpu), "--memory", memory, "--util", str(util)],
            env={"PATH": "/usr/bin:/bin", "BERTH_SIM_DIR": str(berth.dir / "simgpu")},
            stdout=subprocess.DEVNULL,
        )
        self.berth = berth
        self.gpu = gpu

    def __enter__(self):
        eventually(self.is_seen, "the stranger is seen")
        return self

    def is_seen(self):
        processes = self.berth.api("GET", "/api/gpus")["gpus"][self.gpu]["processes"] or []
        return any(process["pid"] == self.process.pid for process in processes)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def one_card(make_instance):
    instance = make_instance(gpus="sim:1x24GiB")
    instance.start()
    instance.cli("set", "--save", "foreign.young=0", "quiet_time=1s", check=0)
    return instance


def test_jobs_are_packed_by_the_memory_they_declare(gpu_berth):
    berth = gpu_berth
    jobs = [train(berth, "--gpu-memory", "8GiB", memory="7GiB") for _ in range(7)]
    eventually(lambda: len(running(berth)) == 6, "three on each of two cards")
    assert running(berth) == set(jobs[:6])
    assert "8 GiB needed" in berth.why(jobs[6]), berth.why(jobs[6])
    berth.kill_jobs([jobs[0]])
    berth.wait_started(jobs[6])


def test_a_job_that_has_not_taken_its_memory_yet_keeps_it(one_card):
    berth = one_card
    jobs = [
        train(berth, "--gpu-memory", "10GiB", memory="9GiB", extra=("--ramp", "300s"))
        for _ in range(3)
    ]
    berth.wait_started(jobs[1])
    eventually(
        lambda: (berth.api("GET", "/api/gpus")["gpus"][0]["memory_used"] or 0) > 0,
        "they have begun to allocate",
    )
    assert running(berth) == set(jobs[:2])
    assert "10 GiB needed" in berth.why(jobs[2])


def test_what_a_job_does_not_use_is_released_if_the_rule_says_so(one_card):
    berth = one_card
    berth.cli("set", "shrink_claims=1s", check=0)
    first = train(berth, "--gpu-memory", "20GiB", memory="4GiB")
    berth.wait_started(first)
    second = train(berth, "--gpu-memory", "12GiB", memory="10GiB")
    berth.wait_started(second)
    assert state(berth, first) == "running"


def test_a_small_idle_stranger_is_passed_over_and_one_that_trains_is_not(one_card):
    berth = one_card
    with Hold(berth, 0, memory="600MiB", util=0):
        assert berth.wait_one(train(berth, seconds="0.2s"))["state"] == "succeeded"
    with Hold(berth, 0, memory="600MiB", util=80):
        waiting = train(berth, seconds="0.2s")
        eventually(lambda: "80 % busy" in berth.why(waiting), "it waits for who trains")
    assert berth.wait_one(waiting)["state"] == "succeeded"


def test_an_opportunistic_job_gives_way_and_comes_back(one_card):
    berth = one_card
    job = train(berth, "--rule", "opportunistic=requeue", "--rule", "foreign.own=wait", "--gpu-memory", "4GiB", "--signal", "USR1@1h",
                extra=("--on-signal", "USR1:checkpoint-exit"))
    berth.wait_started(job)
    with Hold(berth, 0):
        eventually(lambda: state(berth, job) == "queued", "it has given way")
        [first] = berth.show(job)["attempts"]
        assert first["failure_class"] == "preempted", first
        assert "checkpoint" in berth.cli("log", str(job), check=0).stdout
        assert "GPU 0" in berth.why(job)
    eventually(lambda: state(berth, job) == "running", "it runs again when the stranger has left")
    assert len(berth.show(job)["attempts"]) == 2


def test_a_card_that_was_given_up_is_left_alone_for_a_while(one_card):
    berth = one_card
    berth.cli("set", "quiet_time=1h", check=0)
    job = train(berth, "--rule", "opportunistic=requeue", "--rule", "foreign.own=wait", "--gpu-memory", "4GiB", "--grace", "1s")
    berth.wait_started(job)
    with Hold(berth, 0):
        eventually(lambda: state(berth, job) == "queued", "it has given way")
    eventually(lambda: "others have left it only just now (quiet_time=1h)" in berth.why(job), "it waits on")
    # Those that do not give way need not wait.
    assert berth.wait_one(train(berth, "--gpu-memory", "4GiB", seconds="0.2s"))["state"] == "succeeded"
    assert state(berth, job) == "queued"
    berth.cli("set", "quiet_time=1s", check=0)
    eventually(lambda: state(berth, job) == "running", "until the card has been quiet for long enough")


def test_an_opportunistic_job_may_stand_still_instead(one_card):
    berth = one_card
    job = train(berth, "--rule", "opportunistic=pause", "--rule", "foreign.own=wait", "--gpu-memory", "4GiB")
    berth.wait_started(job)

    def worker():
        processes = berth.api("GET", "/api/gpus")["gpus"][0]["processes"] or []
        return next((p["pid"] for p in processes if p["job"] == job), None)

    pid = eventually(worker, "its process is seen")
    with Hold(berth, 0):
        eventually(lambda: process_stat(pid)[0] == "T", "it stands still")
        assert alive(pid)
        assert state(berth, job) == "paused"
        assert "stands still for your own process on GPU 0" in berth.why(job)
        assert "goes on when that one has left" in berth.cli("resume", str(job), check=1).stderr
        berth.restart()
        assert state(berth, job) == "paused"
    eventually(lambda: process_stat(pid)[0] != "T", "it goes on")
    eventually(lambda: state(berth, job) == "running", "and is called running again")
    assert len(berth.show(job)["attempts"]) == 1


def test_a_job_of_higher_priority_displaces_one_that_agreed_to_it(one_card):
    berth = one_card
    low = train(berth, "--priority", "9", "--rule", "preemptible=true")
    berth.wait_started(low)
    plain = train(berth, "--priority", "5", seconds="1s")
    assert berth.wait_one(plain)["state"] == "succeeded"
    first = berth.show(low)["attempts"][0]
    assert first["failure_class"] == "preempted", first
    eventually(lambda: state(berth, low) == "running", "it runs again")


def test_nobody_is_displaced_who_did_not_agree(one_card):
    berth = one_card
    low = train(berth, "--priority", "9")
    berth.wait_started(low)
    high = train(berth, "--priority", "0")
    eventually(lambda: "taken by job" in berth.why(high), "it waits")
    assert len(berth.show(low)["attempts"]) == 1


def test_a_large_job_is_not_starved_and_short_ones_fill_the_gap(gpu_berth):
    berth = gpu_berth
    first = train(berth, "--time", "30m")
    berth.wait_started(first)
    large = train(berth, "--gpus", "2")
    eventually(lambda: "taken by job" in berth.why(large), "it waits for the other card")
    long = train(berth)
    eventually(lambda: f"kept for job {large}" in berth.why(long), "a card is kept for it")
    short = train(berth, "--time", "1m", seconds="0.2s")
    assert berth.wait_one(short)["state"] == "succeeded"
    assert state(berth, large) == "queued"
    berth.kill_jobs([first])
    berth.wait_started(large)
    assert state(berth, long) == "queued"


def test_cards_are_left_to_others(make_instance):
    berth = make_instance(gpus="sim:4x24GiB")
    berth.start()
    berth.cli("set", "gpu_left=1", check=0)
    jobs = [train(berth) for _ in range(4)]
    eventually(lambda: len(running(berth)) == 3, "three of four cards")
    assert sorted(i for job in jobs[:3] for i in indices(berth, job)) == [0, 1, 2]
    assert "gpu_left=1" in berth.why(jobs[3])
    berth.cli("set", "gpu_left=0", "max_gpu=3", check=0)
    eventually(lambda: "3 of the 3 cards" in berth.why(jobs[3]), "the quota says so")
    berth.cli("set", "max_gpu=0", check=0)
    berth.wait_started(jobs[3])


def test_cards_of_one_job_are_close_to_each_other(make_instance):
    berth = make_instance(gpus="sim:4x24GiB")
    berth.start()
    berth.simgpu("set", "driver", "link", "1-3:nvlink")
    berth.restart()
    job = train(berth, "--gpus", "2")
    berth.wait_started(job)
    assert sorted(indices(berth, job)) == [1, 3]


def test_a_job_may_say_how_long_it_waits_for_a_card(one_card):
    berth = one_card
    first = train(berth)
    berth.wait_started(first)
    job = train(berth, "--rule", "max_wait=1s")
    ended = berth.wait_one(job)
    assert ended["state"] == "cancelled" and "max_wait" in ended["message"], ended


def test_a_paused_instance_drains(one_card):
    berth = one_card
    first = train(berth, seconds="1s")
    berth.wait_started(first)
    berth.cli("pause", "--instance", check=0)
    second = train(berth, seconds="0.2s")
    assert berth.wait_one(first)["state"] == "succeeded"
    assert "paused" in berth.why(second)
    berth.restart()
    assert "paused" in berth.why(second)
    berth.cli("resume", "--instance", check=0)
    assert berth.wait_one(second)["state"] == "succeeded"
