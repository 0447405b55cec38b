"""Which card is taken, how many, and which are left alone: each rule with real processes."""

import contextlib
import os
import re

import pytest

from berthlib import GIB, REPO, eventually, job
from test_scheduling import Hold, running

GUIDE = REPO / "docs" / "guide" / "strategies.md"


def make(make_instance, gpus="sim:4x24GiB", **rules):
    berth = make_instance(gpus=gpus)
    berth.start()
    rule(berth, **{"foreign.young": "0", **rules})
    return berth


def rule(berth, **rules):
    berth.api("POST", "/api/rules", {"set": [{"key": k, "value": str(v)} for k, v in rules.items()]})


def training(berth, *, declared=None, used=1, util=0, seconds=600, gpus=1, **fields):
    """A job that declares and uses so many GiB of each of its cards."""
    argv = [berth.bin_dir / "berth-simgpu", "train", "--memory", f"{used}GiB", "--util", util, "--time",
            f"{seconds}s"]
    declares = {} if declared is None else {"gpu_memory": declared * GIB}
    return job(argv=map(str, argv), gpus=gpus, **declares, **fields)


def cards(berth):
    return berth.api("GET", "/api/gpus")["gpus"]


def placed(berth, ids):
    """Where jobs that were submitted together run, once all of them do."""
    eventually(lambda: set(ids) <= running(berth), f"jobs {ids} run")
    return [berth.show(i)["job"]["gpu_indices"] for i in ids]


@contextlib.contextmanager
def at_once(berth):
    """What is submitted meanwhile is decided about together."""
    berth.api("POST", "/api/jobs/pause", {"instance": True})
    yield
    berth.api("POST", "/api/jobs/resume", {"instance": True})


# --- strategies -----------------------------------------------------------------------------------


def choices():
    """What the guide says: {strategy: cards of A, B and C}."""
    table = GUIDE.read_text().split("<!-- choices:")[1].split("<!-- end of choices")[0]
    rows = re.findall(r"^\| `(\w+)` \| GPU (\d) \| GPU (\d) \| GPU (\d) \|$", table, re.MULTILINE)
    return {name: [[int(i)] for i in where] for name, *where in rows}


def test_each_strategy_takes_the_cards_that_the_guide_says(make_instance):
    berth = make(make_instance)
    for index, percent in enumerate((70, 5, 0, 10)):
        berth.simgpu("set", index, "samples", percent)
    [first] = berth.submit(training(berth, declared=14, used=14, util=70, rules={"gpus": "0"}))
    [third] = berth.submit(training(berth, declared=17, used=17, util=10, rules={"gpus": "3"}))
    # Others who wait, which matters to fragmentation.
    berth.submit([training(berth, declared=10, rules={"gpus": "7"}) for _ in range(6)])
    used = [14 * GIB, 2 * GIB, 15 * GIB, 17 * GIB]
    expected = choices()
    assert len(expected) == 9, expected
    with Hold(berth, 1, memory="2GiB", util=5), Hold(berth, 2, memory="15GiB", util=0):
        found = {}
        for strategy in expected:
            last = berth.submit_one("true", gpus=1, gpu_memory=GIB, rules={"gpus": "1"})
            berth.wait_one(last)
            eventually(
                lambda: [c["memory_used"] for c in cards(berth)] == used
                and [len(c["claims"]) for c in cards(berth)] == [1, 0, 0, 1],
                "the cards are as in the guide",
            )
            rule(berth, strategy=strategy)
            with at_once(berth):
                ids = berth.submit([training(berth, declared=6) for _ in range(3)])
            found[strategy] = placed(berth, ids)
            berth.kill_jobs(ids, grace_ms=0)
            berth.wait(ids)
        assert found == expected
    assert {first, third} <= running(berth)


def test_a_strategy_is_for_a_queue_a_batch_or_a_job(make_instance):
    berth = make(make_instance, strategy="most_free")
    [before] = berth.submit(training(berth, declared=8, rules={"gpus": "2"}))
    berth.wait_started(before)
    found = []
    for fields, rest in [
        ({}, {}),  # most_free
        ({"rules": {"strategy": "pack"}}, {}),
        ({"queue": "tight"}, {"queues": [{"name": "tight", "limit": 0, "rules": {"strategy": "best_fit"}}]}),
        ({}, {"batch": {"name": "b", "rules": {"strategy": "spread"}}}),
    ]:
        found += placed(berth, berth.submit(training(berth, declared=4, **fields), **rest))
    assert found == [[0], [2], [2], [1]]


