"""What becomes of jobs that fail: why they did, whether, where, when and with what they run again."""

import os
import subprocess

import pytest

from berthlib import BIN, PATIENCE, eventually, job

GIB = 1 << 30

TOO_BIG = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 24.00 GiB of which 13.00 GiB is free. Including non-PyTorch memory, this process "
    "has 9.00 GiB memory in use."
)


def kinds(berth, job_id):
    return [e["kind"] for e in berth.api("GET", f"/api/events?job={job_id}")["events"]]


def all_kinds(berth):
    return [e["kind"] for e in berth.api("GET", "/api/events?after=0&limit=1000")["events"]]


def attempts(berth, job_id):
    return berth.show(job_id)["attempts"]


def classes(berth, job_id):
    return [a["failure_class"] for a in attempts(berth, job_id)]


def only_first(script, otherwise="exit 0"):
    return f"if [ $BERTH_ATTEMPT_NUMBER = 1 ]; then {script}; fi; {otherwise}"


@pytest.fixture
def holder():
    """Somebody outside berth who takes memory of a card."""
    held = []

    def hold(berth, index, memory):
        held.append(
            subprocess.Popen(
                [str(BIN / "berth-simgpu"), "hold", str(index), "--memory", memory],
                env={"PATH": "/usr/bin:/bin", "BERTH_SIM_DIR": str(berth.dir / "simgpu")},
                stdout=subprocess.DEVNULL,
            )
        )

        def seen():
            cards = berth.api("GET", "/api/gpus")
            cards = cards["gpus"] if isinstance(cards, dict) else cards
            pids = [p["pid"] for p in cards[index]["processes"] or []]
            return held[-1].pid in pids

        eventually(seen, "the stranger is on the card")
        return held[-1]

    yield hold
    for process in held:
        process.kill()
        process.wait(PATIENCE)


def test_out_of_memory_because_of_a_neighbour_goes_elsewhere_without_blame(
    gpu_berth, holder, tmp_path
):
    gate = tmp_path / "gate"
    job_id = gpu_berth.submit_one(
        f"echo up; while ! [ -e {gate} ]; do sleep 0.02; done; "
        f"exec {BIN}/berth-simgpu train --memory 6GiB --time 100ms",
        gpus=1,
        gpu_memory=8 * GIB,
    )
    gpu_berth.wait_started(job_id)
    [first] = attempts(gpu_berth, job_id)
    holder(gpu_berth, first["gpu_indices"][0], "22GiB")
    gate.touch()
    done = gpu_berth.wait_one(job_id)
    assert done["state"] == "succeeded", done
    assert classes(gpu_berth, job_id) == ["gpu_oom", None]
    first, second = attempts(gpu_berth, job_id)
    assert first["gpu_indices"] != second["gpu_indices"]
    assert "others hold 22 GiB" in first["message"], first["message"]
    assert (done["retries_used"], done["excused"]) == (0, 1)
    assert second["gpu_memory"] == 8 * GIB


def test_out_of_memory_because_of_its_size_gets_more(gpu_berth):
    job_id = gpu_berth.submit_one(
        only_first(f"echo '{TOO_BIG}' >&2; exit 1"), gpus=1, gpu_memory=10 * GIB
    )
    done = gpu_berth.wait_one(job_id)
    assert done["state"] == "succeeded", done
    first, second = attempts(gpu_berth, job_id)
    assert first["failure_class"] == "gpu_oom"
    # 11 GiB and a fifth of it, as a multiple of 64 MiB.
    assert second["gpu_memory"] == 13 * GIB + GIB // 4
    assert done["gpu_memory"] == second["gpu_memory"]
    events = gpu_berth.api("GET", f"/api/events?job={job_id}")["events"]
    [retried] = [e["detail"] for e in events if e["kind"] == "retried"]
    assert retried == (
        "out of GPU memory: asked for 2 GiB more with 9 GiB of 24 GiB in use by itself; "
        "trying again with 13.2 GiB"
    )


@pytest.mark.parametrize(
    "said",
    [
        "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 23.69 GiB total capacity; 21.50 GiB "
        "already allocated; 0.19 GiB free; 22.00 GiB reserved in total by PyTorch)",
        "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 24.00 GiB of "
        "which 0.50 GiB is free. Process 32777 has 23.00 GiB memory in use.",
    ],
)
def test_who_was_alone_on_a_whole_card_cannot_blame_others(gpu_berth, said):
    job_id = gpu_berth.submit_one(f"sleep 4; echo '{said}' >&2; exit 1", gpus=1)
    done = gpu_berth.wait_one(job_id)
    assert (done["state"], done["failure_class"]) == ("failed", "gpu_oom"), done
    assert "it had a whole card of 24 GiB, the largest there is" in done["message"], done
    assert "others" not in done["message"]
    assert len(attempts(gpu_berth, job_id)) == 1


