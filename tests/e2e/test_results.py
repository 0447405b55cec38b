"""berth results: real runs, their logs, files and reports, in every format."""

import csv
import io
import json
import pathlib
import re

import pytest

from berthlib import REPO, eventually, job

SWEEP = """
version: 1
defaults: {gpus: 0}
jobs:
  - name: "{algorithm}-{lr}-{seed}"
    matrix:
      algorithm: [fedavg, fedprox]
      lr: ["0.1", "0.01"]
      seed: [1, 2, 3]
    run: python3 train.py {algorithm} {lr} {seed}
"""

TRAIN = """
import json, os, sys
algorithm, lr, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
if (algorithm, lr, seed) == ("fedprox", 0.01, 2):
    print("acc: 0.01")
    sys.exit("diverged")
acc = (0.90 if algorithm == "fedavg" else 0.80) + (0.05 if lr == 0.1 else 0) + seed / 100
for epoch in 1, 2, 3:
    print(f"Epoch {epoch}/3 - loss: {1 / epoch:.4f} - acc: {acc * epoch / 3:.4f}")
os.makedirs(f"out/{sys.argv[1]}-{sys.argv[2]}-{seed}", exist_ok=True)
with open(f"out/{sys.argv[1]}-{sys.argv[2]}-{seed}/metrics.json", "w") as file:
    json.dump({"test": {"f1": acc / 2}}, file)
"""


@pytest.fixture
def sweep(berth, tmp_path):
    """Twelve runs, of which one fails; where they ran."""
    here = tmp_path / "experiment"
    here.mkdir()
    (here / "train.py").write_text(TRAIN)
    (here / "sweep.yaml").write_text(SWEEP)
    done = berth.cli("run", "sweep.yaml", cwd=here)
    assert "11 of 12 succeeded" in done.stdout, done
    return here


def groups(berth, *words, cwd=None):
    found = json.loads(berth.cli("results", *words, "--json", check=0, cwd=cwd).stdout)
    return {tuple(g["params"].values()): g for g in found["groups"]}, found


def test_a_sweep_becomes_mean_and_deviation_over_seeds(berth, sweep):
    by, found = groups(berth, "--best", "max:acc")
    assert found["by"] == ["algorithm", "lr"] and len(by) == 4
    acc = by["fedavg", "0.1"]["metrics"]["acc"]
    assert acc["n"] == 3 and acc["missing"] == 0
    assert acc["mean"] == pytest.approx(0.97) and acc["std"] == pytest.approx(0.01)
    assert acc["min"] == pytest.approx(0.96) and acc["max"] == pytest.approx(0.98)
    # What failed is counted as such, and its number is not.
    failed = by["fedprox", "0.01"]
    assert failed["failed"] == 1 and failed["metrics"]["acc"]["n"] == 2
    assert failed["metrics"]["acc"]["mean"] == pytest.approx(0.82)
    best = found["best"]
    assert found["groups"][best["group"]]["params"] == {"algorithm": "fedavg", "lr": "0.1"}
    assert berth.show(best["job"])["job"]["name"] == "fedavg-0.1-3"
    # Otherwise grouped, otherwise taken.
    by, _ = groups(berth, "--by", "algorithm", "--metric", "acc", "--take", "first")
    assert by["fedavg",]["runs"] == 6 and list(by["fedavg",]["metrics"]) == ["acc"]
    assert by["fedavg",]["metrics"]["acc"]["max"] < 0.4
    by, _ = groups(berth, "--by", "algorithm", "--over", "seed,lr", "--partial")
    assert by["fedprox",]["metrics"]["acc"]["n"] == 6