# --- several cards --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("links", "nodes", "expected"),
    [
        ("0-1:system,0-2:pcie_switch,0-3:nvlink", None, [0, 3]),
        ("0-1:system,0-2:numa,0-3:system,1-2:system,1-3:pcie_switch,2-3:system", None, [1, 3]),
        (None, (0, 1, 0, 1), [0, 2]),
    ],
)
def test_cards_of_one_job_are_as_close_as_can_be(make_instance, links, nodes, expected):
    berth = make_instance(gpus="sim:4x24GiB")
    berth.start()
    if links:
        berth.simgpu("set", "driver", "link", links)
    for index, node in enumerate(nodes or ()):
        berth.simgpu("set", index, "numa", node)
    berth.restart()
    [close] = berth.submit(training(berth, gpus=2))
    assert sorted(placed(berth, [close])[0]) == expected
    berth.kill_jobs([close], grace_ms=0)
    eventually(lambda: all(c["state"] == "free" for c in cards(berth)), "all cards are free again")
    [any_two] = berth.submit(training(berth, gpus=2, rules={"topology": "false"}))
    assert sorted(placed(berth, [any_two])[0]) == [0, 1]


@pytest.mark.parametrize("rules", [{"max_gpu": 2}, {"gpu_left": 2, "gpu_left_mode": "any"}])
def test_a_quota_does_not_part_cards_that_are_close(make_instance, rules):
    berth = make_instance(gpus="sim:4x24GiB")
    berth.start()
    berth.simgpu("set", "driver", "link", "1-3:nvlink")
    berth.restart()
    rule(berth, **rules)
    [pair] = berth.submit(training(berth, gpus=2))
    assert sorted(placed(berth, [pair])[0]) == [1, 3]


def test_a_range_takes_as_many_as_there_is_room_for(make_instance):
    berth = make(make_instance)
    [one] = berth.submit(training(berth))
    berth.wait_started(one)
    [many] = berth.submit(training(berth, gpus=(1, 8)))
    assert len(placed(berth, [many])[0]) == 3


def machine(cpus):
    """A machine as hwloc reads it from a file: one card next to each of these processors."""
    sets = {"cpuset": 0, "nodeset": 0}
    packages = ""
    for number, cpu in enumerate(cpus):
        own = f'cpuset="{1 << cpu:#x}" complete_cpuset="{1 << cpu:#x}" nodeset="{1 << number:#x}" '
        own += f'complete_nodeset="{1 << number:#x}"'
        packages += (
            f'<object type="Package" os_index="{number}" {own} gp_index="{10 + number}">'
            f'<object type="NUMANode" os_index="{number}" {own} gp_index="{20 + number}" local_memory="4096"/>'
            f'<object type="PU" os_index="{cpu}" {own} gp_index="{30 + number}"/>'
            f'<object type="Bridge" gp_index="{40 + number}" bridge_type="0-1" depth="0" '
            f'bridge_pci="0000:[{number + 1:02x}-{number + 1:02x}]"><object type="PCIDev" '
            f'gp_index="{50 + number}" pci_busid="0000:{number + 1:02x}:00.0" '
            'pci_type="0302 [10de:2204] [10de:2204] a1" pci_link_speed="0.000000"/></object></object>'
        )
        sets["cpuset"] |= 1 << cpu
        sets["nodeset"] |= 1 << number
    every = " ".join(f'{kind}{name}="{bits:#x}"' for name, bits in sets.items()
                     for kind in ("", "complete_", "allowed_"))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
        f'<topology version="2.0"><object type="Machine" os_index="0" {every} gp_index="1">{packages}'
        "</object></topology>\n"
    )


def test_a_job_runs_next_to_its_card_if_the_rule_says_so(make_instance, tmp_path):
    cpus = sorted(os.sched_getaffinity(0))
    near = [cpus[0], cpus[-1]]  # of card 0 and of card 1; the same where there is only one processor
    (tmp_path / "machine.xml").write_text(machine(sorted(set(near))))
    berth = make_instance(gpus="sim:2x24GiB", env={"HWLOC_XMLFILE": str(tmp_path / "machine.xml")})
    berth.start()

    def allowed(card, **rules):
        one = berth.submit_one("grep Cpus_allowed: /proc/self/status", gpus=1, rules={"gpus": str(card), **rules})
        assert berth.wait_one(one)["state"] == "succeeded"
        mask = int(re.search(r"Cpus_allowed:\s*(\S+)", berth.cli("log", one, check=0).stdout)[1].replace(",", ""), 16)
        return {cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1}

    for card in range(len(set(near))):
        assert allowed(card) == set(cpus)
        assert allowed(card, cpu_affinity="true") == {near[card]}


