"""Rules in layers, delayed starts, kinds of dependencies, drained cards and the paused instance."""

import json
import os
import signal
import time

import pytest

from berthlib import eventually, job


def rules(berth, *words):
    """What `berth set` tells, by key: (value, where it comes from)."""
    shown = json.loads(berth.cli("set", *words, "--json", check=0).stdout)
    return {r["key"]: (r["value"], r["source"]) for r in shown["rules"]}


def kind_of_wait(berth, job_id):
    found = eventually(lambda: berth.api("GET", f"/api/jobs/{job_id}/why")["reasons"], "it waits")
    return found[0]["kind"]


def long_job(**fields):
    return job("sleep 600", **fields)


# --- layers ---------------------------------------------------------------------------------------


def test_each_value_comes_from_the_closest_layer(berth):
    (berth.dir / "berth.yaml").write_text("gpu_left: 1\nmax_wait: 4h\nforeign: {policy: wait}\n")
    eventually(lambda: rules(berth)["gpu_left"] == ("1", "berth.yaml"), "the file is read")
    assert rules(berth)["foreign.policy"] == ("wait", "berth.yaml")
    assert rules(berth)["strategy"] == ("most_free", "default")

    said = berth.cli("set", "max_wait=3h", check=0).stdout
    assert said == "max_wait = 3h (for this run; --save keeps it)\n"
    said = berth.cli("set", "--queue", "car", "max_wait=2h", "strategy=pack", check=0).stdout
    assert "max_wait = 2h (kept for queue car)" in said
    ids = berth.submit(
        [long_job(queue="car"), long_job(queue="car", rules={"memory_margin": "1GiB"})],
        batch={"name": "sweep", "rules": {"max_utilization": "40", "order": "random"}},
        queues=[{"name": "car", "limit": 1, "rules": {"gpu_left": "2"}}],
    )
    own = rules(berth, ids[1])
    assert own["memory_margin"] == ("1GiB", f"job {ids[1]}")
    batch = berth.api("GET", f"/api/jobs/{ids[0]}")["job"]["batch"]
    assert own["max_utilization"] == ("40", f"batch {batch}")
    assert own["gpu_left"] == ("2", "queue car")
    assert own["strategy"] == ("pack", "queue car")
    assert own["max_wait"] == ("2h", "queue car")
    assert own["foreign.policy"] == ("wait", "berth.yaml")
    assert own["cpu_affinity"] == ("false", "default")
    assert "order" not in own and "fair_share" not in own, "they are not for jobs"

    assert rules(berth, "--batch", batch)["order"] == ("random", f"batch {batch}")
    assert rules(berth, "--queue", "car")["gpu_left"] == ("2", "queue car")
    assert rules(berth)["max_wait"] == ("3h", "this run")
    assert berth.cli("set", ids[1], "memory_margin", check=0).stdout == "1GiB\n"
    assert berth.cli("set", "--queue", "car", "gpu_left", check=0).stdout == "2\n"
    assert "queue car" in berth.cli("set", ids[0], check=0).stdout

    berth.cli("set", "--batch", batch, "max_utilization=50", "max_concurrent=1", check=0)
    assert rules(berth, ids[1])["max_utilization"] == ("50", f"batch {batch}")
    assert rules(berth, "--batch", batch)["max_concurrent"] == ("1", f"batch {batch}")

    berth.kill9()
    berth.start()
    own = rules(berth, ids[1])
    assert own["memory_margin"] == ("1GiB", f"job {ids[1]}")
    assert own["max_utilization"] == ("50", f"batch {batch}")
    assert own["strategy"] == ("pack", "queue car")
    assert rules(berth)["max_wait"] == ("4h", "berth.yaml"), "what was of that run is gone"


