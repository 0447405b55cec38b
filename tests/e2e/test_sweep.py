"""berth sweep, and the same in job files: which jobs there are, and that they run."""

import json
import re

import pytest

from berthlib import PATIENCE

COMMAND = ("--", "sh", "-c", "echo lr={lr} seed={seed}")


def fails(berth, *words, says, code=1, **run):
    done = berth.cli("sweep", *words, **run)
    assert done.returncode == code and done.stdout == "", done
    assert says in done.stderr, done


@pytest.mark.smoke
def test_dry_run_shows_the_table_and_starts_nothing(make_instance, tmp_path):
    berth = make_instance()  # whose daemon does not run
    done = berth.cli(
        "sweep", "--dry-run", "--name", "train", "--grid", "lr=1e-3,1e-4", "--grid", "seed=1..3",
        *COMMAND, check=0, cwd=tmp_path,
    )
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["NAME", "lr", "seed", "COMMAND"]
    assert re.fullmatch(r"train-1e-3-1 +1e-3 +1 +sh -c 'echo lr=1e-3 seed=1'", lines[1])
    assert [line.split()[0] for line in lines[1:7]] == [
        f"train-{lr}-{seed}" for lr in ("1e-3", "1e-4") for seed in (1, 2, 3)
    ]
    assert lines[7] == "6 jobs; nothing was submitted" and done.stderr == ""
    assert not (berth.dir / "sock").exists(), "it needs no daemon"


def test_all_kinds_of_values_make_the_same_jobs_as_a_job_file(make_instance, tmp_path):
    berth = make_instance()
    (tmp_path / "p.csv").write_text('model,note\nsmall,"a, b"\nlarge,\n')
    done = berth.cli(
        "sweep", "--dry-run", "--json", "--gpus", "2", "--retries", "1", "--log", "o/{lr}-{m}.log",
        "--csv", "p.csv", "--grid", "lr=log(1e-4, 1e-2, 3)", "--grid", "x=linear(0, 1, 3)",
        "--zip", "m=a,b", "--zip", "n=1..2", "--env", "M={m}",
        "--", "run", "{model}", "{note}", "{lr}", "{x}", "{m}", "{n}", "{gpu_list}",
        check=0, cwd=tmp_path,
    )
    (tmp_path / "job.yaml").write_text(
        """
version: 1
name: sweep
jobs:
  - name: sweep
    matrix:
      csv: p.csv
      lr: log(1e-4, 1e-2, 3)
      x: linear(0, 1, 3)
      zip: {m: [a, b], n: 1..2}
    gpus: 2
    retries: 1
    log: o/{lr}-{m}.log
    env: {M: "{m}"}
    run: [[run, "{model}", "{note}", "{lr}", "{x}", "{m}", "{n}", "{gpu_list}"]]
"""
    )
    file = berth.cli("check", "--json", "job.yaml", check=0, cwd=tmp_path)
    assert json.loads(done.stdout) == json.loads(file.stdout)
    jobs = json.loads(done.stdout)["jobs"]
    assert len(jobs) == 2 * 3 * 3 * 2
    assert jobs[1]["params"] == {
        "model": "small", "note": "a, b", "lr": "0.0001", "x": "0", "m": "b", "n": "2",
    }
    assert jobs[1]["run"] == [["run", "small", "a, b", "0.0001", "0", "b", "2", "{gpu_list}"]]
    assert "more than one job writes" in done.stderr