def test_every_format_tells_the_same(berth, sweep):
    shown = berth.cli("results", "--best", "acc", "--metric", "acc", check=0).stdout
    assert re.search(r"fedavg +0\.1 +acc +0\.970 ± 0\.010 +0\.96 +0\.98 +3 +3 +0 +0", shown), shown
    assert "best acc (highest mean): algorithm=fedavg lr=0.1: 0.970 ± 0.010 (n=3)" in shown
    assert re.search(r"1 of 12 runs failed: job \d+", shown)
    markdown = berth.cli("results", "--wide", "--format", "markdown", "--metric", "acc", check=0)
    assert "| fedavg    | 0.1  | 0.970 ± 0.010 |" in markdown.stdout, markdown.stdout
    latex = berth.cli("results", "--format", "latex", "-o", sweep / "table.tex", check=0)
    assert latex.stdout == ""
    assert r"fedavg & 0.1 & acc & 0.970 $\pm$ 0.010" in (sweep / "table.tex").read_text()
    rows = list(csv.DictReader(io.StringIO(
        berth.cli("results", "--format", "csv", "--best", "max:acc", check=0).stdout)))
    [best] = [r for r in rows if r["best"] == "1"]
    assert (best["algorithm"], best["lr"], best["n"]) == ("fedavg", "0.1", "3")
    assert float(best["mean"]) == pytest.approx(0.97)


def test_files_of_runs_and_patterns(berth, sweep):
    by, _ = groups(berth, "--file", "out/{name}/metrics.json", "--metric", "test.f1")
    assert by["fedavg", "0.1"]["metrics"]["test.f1"]["mean"] == pytest.approx(0.485)
    by, _ = groups(berth, "--metric", r"third=Epoch 3/3 - loss: ([0-9.]+)")
    assert by["fedavg", "0.1"]["metrics"]["third"]["mean"] == pytest.approx(0.3333)
    wrong = berth.cli("results", "--file", "out/{nome}.json", check=1)
    assert "{nome} is not known" in wrong.stderr and "{algorithm}" in wrong.stderr
    wrong = berth.cli("results", "--metric", "acc=(", check=2)
    assert "the ) is missing" in wrong.stderr
    wrong = berth.cli("results", "--best", "max:speed", check=1)
    assert "no run tells of 'speed'" in wrong.stderr


def test_experiments_of_a_file_that_never_ran_are_missing(berth, sweep):
    (sweep / "more.yaml").write_text(SWEEP.replace('"0.01"]', '"0.01", "1"]'))
    by, _ = groups(berth, "more.yaml", "--metric", "acc", cwd=sweep)
    assert len(by) == 6
    assert by["fedavg", "0.1"]["metrics"]["acc"]["n"] == 3
    never = by["fedavg", "1"]
    assert never["runs"] == 3 and never["failed"] == 0
    assert never["metrics"]["acc"] == {
        "n": 0, "mean": None, "std": None, "min": None, "max": None, "missing": 3}
    shown = berth.cli("results", "more.yaml", "--metric", "acc", check=0, cwd=sweep).stdout
    assert "6 of 18 runs were never submitted" in shown
    assert re.search(r"fedavg +1 +acc +- +- +- +0 +3 +0 +3\n", shown), shown


def test_the_experiments_of_a_folder_are_known_whatever_command_runs_them(make_instance, tmp_path):
    """The command of a FedWhat file depends on options of its run; and two folders may hold the same file."""
    berth = make_instance(gpus="sim:2x24GiB")
    berth.start()
    text = "jobs:\n" + "".join(
        f"  - {{name: A{seed}, config: x.yaml, algorithm: A, extra_args: {{seed: {seed}}}}}\n" for seed in (1, 2))
    folders = {"one": 0.25, "two": 0.5}
    for name, value in folders.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.yaml").write_text("seed: 0\n")
        (tmp_path / name / "jobs.yaml").write_text(text)
        (tmp_path / name / "value").write_text(f"accuracy: {value}\n")
        berth.cli("run", "--template", "cat value {config} # {extra_args}", "jobs.yaml", check=0, cwd=tmp_path / name)

    def told(name):
        shown = json.loads(berth.cli("results", "jobs.yaml", "--json", check=0, cwd=tmp_path / name).stdout)
        [group] = shown["groups"]
        return group["metrics"]["accuracy"]

    for name, value in folders.items():
        assert (told(name)["n"], told(name)["mean"]) == (2, value)
    # The newest run counts, however it was called.
    (tmp_path / "one" / "value").write_text("accuracy: 0.75\n")
    berth.cli("run", "--redo", "--seed-in-config", "--template", "cat {config} value # {extra_args}", "jobs.yaml",
              check=0, cwd=tmp_path / "one")
    assert told("one")["mean"] == 0.75 and told("two")["mean"] == 0.5