def test_unset_gives_the_word_to_the_next_layer(berth):
    config = berth.dir / "berth.yaml"
    config.write_text("# ours\ngpu_left: 1\nforeign:\n  policy: wait\n")
    eventually(lambda: rules(berth)["gpu_left"] == ("1", "berth.yaml"), "the file is read")
    berth.cli("set", "gpu_left=2", check=0)
    assert rules(berth)["gpu_left"] == ("2", "this run")
    said = berth.cli("set", "--unset", "gpu_left", check=0).stdout
    assert said == "gpu_left = 1 (as in berth.yaml)\n"
    berth.cli("set", "--unset", "gpu_left", "--unset", "foreign.policy", "--save", check=0)
    assert config.read_text() == "# ours\n"
    assert rules(berth)["gpu_left"] == ("0", "default")

    berth.cli("set", "--queue", "car", "gpu_left=3", check=0)
    berth.cli("set", "--queue", "car", "--unset", "gpu_left", check=0)
    assert rules(berth, "--queue", "car")["gpu_left"] == ("0", "default")

    [first, second] = berth.submit([long_job(queue="s"), long_job(queue="s", rules={"gpu_left": "1"})],
                                   queues=[{"name": "s", "limit": 1}])
    berth.cli("set", second, "--unset", "gpu_left", "max_wait=1h", check=0)
    assert rules(berth, second)["gpu_left"] == ("0", "default")
    assert rules(berth, second)["max_wait"] == ("1h", f"job {second}")
    assert first < second


def test_totals_and_limits_are_taken_back(berth):
    (berth.dir / "berth.yaml").write_text("resources: {lic: 1}\nqueue.night.limit: 2\n")
    eventually(lambda: rules(berth).get("resources.lic") == ("1", "berth.yaml"), "the file is read")
    berth.cli("set", "resources.lic=3", "queue.night.limit=4", "queue.day.limit=1", check=0)
    said = berth.cli("set", "--unset", "resources.lic", "queue.night.limit", "queue.day.limit", check=0)
    assert set(said.stdout.splitlines()) == {
        "resources.lic = 1 (as in berth.yaml)",
        "queue.night.limit = 2 (as in berth.yaml)",
        "queue.day.limit = 0 (the default)",
    }
    berth.cli("set", "resources.seat=3", check=0)
    done = berth.cli("set", "--unset", "resources.seat")
    assert done.returncode == 2 and "`berth set resources.seat=0` leaves none of it" in done.stderr
    assert rules(berth)["resources.seat"][0] == "3"


def test_what_a_queue_has_of_the_instance_is_called_so(berth):
    said = berth.cli("set", "strategy=round_robin", check=0)
    assert "for this run; --save keeps it" in said.stdout
    said = berth.cli("set", "--queue", "x", "--unset", "strategy", check=0)
    assert said.stdout == "strategy = round_robin (of the instance)\n"
    assert "there is no queue 'x' yet" in said.stderr
    assert berth.cli("set", "--queue", "x", "gpu_left=1", check=0).stderr == ""
    assert "queues: x" in berth.cli("status", check=0).stdout


def test_a_group_of_rules_is_listed_and_several_are_unset_at_once(berth):
    berth.cli("set", "foreign.policy=wait", "gpu_left=1", check=0)
    shown = berth.cli("set", "foreign", check=0).stdout
    assert "foreign.policy" in shown and "foreign.young" in shown and "gpu_left" not in shown
    assert "retry_config.backoff_duration" in berth.cli("set", "retry_config", check=0).stdout
    berth.cli("set", "--unset", "foreign.policy", "gpu_left", "max_wait=1h", check=0)
    assert berth.cli("set", "foreign.policy", check=0).stdout == "grade\n"
    assert berth.cli("set", "gpu_left", check=0).stdout == "0\n"
    assert berth.cli("set", "max_wait", check=0).stdout == "1h\n"


def test_saving_writes_the_file_and_the_file_is_heard_afterwards(berth):
    config = berth.dir / "berth.yaml"
    said = berth.cli("set", "gpu_left=2", "--save", check=0).stdout
    assert said == "gpu_left = 2 (saved in berth.yaml)\n"
    assert config.read_text() == "gpu_left: 2\n"
    assert rules(berth)["gpu_left"] == ("2", "berth.yaml")
    config.write_text("gpu_left: 3\n")
    eventually(lambda: rules(berth)["gpu_left"] == ("3", "berth.yaml"), "the change is noticed")
    config.unlink()
    eventually(lambda: rules(berth)["gpu_left"] == ("0", "default"), "its loss is noticed")