def test_runs_to_the_end_on_gpus(gpu_berth, tmp_path):
    done = gpu_berth.cli(
        "sweep", "--name", "s", "--gpu-memory", "4GiB", "--grid", "lr=1,2", "--grid", "seed=7",
        "--list", "lr=3 seed=4", "--log", "{lr}.txt", *COMMAND,
        check=0, cwd=tmp_path, timeout=3 * PATIENCE,
    )
    assert "submitted s: 3 jobs, 1-3" in done.stdout and "3 of 3 succeeded" in done.stdout, done
    assert [(tmp_path / f"{lr}.txt").read_text() for lr in (1, 2, 3)] == [
        "lr=1 seed=7\n", "lr=2 seed=7\n", "lr=3 seed=4\n",
    ]
    detached = gpu_berth.cli(
        "sweep", "--detach", "--json", "--grid", "lr=1,2", "--grid", "seed=1", *COMMAND,
        check=0, cwd=tmp_path,
    )
    first = json.loads(detached.stdout)["ids"][0]
    assert [job["name"] for job in gpu_berth.wait([first, first + 1]).values()] == ["sweep-1-1", "sweep-2-1"]


def test_what_is_wrong_is_named(make_instance, tmp_path):
    berth = make_instance()
    here = {"cwd": tmp_path}
    fails(berth, "--grid", "lr=1", "--grid", "seed=1", "--", "run", "{lr}", "{sed}",
          says="nothing fills '{sed}'; did you mean '{seed}'?", **here)
    fails(berth, "--grid", "seed=1..x", "--", "run", "{seed}",
          says="--grid seed=1..x: '1..x' is not a range", **here)
    fails(berth, "--grid", "seed", "--", "run", says="is not AXIS=VALUES", **here)
    fails(berth, "--zip", "a=1,2", "--zip", "b=1", "--", "run", "{a}{b}",
          says="'a' has 2 and 'b' has 1", **here)
    fails(berth, "--", "run", says="there is nothing to sweep over", **here)
    fails(berth, "--grid", "a=1", says="no command given", code=2, **here)
    fails(berth, "--csv", "none.csv", "--", "run", says="cannot read the table 'none.csv'", **here)
    (tmp_path / "p.csv").write_text("a,b\n1,2\n3\n")
    fails(berth, "--csv", "p.csv", "--", "run", "{a}",
          says="p.csv:3:1: this row has 1 field and the header 2", **here)
    (tmp_path / "job.yaml").write_text("version: 1\njobs: [{run: x, matrix: {csv: p.csv}}]\n")
    told = berth.cli("check", "job.yaml", **here)
    assert told.returncode == 1
    assert f"{tmp_path}/p.csv:3:1: this row has 1 field and the header 2\n  3 | 3\n" in told.stderr
    assert not (berth.dir / "sock").exists(), "it needs no daemon"


def test_an_axis_that_changes_nothing_is_a_warning(make_instance, tmp_path):
    done = make_instance().cli(
        "sweep", "--dry-run", "--grid", "a=1,2", "--", "run", check=0, cwd=tmp_path)
    assert "axis 'a' stands nowhere in the command" in done.stderr


def test_values_are_what_they_are_in_a_shell_line(berth, tmp_path):
    """Blanks, quotes and dollars of a value are its own, wherever it stands in the command."""
    done = berth.cli(
        "sweep", "--gpus", "0", "--log", "{n}.txt", "--zip", "n=1..3", "--zip", "s=a b,it's,$HOME",
        "--", "echo {s} '{s}' \"{s}\" x={n} | cat", check=0, cwd=tmp_path, timeout=3 * PATIENCE)
    assert "3 of 3 succeeded" in done.stdout
    for n, value in enumerate(("a b", "it's", "$HOME"), 1):
        assert (tmp_path / f"{n}.txt").read_text() == f"{value} {value} {value} x={n}\n"
    (tmp_path / "job.yaml").write_text(
        'version: 1\njobs:\n  - gpus: 0\n    matrix: {note: ["a b", "it\'s", "$HOME"], lr: [1e-3]}\n'
        "    run: echo {note} --lr {lr}\n")
    shown = berth.cli("check", "--json", "job.yaml", cwd=tmp_path, check=0).stdout
    assert [command for command in ("echo 'a b' --lr 1e-3", "echo '$HOME' --lr 1e-3")
            if command not in shown] == [], shown
