"""The examples, run as the README says, in a fresh instance that nobody has started."""

import collections
import json
import re
import shutil

import pytest

from berthlib import PATIENCE, REPO

EXAMPLES = REPO / "examples"


@pytest.fixture
def fresh(make_instance):
    """Nothing there yet; the first `berth` starts the daemon."""
    return make_instance(gpus="sim:4x24GiB")


def ended_jobs(berth):
    return json.loads(berth.cli("ls", "--all", "--json", check=0).stdout)


@pytest.mark.smoke
def test_the_quickstart_runs_eight_experiments_over_four_cards(fresh):
    done = fresh.cli("run", EXAMPLES / "quickstart.yaml", timeout=4 * PATIENCE)
    assert done.returncode == 0, done
    assert "the 4 GPUs here are simulated" in done.stdout
    assert "8 jobs, 1-8" in done.stdout and done.stdout.endswith("8 of 8 succeeded\n")
    # Progress as lines, for there is no terminal: where each began, and that it ended.
    started = dict(re.findall(r"job (\d+) train-\S+ started on GPU (\d)$", done.stdout, re.M))
    assert sorted(map(int, started)) == list(range(1, 9)) and set(started.values()) == set("0123")
    assert len(re.findall(r"job \d train-\S+ succeeded$", done.stdout, re.M)) == 8
    # The summary: a header and eight rows, each with its exit code.
    table = done.stdout[done.stdout.index("ID  NAME") :].splitlines()
    assert len(table) == 10 and all(row.split()[-1] == "0" for row in table[1:9])

    jobs = ended_jobs(fresh)
    assert [j["name"] for j in jobs[:3]] == ["train-0.1-1", "train-0.1-2", "train-0.03-1"]
    assert {(j["state"], j["exit_code"], j["attempts"]) for j in jobs} == {("succeeded", 0, 1)}
    assert "lr=0.03 seed=2" in fresh.cli("log", 4, check=0).stdout

    # Ten of 24 GiB were asked for, so two fit on a card, and did at the same time.
    by_card = collections.defaultdict(list)
    for job in jobs:
        [card] = job["gpu_indices"]
        by_card[card].append((job["started_at"], job["ended_at"]))
    overlaps = [
        max(a[0], b[0]) < min(a[1], b[1])
        for spans in by_card.values()
        for i, a in enumerate(spans)
        for b in spans[i + 1 :]
    ]
    assert any(overlaps), by_card
    for spans in by_card.values():
        for moment, _ in spans:
            assert sum(begin <= moment < end for begin, end in spans) <= 2, spans


def test_the_pipeline_runs_in_its_order(fresh):
    done = fresh.cli("run", EXAMPLES / "pipeline.yaml", timeout=4 * PATIENCE)
    assert done.returncode == 0, done
    assert done.stdout.endswith("8 of 8 succeeded\n")
    jobs = {j["name"]: j for j in ended_jobs(fresh)}
    training = [j for name, j in jobs.items() if name.startswith("train-")]
    evaluation = [jobs["evaluate-0.1"], jobs["evaluate-0.01"]]
    assert len(training) == 4
    assert all(jobs["prepare"]["ended_at"] <= j["started_at"] for j in training)
    for lr, evaluated in zip(("0.1", "0.01"), evaluation):
        for seed in (1, 2):
            assert jobs[f"train-{lr}-{seed}"]["ended_at"] <= evaluated["started_at"]
    # A queue of one at a time, and two licences for four trainings.
    first, second = sorted(evaluation, key=lambda j: j["started_at"])
    assert first["ended_at"] <= second["started_at"]
    for j in training:
        moment = j["started_at"]
        assert sum(o["started_at"] <= moment < o["ended_at"] for o in training) <= 2
    assert jobs["report"]["started_at"] >= max(j["ended_at"] for j in evaluation)
    report = fresh.cli("log", jobs["report"]["id"], check=0).stdout
    assert report == "all evaluations are done\n"


@pytest.mark.smoke
def test_a_file_of_which_a_job_fails_exits_with_1(fresh, tmp_path):
    file = tmp_path / "sweep.yaml"
    file.write_text(
        "version: 1\n"
        "defaults: {gpus: 0}\n"
        "jobs:\n"
        "  - {name: good, run: 'true'}\n"
        "  - {name: bad, run: exit 3, retries: 1}\n"
        "  - {name: late, run: 'true', after: bad}\n"
    )
    done = fresh.cli("run", file, timeout=2 * PATIENCE)
    assert done.returncode == 1, done
    assert done.stdout.endswith("1 of 3 succeeded\n")
    bad = next(row for row in done.stdout.splitlines() if re.match(r" *2  bad ", row))
    assert bad.split()[2:3] == ["failed"] and "exited with code 3" in bad
    assert [(j["state"], j["attempts"]) for j in ended_jobs(fresh)] == [
        ("succeeded", 1),
        ("failed", 2),
        ("cancelled", 0),
    ]


def test_the_examples_run_from_anywhere(fresh, tmp_path):
    """Paths in a job file begin at the file, not at whoever submits it."""
    copy = tmp_path / "elsewhere"
    shutil.copytree(EXAMPLES, copy)
    done = fresh.cli("run", "--detach", copy / "quickstart.yaml", check=0, cwd="/")
    assert "8 jobs" in done.stdout
    assert fresh.cli("wait", "--all", timeout=4 * PATIENCE).returncode == 0
    assert {j["cwd"] for j in ended_jobs(fresh)} == {str(copy)}