def test_a_broken_file_changes_nothing_and_is_told(berth):
    config = berth.dir / "berth.yaml"
    config.write_text("gpu_left: 2\n")
    eventually(lambda: rules(berth)["gpu_left"] == ("2", "berth.yaml"), "it is read")
    config.write_text("gpu_left: 3\nmax_utilization: much\n")
    problem = "berth.yaml:2: max_utilization: expected"
    eventually(lambda: problem in berth.cli("status", check=0).stdout, "the mistake is told")
    assert rules(berth)["gpu_left"] == ("2", "berth.yaml")
    assert problem in berth.log_text()
    assert problem in berth.cli("doctor").stdout
    said = berth.cli("set", "gpu_left=1", "--save", check=0)
    assert "gpu_left = 1 is saved in berth.yaml and not in force yet; it is still 2" in said.stdout
    assert problem in said.stderr
    config.write_text("gpu_left: 3\n")
    eventually(lambda: rules(berth)["gpu_left"] == ("3", "berth.yaml"), "it is repaired")
    assert problem not in berth.cli("status", check=0).stdout


def test_sighup_reads_the_file_again(berth, tmp_path):
    elsewhere = tmp_path / "shared.yaml"
    elsewhere.write_text("gpu_left: 1\n")
    (berth.dir / "berth.yaml").symlink_to(elsewhere)
    berth.restart()
    assert rules(berth)["gpu_left"] == ("1", "berth.yaml")
    elsewhere.write_text("gpu_left: 2\n")  # not in the directory that is watched
    os.kill(berth.pid, signal.SIGHUP)
    eventually(lambda: rules(berth)["gpu_left"] == ("2", "berth.yaml"), "it is read again")
    assert berth.running()


def test_a_changed_rule_frees_those_it_held(berth):
    berth.cli("set", "max_concurrent=1", check=0)
    [first, second] = berth.submit([long_job(), job("true")])
    assert kind_of_wait(berth, second) == "max_concurrent"
    (berth.dir / "berth.yaml").write_text("max_concurrent: 2\n")
    eventually(lambda: "event=settings_read" in berth.log_text(), "the file is read")
    assert rules(berth)["max_concurrent"] == ("1", "this run"), "which is closer"
    berth.cli("set", "--unset", "max_concurrent", check=0)
    assert berth.wait_one(second)["state"] == "succeeded"
    berth.kill_jobs([first])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["set", "3", "order=random"], "can be set for the instance or a batch only"),
        (["set", "--queue", "q", "order=random"], "can be set for the instance or a batch only"),
        (["set", "--batch", "99", "order=random"], "batch 99 has no jobs"),
        (["set", "--queue", "nobody"], "there is no queue 'nobody'"),
        (["set", "99", "gpu_left"], "there is no job 99; `berth ls --all` lists them"),
        (["set", "--unset", "gpu_leftt"], "did you mean 'gpu_left'?"),
        (["add", "--rule", "gpu_leftt=1", "true"], "did you mean 'gpu_left'?"),
        (["add", "--rule", "gpu_left", "true"], "KEY=VALUE"),
        (["add", "--at", "soon", "true"], "'soon' is not a time"),
        (["add", "--at", "12:30", "--in", "1h", "true"], "excludes"),
        (["add", "--after", "1", "--after-any", "1", "true"], "one kind of dependency"),
        (["add", "--at", "2020-01-01 00:00", "true"], "'2020-01-01 00:00' has passed"),
        (["add", "--in", "99999999999d", "true"], "3650d are the most"),
        (["add", "--resource", "lic=2", "true"], "`berth set resources.lic=N`"),
        (["set", "min_free_memory=50%"], "or give `auto`"),
        (["token", "add", "x", "--expires", "0s"], "never"),
        (["pause", "--instance", "--gpu", "0"], "give ids"),
        (["show", "@"], "there are no jobs yet"),
    ],
)
def test_mistakes_are_refused_and_explained(berth, words, says):
    done = berth.cli(*words)
    assert done.returncode != 0 and says in done.stderr, done


@pytest.mark.parametrize("rule", ["gpu_left=x", "gpu_leftt=1", "gpus=5-2", "strategy=clever"])
@pytest.mark.parametrize("command", [["set"], ["set", "--queue", "q"], ["add", "--rule"]])
def test_a_wrong_rule_is_wrong_usage_wherever_it_stands(berth, command, rule):
    command = [*command, rule, *(["true"] if command[0] == "add" else [])]
    assert berth.cli(*command, check=2).stderr.startswith("berth: ")
    assert berth.cli("set", "gpus", check=0).stdout == "all\n"