def test_a_path_that_leads_nowhere_is_told(berth, sweep):
    told = berth.cli("results", "--file", "gone/{name}.json", check=0).stderr
    assert "--file gone/{name}.json: no run has such a file" in told
    assert "is written by --html FILE" in berth.cli("results", "--format", "html", check=2).stderr


def test_the_report_needs_nothing_but_itself(berth, sweep):
    report = sweep / "report.html"
    berth.cli("results", "--html", report, "--title", "A <b>sweep</b>", check=0)
    text = report.read_text()
    assert "A &lt;b&gt;sweep&lt;/b&gt;" in text and "<b>" not in text
    assert text.count("<svg") == 4, "bars and curves, of accuracy and loss"
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"https?:|<script|<link|<img|url\(|src=", text)


def test_reports_of_the_job_go_before_its_log(berth):
    lines = [{"metrics": {"acc": 0.5}, "step": 1}, {"metrics": {"acc": 0.75}, "step": 2}]
    text = "\n".join(json.dumps(line) for line in lines)
    [told] = berth.submit([job("echo acc: 0.1 loss: 0.5")])
    berth.wait_one(told)
    log = pathlib.Path(berth.show(told)["attempts"][0]["log"])
    log.with_suffix(".report").write_text(text + "\n")
    by, _ = groups(berth, str(told))
    [group] = by.values()
    assert group["metrics"]["acc"]["mean"] == 0.75
    assert group["metrics"]["loss"]["mean"] == 0.5


def test_logs_of_the_usual_libraries_need_no_pattern(berth):
    logs = REPO / "tests" / "fixtures" / "logs"
    names = ["plain", "lightning", "huggingface", "keras"]
    ids = berth.submit([job(argv=["cat", str(logs / f"{n}.log")], name=n) for n in names])
    berth.wait(ids)
    by, found = groups(berth, f"{ids[0]}-{ids[-1]}")
    assert found["by"] == ["name"]
    wanted = {"plain": ("best_test_accuracy", 68.41), "lightning": ("test_acc", 0.6871000528335571),
              "huggingface": ("eval_accuracy", 0.8554), "keras": ("val_accuracy", 0.9611)}
    for name, (metric, value) in wanted.items():
        by, _ = groups(berth, f"{ids[0]}-{ids[-1]}", "--metric", metric)
        assert by[name,]["metrics"][metric]["mean"] == value, name


def test_a_run_that_tells_nothing_is_said_to(berth):
    silent = berth.submit_one("echo hello")
    berth.wait_one(silent)
    done = berth.cli("results", silent, check=1)
    assert "1 run tells no metric; tell where to look: --metric" in done.stderr
    running = berth.submit_one("echo acc: 0.5; sleep 1000")
    berth.wait_started(running)
    eventually(lambda: "0.5" in berth.cli("log", running).stdout, "it has written")
    shown = berth.cli("results", running, check=0).stdout
    assert "1 of 1 runs have not ended" in shown
    assert re.search(r"acc +- +- +- +0 +1 +0 +1\n", shown), shown
    assert re.search(r"acc +0\.5 ", berth.cli("results", running, "--partial", check=0).stdout)
    berth.kill_jobs([running])
    assert "there are no jobs" in berth.cli("results", 999, check=1).stderr
    assert "give ids, job files or --batch" in berth.cli("results", 1, "x.yaml", check=2).stderr