def test_a_card_that_a_neighbour_has_left_is_taken_again(gpu_berth, holder, tmp_path):
    gate = tmp_path / "gate"
    cards = len(gpu_berth.api("GET", "/api/gpus")["gpus"])
    job_id = gpu_berth.submit_one(
        f"echo up; while ! [ -e {gate} ]; do sleep 0.02; done; "
        f"exec {BIN}/berth-simgpu train --memory 14GiB --time 100ms",
        gpus=1,
    )
    gpu_berth.wait_started(job_id)
    others = [gpu_berth.submit_one("sleep 600", gpus=1) for _ in range(cards - 1)]
    for other in others:
        gpu_berth.wait_started(other)
    [first] = attempts(gpu_berth, job_id)
    stranger = holder(gpu_berth, first["gpu_indices"][0], "14GiB")
    gate.touch()
    eventually(lambda: "still hold 14 GiB" in gpu_berth.why(job_id), "it waits for the neighbour")
    stranger.kill()
    assert gpu_berth.wait_one(job_id)["state"] == "succeeded"
    assert attempts(gpu_berth, job_id)[1]["gpu_indices"] == first["gpu_indices"]


def test_what_no_card_can_hold_gets_a_whole_one_and_then_gives_up(gpu_berth):
    job_id = gpu_berth.submit_one(
        f"exec {BIN}/berth-simgpu train --memory 30GiB --time 100ms",
        gpus=1,
        gpu_memory=10 * GIB,
    )
    done = gpu_berth.wait_one(job_id)
    assert (done["state"], done["failure_class"]) == ("failed", "gpu_oom"), done
    assert "gave up: it had a whole card of 24 GiB, the largest there is" in done["message"]
    memory = [a["gpu_memory"] for a in attempts(gpu_berth, job_id)]
    assert memory[0] == 10 * GIB and not memory[-1], memory
    shown = gpu_berth.cli("show", job_id, check=0).stdout
    assert "gpu_oom" in shown and "gave up" in shown


def test_raising_memory_can_be_forbidden(gpu_berth):
    job_id = gpu_berth.submit_one(
        f"echo '{TOO_BIG}'; exit 1",
        gpus=1,
        gpu_memory=10 * GIB,
        rules={"retry_config.raise_memory": "false"},
    )
    done = gpu_berth.wait_one(job_id)
    assert (done["state"], done["attempts"]) == ("failed", 1)


def test_a_broken_card_is_drained_and_the_job_goes_elsewhere(gpu_berth):
    job_id = gpu_berth.submit_one(
        only_first("echo 'CUDA error: uncorrectable ECC error encountered'; exit 1"), gpus=1
    )
    done = gpu_berth.wait_one(job_id)
    assert (done["state"], done["excused"]) == ("succeeded", 1), done
    first, second = attempts(gpu_berth, job_id)
    assert first["failure_class"] == "gpu_lost"
    assert first["gpu_indices"] != second["gpu_indices"]
    assert "drained" in all_kinds(gpu_berth)


def test_a_card_lost_in_the_middle_of_a_job(gpu_berth):
    job_id = gpu_berth.submit_one(
        only_first("sleep 1000"), gpus=1, grace_ms=100
    )
    gpu_berth.wait_started(job_id)
    [first] = attempts(gpu_berth, job_id)
    gpu_berth.simgpu("set", first["gpu_indices"][0], "lost", "yes")
    done = gpu_berth.wait_one(job_id)
    assert done["state"] == "succeeded", done
    assert classes(gpu_berth, job_id) == ["gpu_lost", None]
    assert attempts(gpu_berth, job_id)[1]["gpu_indices"] != first["gpu_indices"]


def test_a_folder_that_is_not_there_is_not_made_for_the_log_in_it(berth, tmp_path):
    there = tmp_path / "no" / "such"
    one = berth.submit_one("true", cwd=str(there), log=str(there / "logs" / "one.log"))
    ended = berth.wait_one(one)
    assert ended["failure_class"] == "cannot_start" and str(there) in ended["message"]
    assert not (tmp_path / "no").exists()