# --- job files and the command line ---------------------------------------------------------------


def test_a_job_file_gives_rules_to_batch_queue_and_jobs(berth, tmp_path):
    file = tmp_path / "jobs.yaml"
    file.write_text(
        "version: 1\n"
        "rules: {order: random, seed: 3, max_utilization: 25%}\n"
        "queues: {car: {limit: 1, gpu_left: 1}}\n"
        "defaults: {queue: car, gpus: 0}\n"
        "jobs:\n"
        "  - {name: first, run: sleep 600}\n"
        "  - {name: second, run: 'true', foreign: {policy: share}, rules: {gpus: '0,1'}}\n"
    )
    ids = json.loads(berth.cli("run", "--detach", "--json", file, check=0).stdout)["ids"]
    own = rules(berth, ids[1])
    assert own["gpu_left"] == ("1", "queue car")
    assert own["foreign.policy"] == ("share", f"job {ids[1]}")
    assert own["gpus"] == ("0,1", f"job {ids[1]}")
    assert own["max_utilization"][0] == "25" and own["max_utilization"][1].startswith("batch ")
    shown = berth.cli("show", ids[1], check=0).stdout
    assert "foreign.policy=share" in shown


def test_rules_of_added_jobs(berth):
    berth.cli("set", "queue.s.limit=1", check=0)
    berth.cli("add", "--queue", "s", "--gpus", "0", "sleep", "600", check=0)
    added = berth.cli("add", "--queue", "s", "--gpus", "0", "--rule", "gpu_left=1", "--rule",
                      "foreign.policy=wait", "true", check=0)
    own = rules(berth, added.stdout.strip())
    assert own["gpu_left"][0] == "1" and own["foreign.policy"][0] == "wait"


def test_allowed_cards_are_a_rule(gpu_berth):
    [only] = gpu_berth.submit(job("true", gpus=1, rules={"gpus": "1"}))
    assert gpu_berth.wait_one(only)["gpu_indices"] == [1]


# --- delayed starts -------------------------------------------------------------------------------


def test_allowed_cards_that_are_not_there_are_told_of(gpu_berth):
    berth = gpu_berth
    first = berth.submit_one("sleep 300", gpus=1)  # now the cards have been looked at
    berth.wait_started(first)
    words = "the rule gpus names 7, 9, which are not there"
    said = berth.cli("set", "gpus=1,7,9", check=0)
    assert "gpus = 1,7,9" in said.stdout and words in said.stderr, said
    assert words in berth.cli("set", check=0).stderr
    assert words in berth.cli("status", check=0).stdout
    assert words in berth.cli("doctor").stdout
    # The others are used all the same.
    second = berth.submit_one("sleep 300", gpus=1)
    berth.wait_started(second)
    assert berth.show(second)["job"]["gpu_indices"] == [1]
    assert words not in berth.cli("set", "gpus=all", check=0).stderr
    third = berth.submit_one("true", gpus=1, rules={"gpus": "5"})
    assert "the rule gpus names 5, which is not there" in berth.cli("set", third, check=0).stderr
    assert "the rules leave it no card: gpus=5 (5 not there)" in berth.why(third)


def test_a_delayed_job_waits_for_its_time_and_then_runs(berth):
    late = berth.cli("add", "--gpus", "0", "--in", "3s", "true", check=0).stdout.strip()
    begun = berth.api("GET", f"/api/jobs/{late}")["job"]["submitted_at"]
    ended = berth.wait_one(int(late))
    assert ended["state"] == "succeeded" and ended["started_at"] >= begun + 2900


def test_a_delay_survives_the_daemon(berth):
    wall = int(time.time() * 1000) + 3600_000
    [far, near] = berth.submit([job("true", start_at=wall), job("true")])
    berth.wait_one(near)
    assert kind_of_wait(berth, far) == "delayed"
    berth.kill9()
    berth.start()
    assert kind_of_wait(berth, far) == "delayed"
    assert berth.show(far)["start_at"] == wall
    assert "not before" in berth.cli("show", far, check=0).stdout