# --- cards and memory that are kept ---------------------------------------------------------------


def test_no_job_is_added_to_a_card_that_is_fuller_than_the_rule_says(make_instance):
    berth = make(make_instance, gpus="sim:1x24GiB", keep_gpu_memory=50)
    [first] = berth.submit(training(berth, declared=14))
    berth.wait_started(first)
    [second] = berth.submit(training(berth, declared=2))
    eventually(lambda: "keep_gpu_memory=50" in berth.why(second), "the rule is named")
    rule(berth, keep_gpu_memory=60)
    berth.wait_started(second)


@pytest.mark.parametrize("gpus", [1, 0])
def test_nothing_starts_when_the_host_runs_short_of_memory(make_instance, gpus):
    berth = make(make_instance, keep_host_memory="4GiB")
    berth.simgpu("set", "driver", "host_available", "3GiB")
    berth.restart()  # what was seen before does not count
    rule(berth, keep_host_memory="4GiB")
    waiting = berth.submit_one("true", gpus=gpus)
    text = "3 GiB of host memory are available, 4 GiB must stay so (keep_host_memory)"
    eventually(lambda: text in berth.why(waiting), "the rule is named")
    berth.simgpu("set", "driver", "host_available", "5GiB")
    assert berth.wait_one(waiting)["state"] == "succeeded"


def test_host_memory_is_kept_on_a_machine_without_gpus(berth):
    rule(berth, keep_host_memory="1000TiB")
    waiting = berth.submit_one("true")
    eventually(lambda: "(keep_host_memory)" in berth.why(waiting), "the rule is named")
    rule(berth, keep_host_memory="1MiB")
    assert berth.wait_one(waiting)["state"] == "succeeded"


def test_some_cards_stay_free_whichever_they_are(make_instance):
    berth = make(make_instance, gpu_left=2, gpu_left_mode="any")
    with Hold(berth, 0, memory="20GiB", util=90):
        ids = berth.submit([training(berth) for _ in range(3)])
        # Tests and daemon are of one user here, so that process is our own and counts as in use.
        eventually(lambda: running(berth) == {ids[0]}, "two of the free cards stay free")
        eventually(lambda: "2 of the 2 cards that berth may use at once" in berth.why(ids[1]), "it says so")
        rule(berth, gpu_left=1)
        eventually(lambda: running(berth) == set(ids[:2]), "now one stays free")
        assert placed(berth, ids[:2]) == [[1], [2]]


def test_quotas_of_the_instance_and_of_a_batch_count_together(make_instance):
    berth = make(make_instance, max_gpu=3)
    sweep = berth.submit([training(berth) for _ in range(3)], batch={"name": "s", "rules": {"max_gpu": "2"}})
    single = berth.submit([training(berth) for _ in range(2)])
    eventually(lambda: running(berth) == {*sweep[:2], single[0]}, "two of the batch, three in all")
    eventually(lambda: "3 of the 3 cards that berth may use" in berth.why(single[1]), "the instance's")
    rule(berth, max_gpu=5)
    eventually(lambda: running(berth) == {*sweep[:2], *single}, "four in all, still two of the batch")
    berth.kill_jobs(single)
    eventually(lambda: "2 of the 2 cards that its batch may use" in berth.why(sweep[2]), "its own quota")


def test_a_batch_with_a_quota_leaves_cards_whoever_uses_the_others(make_instance):
    berth = make(make_instance)
    rules = {"max_gpu": "3", "gpu_left": "1", "gpu_left_mode": "any"}
    others = berth.submit([training(berth) for _ in range(2)])
    placed(berth, others)
    sweep = berth.submit([training(berth) for _ in range(2)], batch={"name": "s", "rules": rules})
    eventually(lambda: running(berth) == {*others, sweep[0]}, "one card stays free")
    assert "3 of the 3 cards that berth may use" in berth.why(sweep[1])
    more = berth.submit([training(berth) for _ in range(2)],
                        batch={"name": "m", "rules": {**rules, "min_gpu": "1"}})
    eventually(lambda: running(berth) == {*others, sweep[0], more[0]}, "min_gpu lifts what is left")


def test_only_what_shrunk_claims_do_not_use_is_given_to_others(make_instance):
    berth = make(make_instance, gpus="sim:1x24GiB", shrink_claims="1s")
    [first] = berth.submit(training(berth, declared=20, used=4))
    berth.wait_started(first)
    [second] = berth.submit(training(berth, declared=12))
    berth.wait_started(second)
    [third] = berth.submit(training(berth, declared=12))
    eventually(lambda: "shared with jobs" in berth.why(third), "what the two have used stays theirs")