def test_bugs_and_what_cannot_start_are_not_tried_again(berth):
    bug = berth.submit_one("echo 'CUDA error: device-side assert triggered'; exit 1")
    absent = berth.submit_one(argv=["/no/such/program"])
    plain = berth.submit_one("exit 3")
    for job_id, failure in ((bug, "exit"), (absent, "cannot_start"), (plain, "exit")):
        done = berth.wait_one(job_id)
        assert (done["state"], done["failure_class"]) == ("failed", failure), done
        assert done["attempts"] == 1
    assert "an assertion failed in its GPU code" in berth.show(bug)["job"]["message"]


def test_unless_somebody_asks_for_it(berth):
    absent = berth.submit_one(argv=["/no/such/program"], retries=1)
    by_class = berth.submit_one("exit 3", rules={"retry_config.exit": "2"})
    assert berth.wait_one(absent)["attempts"] == 2
    assert berth.wait_one(by_class)["attempts"] == 3


def test_waits_between_retries_are_as_configured(berth):
    steps = {"retry_config.max_retry_before_backoff": "2", "retry_config.backoff_duration": "2s"}
    grows = {"retry_config.backoff": "exponential", "retry_config.backoff_first": "500ms",
             "retry_config.backoff_factor": "3", "retry_config.backoff_max": "2s", "retry_config.jitter": "0"}
    ids = berth.submit([job("exit 3", retries=4, rules=steps), job("exit 3", retries=3, rules=grows)])
    berth.wait(ids)
    announced = [
        ["trying again (retry 1 of 4)", "trying again (retry 2 of 4)", "trying again in 2.0 s (retry 3 of 4)",
         "trying again (retry 4 of 4)"],
        ["trying again in 0.5 s (retry 1 of 3)", "trying again in 1.5 s (retry 2 of 3)",
         "trying again in 2.0 s (retry 3 of 3)"],
    ]
    for one, said, least in zip(ids, announced, ([0, 0, 2, 0], [0.5, 1.5, 2])):
        events = berth.api("GET", f"/api/events?job={one}&limit=100")["events"]
        details = [e["detail"] for e in events if e["kind"] == "retried" and e["job"] == one]
        assert sorted(details) == sorted(f"exited with code 3; {text}" for text in said)
        attempts = berth.show(one)["attempts"]
        found = [(b["started_at"] - a["ended_at"]) / 1000 for a, b in zip(attempts, attempts[1:])]
        # No upper limit: a busy machine adds to it.
        assert len(found) == len(least) and all(f >= l - 0.01 for f, l in zip(found, least)), found


def test_each_class_of_failure_may_have_its_own_retries(berth):
    rules = {"retry_config.exit": "1", "retry_config.cannot_start": "2", "retry_config.timeout": "0"}
    ids = berth.submit([
        job("exit 3", retries=5, rules=rules),
        job(argv=["no-such-program"], rules=rules),
        job("sleep 600", retries=5, time_ms=200, rules=rules),
    ])
    berth.wait(ids)
    assert [len(berth.show(i)["attempts"]) for i in ids] == [2, 3, 1]


def test_a_wait_between_retries_keeps_the_place_in_a_serial_queue(berth, tmp_path):
    order = tmp_path / "order"
    rules = {
        "retry_config.max_retry_before_backoff": "1",
        "retry_config.backoff_duration": "1500ms",
    }
    first, second = berth.submit(
        [
            job(f"echo first >> {order}; exit 1", retries=2, rules=rules, queue="line"),
            job(f"echo second >> {order}", queue="line"),
        ],
        queues=[{"name": "line", "limit": 1}],
    )
    assert berth.wait_one(second)["state"] == "succeeded"
    assert order.read_text().split() == ["first"] * 3 + ["second"]
    one, two, three = attempts(berth, first)
    assert three["started_at"] - two["ended_at"] >= 1400  # both are rounded
    assert len({a["id"] for a in (one, two, three)}) == 3
    assert berth.show(first)["job"]["message"] == "exited with code 1; no retry left after 2"


def test_a_wait_between_retries_outlives_a_restart(berth):
    rules = {
        "retry_config.backoff": "exponential",
        "retry_config.backoff_first": "1h",
        "retry_config.backoff_max": "1h",
    }
    job_id = berth.submit_one("exit 1", retries=1, rules=rules)
    eventually(lambda: berth.show(job_id)["job"]["retries_used"] == 1, "it has failed once")
    assert "trying again in" in berth.show(job_id)["job"]["message"]
    berth.kill9()
    berth.restart()
    assert berth.show(job_id)["job"]["state"] == "queued"
    assert berth.show(job_id)["job"]["attempts"] == 1
    berth.kill_jobs([job_id])