def test_a_time_of_day(berth):
    added = berth.cli("add", "--gpus", "0", "--at", "2099-01-01 12:30", "true", check=0)
    assert kind_of_wait(berth, int(added.stdout)) == "delayed"


# --- dependencies ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "after_good", "after_bad"),
    [
        ("--after", "succeeded", "cancelled"),
        ("--after-any", "succeeded", "succeeded"),
        ("--after-failed", "cancelled", "succeeded"),
    ],
)
def test_kinds_of_dependencies(berth, tmp_path, option, after_good, after_bad):
    gate = tmp_path / "gate"
    wait = f"while [ ! -e {gate} ]; do sleep 0.02; done"
    [good, bad] = berth.submit([job(wait), job(f"{wait}; exit 3")])
    follow = [
        int(berth.cli("add", "--gpus", "0", option, before, "true", check=0).stdout)
        for before in (good, bad)
    ]
    assert kind_of_wait(berth, follow[0]) == "dependency"
    berth.kill9()
    berth.start()
    gate.touch()
    ended = berth.wait(follow)
    assert [ended[f]["state"] for f in follow] == [after_good, after_bad]
    # Those that have ended already count the same.
    late = [berth.cli("add", "--gpus", "0", option, before, "true") for before in (good, bad)]
    for added, state in zip(late, (after_good, after_bad)):
        if added.returncode == 0:
            assert berth.wait_one(int(added.stdout))["state"] == state
        else:
            assert state == "cancelled", added


def test_the_last_jobs_have_short_names(berth):
    ids = berth.submit([job("true", name=f"n{i}") for i in range(4)])
    berth.wait(ids)
    assert json.loads(berth.cli("show", "@", "--json", check=0).stdout)["job"]["id"] == ids[3]
    assert json.loads(berth.cli("show", "@~2", "--json", check=0).stdout)["job"]["id"] == ids[1]
    listed = json.loads(berth.cli("ls", "@~2-@", "--json", check=0).stdout)
    assert sorted(j["id"] for j in listed) == ids[1:]
    added = berth.cli("add", "--gpus", "0", "--after", "@", "true", check=0).stdout.strip()
    assert berth.show(int(added))["after"] == [ids[3]]
    beyond = berth.cli("show", "@~99")
    assert beyond.returncode != 0 and "there is no job @~99; you have submitted 5" in beyond.stderr


# --- draining -------------------------------------------------------------------------------------


def test_a_paused_instance_starts_nothing_until_it_is_resumed(berth):
    said = berth.cli("pause", "--instance", check=0).stdout
    assert said == "berth is paused and starts nothing; what runs goes on\n"
    waiting = berth.submit_one("true")
    assert kind_of_wait(berth, waiting) == "instance_paused"
    assert "berth resume --instance" in berth.cli("why", waiting, check=0).stdout
    berth.kill9()
    berth.start()
    assert kind_of_wait(berth, waiting) == "instance_paused"
    assert "berth resume --instance" in berth.cli("status", check=0).stdout
    berth.cli("resume", "--instance", check=0)
    assert berth.wait_one(waiting)["state"] == "succeeded"


def test_a_drained_card_is_not_used(gpu_berth):
    berth = gpu_berth
    said = berth.cli("pause", "--gpu", "0", "--why", "fan replaced on Monday", check=0).stdout
    assert said == "nothing more starts on GPU 0; what runs there goes on\n"
    ids = berth.submit([job("sleep 600", gpus=1), job("true", gpus=1)])
    assert berth.wait_started(ids[0])
    assert berth.show(ids[0])["job"]["gpu_indices"] == [1]
    eventually(
        lambda: "fan replaced on Monday" in berth.why(ids[1]), "the reason is told"
    )
    berth.kill9()
    berth.start()
    card = eventually(
        lambda: [g for g in berth.api("GET", "/api/gpus")["gpus"] if g["index"] == 0], "it is seen"
    )[0]
    assert card["state"] == "drained" and "fan replaced on Monday" in card["trouble"]
    berth.cli("resume", "--gpu", "0", check=0)
    assert berth.wait_one(ids[1])["gpu_indices"] == [0]
    unknown = berth.cli("pause", "--gpu", "7")
    assert unknown.returncode == 1 and "there is no GPU '7'" in unknown.stderr
