"""Who goes first, who waits, and what a start by hand skips."""

import time

import pytest

from berthlib import eventually, job
from test_placing import at_once, make, placed, rule, training
from test_scheduling import Hold, running


def starts(berth, ids):
    """Names in the order in which the jobs were started."""
    berth.wait(ids)
    found = sorted((attempt["id"], berth.show(i)["job"]["name"]) for i in ids for attempt in berth.show(i)["attempts"])
    return [name for _, name in found]


def one_by_one(count, **fields):
    """Jobs that want the only card for themselves."""
    return [job("true", gpus=1, name=str(i), **fields) for i in range(count)]


def test_a_batch_may_run_in_random_order(make_instance):
    berth = make(make_instance, gpus="sim:1x24GiB")
    orders = []
    for seed in ("3", "4"):
        with at_once(berth):
            ids = berth.submit(one_by_one(12), batch={"name": "b", "rules": {"order": "random", "seed": seed}})
        orders.append(starts(berth, ids))
    straight = [str(i) for i in range(12)]
    assert all(sorted(order) == sorted(straight) for order in orders)
    assert all(order != straight for order in orders)


def test_the_largest_go_first_if_the_rule_says_so(make_instance):
    berth = make(make_instance, gpus="sim:3x24GiB", order="largest_first")
    with at_once(berth):
        ids = berth.submit([job("true", gpus=n, name=str(n)) for n in (1, 3, 2)])
    assert starts(berth, ids)[0] == "3"
    assert starts(berth, ids)[1:] == ["2", "1"]


def test_a_batch_that_has_used_less_goes_first(make_instance):
    berth = make(make_instance, gpus="sim:32x24GiB")
    # A minute on cards, in a few seconds.
    busy = berth.submit([job("sleep 4", gpus=32, name="busy"), job("true", gpus=32, name="busy again")],
                        batch={"name": "busy"})
    berth.wait_started(busy[0])
    fresh = berth.submit([job("true", gpus=32, name="fresh")], batch={"name": "fresh"})
    assert starts(berth, busy + fresh) == ["busy", "fresh", "busy again"]


def test_without_fair_share_the_order_is_that_of_submission(make_instance):
    berth = make(make_instance, gpus="sim:32x24GiB", fair_share="false")
    busy = berth.submit([job("sleep 4", gpus=32, name="busy"), job("true", gpus=32, name="busy again")],
                        batch={"name": "busy"})
    berth.wait_started(busy[0])
    fresh = berth.submit([job("true", gpus=32, name="fresh")], batch={"name": "fresh"})
    assert starts(berth, busy + fresh) == ["busy", "busy again", "fresh"]


def test_who_has_waited_long_enough_goes_before_all_others(make_instance, tmp_path):
    berth = make(make_instance, gpus="sim:1x24GiB")
    gate = tmp_path / "gate"
    [first] = berth.submit(job(f"while [ ! -e {gate} ]; do sleep 0.05; done", gpus=1, name="first"))
    berth.wait_started(first)
    [old] = berth.submit(job("true", gpus=1, name="old", priority=9))
    came = berth.show(old)["job"]["submitted_at"]
    eventually(lambda: time.time() * 1000 > came + 2000, "it has waited for two seconds")
    [late] = berth.submit(job("true", gpus=1, name="late", priority=1))
    rule(berth, aging="2s")
    gate.touch()
    assert starts(berth, [first, old, late]) == ["first", "old", "late"]


def test_cards_are_kept_for_a_large_job_as_the_rule_says(make_instance):
    berth = make(make_instance, gpus="sim:2x24GiB", hold_after="0")
    [first] = berth.submit(training(berth))
    berth.wait_started(first)
    [large] = berth.submit(training(berth, gpus=2))
    [small] = berth.submit(job("true", gpus=1, time_ms=1000))
    # Nobody can tell when the first one ends, so nobody overtakes.
    eventually(lambda: f"kept for job {large}" in berth.why(small), "a card is kept")
    assert f"GPUs 0, 1 would fit when job {first} ends" in berth.cli("why", large, check=0).stdout
    rule(berth, backfill="any")
    assert berth.wait_one(small)["state"] == "succeeded"
    rule(berth, backfill="none")
    [other] = berth.submit(job("true", gpus=1, time_ms=1000))
    eventually(lambda: f"kept for job {large}" in berth.why(other), "nobody may overtake")
    assert running(berth) == {first}


# --- started by hand ------------------------------------------------------------------------------


@pytest.fixture
def held(make_instance):
    """One card of two is left to others, one job may run, and it does."""
    berth = make(make_instance, gpus="sim:2x24GiB", max_concurrent=1, gpu_left=1)
    [first] = berth.submit(training(berth, declared=20, used=18))
    berth.wait_started(first)
    return berth


def test_a_start_by_hand_skips_order_limits_and_busy_strangers(held):
    with Hold(held, 1, memory="10GiB", util=95):
        ids = held.submit([training(held, declared=8) for _ in range(2)])
        assert "the limit max_concurrent" in held.why(ids[0])
        held.cli("start", ids[1], check=0)
        assert placed(held, [ids[1]]) == [[1]]
        assert "2 jobs run already, the limit max_concurrent is 1" in held.why(ids[0])


def test_a_start_by_hand_does_not_skip_memory_nor_drained_cards(held):
    with Hold(held, 1, memory="10GiB", util=95) as stranger:
        [big] = held.submit(training(held, declared=16))
        held.cli("start", big, check=0)
        eventually(lambda: "GPU 1: 14 GiB free, 16 GiB needed, your own processes outside berth hold 10 GiB" in held.why(big), "memory counts")
        held.cli("pause", "--gpu", "1", "--why", "a new fan", check=0)
        stranger.process.kill()
        stranger.process.wait()
        eventually(lambda: "GPU 1: out of use: a new fan" in held.why(big), "a drained card is no card")
        held.cli("resume", "--gpu", "1", check=0)
        assert placed(held, [big]) == [[1]]


def test_a_start_by_hand_ends_a_delay_and_passes_a_paused_queue(held):
    [late] = held.submit(job("true", start_at=4102444800000))
    held.cli("start", late, check=0)
    assert held.wait_one(late)["state"] == "succeeded"
    [paused] = held.submit(job("true", queue="q"), queues=[{"name": "q", "limit": 1}])
    held.cli("pause", "--queue", "q", check=0)
    assert "queue 'q' is paused" in held.why(paused)
    held.cli("start", paused, check=0)
    assert held.wait_one(paused)["state"] == "succeeded"