def test_the_log_of_an_earlier_attempt_is_no_evidence(gpu_berth, tmp_path):
    log = tmp_path / "log"
    log.write_text("CUDA error: uncorrectable ECC error encountered\n")
    job_id = gpu_berth.submit_one("echo fine; exit 3", gpus=1, log=str(log))
    done = gpu_berth.wait_one(job_id)
    assert (done["failure_class"], done["attempts"]) == ("exit", 1), done


def test_a_log_that_is_no_file_is_no_evidence(berth, tmp_path):
    job_id = berth.submit_one("echo 'CUDA out of memory'; exit 3", log="/dev/null")
    assert berth.wait_one(job_id)["failure_class"] == "exit"


def test_killed_by_kill_alone_is_not_called_lack_of_memory(berth):
    done = berth.wait_one(berth.submit_one("kill -KILL $$"))
    assert (done["failure_class"], done["attempts"]) == ("exit", 1)
    assert "by whom is not known" in done["message"]


SAVES = "trap 'echo saved; exit 7' USR1; echo up; while :; do sleep 0.02; done"


def test_a_warning_comes_before_the_time_limit(berth):
    job_id = berth.submit_one(SAVES, time_ms=33_000, signal="USR1@30")
    done = berth.wait_one(job_id)
    assert (done["state"], done["exit_code"]) == ("failed", 7), done
    shown = berth.show(job_id)
    assert shown["signal"] == "USR1@30s"


def test_at_the_time_limit_a_job_that_asks_for_it_waits_again(berth):
    job_id = berth.submit_one(
        only_first("sleep 1000"),
        time_ms=500,
        grace_ms=100,
        rules={"retry_config.requeue_on_timeout": "true"},
    )
    done = berth.wait_one(job_id)
    assert (done["state"], done["retries_used"]) == ("succeeded", 0), done
    assert classes(berth, job_id) == ["timeout", None]
    assert "requeued" in kinds(berth, job_id)


def test_who_is_preempted_is_warned_and_waits_again_at_no_cost(make_instance):
    berth = make_instance(gpus="sim:1x24GiB")
    berth.start()
    job_id = berth.submit_one(
        only_first(SAVES),
        gpus=1,
        priority=9,
        signal="USR1@1h",
        rules={"preemptible": "true"},
    )
    berth.wait_started(job_id)
    log = berth.show(job_id)["job"]["log"]
    eventually(lambda: os.path.exists(log) and open(log).read() == "up\n", "it can be warned")
    urgent = berth.submit_one("exit 0", gpus=1, priority=1)
    assert berth.wait_one(urgent)["state"] == "succeeded"
    done = berth.wait_one(job_id)
    assert (done["state"], done["retries_used"]) == ("succeeded", 0), done
    assert classes(berth, job_id) == ["preempted", None]
    assert attempts(berth, job_id)[0]["exit_code"] == 7


def test_options_and_keys(berth, tmp_path):
    job_id = int(
        berth.cli(
            "add", "--gpus", 0, "--time", "1h", "--signal", "USR2@5m", "--requeue", "--", "true",
            check=0,
        ).stdout
    )
    assert berth.show(job_id)["signal"] == "USR2@5m"
    assert "USR2@5m" in berth.cli("show", job_id, check=0).stdout
    assert berth.cli("add", "--signal", "KILL@5", "--", "true").returncode == 2
    file = tmp_path / "jobs.yaml"
    file.write_text(
        "version: 1\n"
        "jobs:\n"
        "  - {name: a, run: 'true', gpus: 0, time: 1h, signal: USR1@120, requeue: true}\n"
        "  - {name: b, run: 'true', gpus: 0, time: 1h, signal: {name: USR1, before: 2m}}\n"
    )
    checked = berth.cli("check", "--json", file, check=0).stdout
    assert checked.count('"signal": "USR1@2m"') + checked.count('"signal":"USR1@2m"') == 2, checked
    assert "retry_config.requeue_on_timeout" in checked
    file.write_text("version: 1\njobs: [{run: x, signal: {before: 2m}}]\n")
    refused = berth.cli("check", file)
    assert refused.returncode != 0 and "'signal' has the keys" in refused.stderr + refused.stdout
