"""FedWhat job files: run as they are, thresholds, seeds, and a second run that leaves out what is done."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from berthlib import PATIENCE, REPO, eventually, kill_process

EXAMPLE = REPO / "examples" / "fedwhat"

PROGRAM = """
import os, sys
words = sys.argv[1:]
with open(words[words.index("--cfp") + 1]) as config:
    print("words", words, "config", config.read().split(), "in", os.getcwd(), flush=True)
fail = os.path.exists("fail-" + words[words.index("--algo") + 1])
sys.exit(3 if fail else 0)
"""


def job(name, algorithm=None, **extra):
    text = f"  - name: {name}\n    config: configs/x.yaml\n    algorithm: {algorithm or name}\n"
    text += f"    log_path: logs/deep/{name}.log\n"
    return text + (f"    extra_args: {json.dumps(extra)}\n" if extra else "")


@pytest.fixture
def project(tmp_path):
    """A folder with a program, a config and links to berth and Python."""
    folder = tmp_path / "project"
    (folder / "configs").mkdir(parents=True)
    (folder / "configs" / "x.yaml").write_text("dataset: cifar # ten\nseed: 0\n")
    (folder / "test.py").write_text(PROGRAM)
    return folder


@pytest.fixture
def links(tmp_path):
    """Makes a PATH that has `python`, `berth` and `gpu_scheduler`."""

    def make(berth):
        bin_dir = tmp_path / "links"
        bin_dir.mkdir(exist_ok=True)
        for name, target in (("python", sys.executable), ("berth", berth.bin_dir / "berth"),
                             ("gpu_scheduler", berth.bin_dir / "berth")):
            if not (bin_dir / name).exists():
                (bin_dir / name).symlink_to(target)
        return {"PATH": f"{bin_dir}:{os.environ.get('PATH', '/usr/bin:/bin')}"}

    return make


@pytest.fixture
def scheduler(project, links):
    """Runs `gpu_scheduler --job-file`, of a text, on an instance."""

    def run(berth, text, *words, check=0):
        (project / "jobs_x.yaml").write_text(text)
        done = subprocess.run(
            [shutil.which("gpu_scheduler", path=links(berth)["PATH"]), "--job-file", "jobs_x.yaml", *words],
            cwd=project,
            env=berth.environment(links(berth)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=4 * PATIENCE,
        )
        assert check is None or done.returncode == check, done
        return done

    return run


@pytest.fixture
def one_card(make_instance):
    instance = make_instance(gpus="sim:1x24GiB")
    instance.start()
    return instance


@contextlib.contextmanager
def somebody_on(berth, gpu, memory, util):
    """A process outside berth that holds memory on a card and keeps it busy."""
    process = subprocess.Popen(
        [str(berth.bin_dir / "berth-simgpu"), "hold", str(gpu), "--memory", memory, "--util", str(util)],
        env={"PATH": "/usr/bin:/bin", "BERTH_SIM_DIR": str(berth.dir / "simgpu")},
        stdout=subprocess.DEVNULL,
    )
    try:
        eventually(
            lambda: any(p["pid"] == process.pid for p in berth.api("GET", "/api/gpus")["gpus"][gpu]["processes"] or []),
            "the stranger is seen",
        )
        yield
    finally:
        kill_process(process.pid)
        process.wait()


def started(done):
    """The names of the jobs that one run started, in this order."""
    return re.findall(r"job \d+ (\S+) started", done.stdout)


@pytest.mark.smoke
def test_experiments_run_in_the_order_of_the_file_and_write_their_logs(one_card, project, scheduler):
    text = "jobs:\n" + job("C") + job("A", lr="a b") + job("B", algorithm="FedAvg", amp=True)
    done = scheduler(one_card, text, "--min-memory", "8000", "--max-util", "30")
    assert done.stdout.endswith("3 of 3 succeeded\n")
    assert started(done) == ["C", "A", "B"]
    log = (project / "logs" / "deep" / "A.log").read_text()
    assert "['--cfp', 'configs/x.yaml', '--algo', 'A', '--lr', 'a b']" in log
    assert f"in {project}" in log
    assert "'FedAvg', '--amp']" in (project / "logs" / "deep" / "B.log").read_text()


def test_a_second_run_leaves_out_what_has_succeeded(one_card, project, scheduler):
    text = "jobs:\n" + job("A") + job("B") + job("C")
    (project / "fail-B").touch()
    done = scheduler(one_card, text, check=1)
    assert done.stdout.endswith("2 of 3 succeeded\n"), "one failure does not stop the others"

    done = scheduler(one_card, text, check=1)
    assert "2 of 3 have succeeded before and are left out (--redo runs them again)" in done.stdout
    assert started(done) == ["B"], "what failed runs again"
    (project / "fail-B").unlink()
    assert started(scheduler(one_card, text)) == ["B"]

    done = scheduler(one_card, text)
    assert "3 of 3 have succeeded before" in done.stdout and "nothing is left to run" in done.stdout
    assert started(done) == []

    (project / "logs" / "deep" / "A.log").unlink()
    assert started(scheduler(one_card, text)) == ["A"], "a deleted log asks for another run"
    assert started(scheduler(one_card, text, "--redo")) == ["A", "B", "C"]
    (project / "fail-C").touch()
    scheduler(one_card, text, "--redo", check=1)
    (project / "fail-C").unlink()
    assert started(scheduler(one_card, text)) == ["C"], "its log is that of a run that failed"
    assert started(scheduler(one_card, text.replace("algorithm: C", "algorithm: D"))) == ["C"]
    (project / "configs" / "x.yaml").write_text("dataset: other\n")
    assert started(scheduler(one_card, text)) == ["A", "B", "C"], "they are other experiments now"


def test_what_still_waits_is_not_added_twice(one_card, scheduler):
    text = "jobs:\n" + job("A") + job("B")
    with somebody_on(one_card, 0, "20GiB", 0):
        scheduler(one_card, text, "--detach")
        done = scheduler(one_card, text, "--detach")
        assert "2 of 2 wait or run already and are not added again" in done.stdout
        assert "nothing is left to run" in done.stdout
        assert [j["name"] for j in one_card.jobs()] == ["A", "B"]
    one_card.wait_all()


def test_an_experiment_that_waits_does_not_run_with_an_edited_config(one_card, project, scheduler):
    """What has not run with a content is not left out as done with it."""
    text = "jobs:\n" + job("A")
    config = project / "configs" / "x.yaml"
    with somebody_on(one_card, 0, "20GiB", 0):
        config.write_text("d: ONE\n")
        scheduler(one_card, text, "--detach")
        config.write_text("d: TWO\n")
    [ended] = one_card.wait_all().values()
    assert ended["state"] == "failed" and ended["failure_class"] == "cannot_start"
    assert f"{config}: its content is not what was submitted" in ended["message"]
    config.write_text("d: ONE\n")
    assert started(scheduler(one_card, text)) == ["A"]
    assert "'d:', 'ONE'" in (project / "logs" / "deep" / "A.log").read_text()
    config.write_text("d: TWO\n")
    assert started(scheduler(one_card, text)) == ["A"]
    assert "1 of 1 have succeeded before" in scheduler(one_card, text).stdout


def test_copies_for_seeds_stay_as_long_as_somebody_waits_for_them(one_card, project, scheduler):
    text = "jobs:\n" + job("A", seed=1)
    config = project / "configs" / "x.yaml"
    with somebody_on(one_card, 0, "20GiB", 0):
        scheduler(one_card, text, "--seed-in-config", "--detach")
        config.write_text("dataset: edited\n")
        scheduler(one_card, text.replace("A.log", "B.log"), "--seed-in-config", "--detach")
    ended = one_card.wait_all()
    assert [j["state"] for j in ended.values()] == ["succeeded"] * 2
    logs = project / "logs" / "deep"
    assert "'cifar'" in (logs / "A.log").read_text() and "'edited'" in (logs / "B.log").read_text()


def test_thresholds_of_memory_and_utilisation(make_instance, scheduler):
    """The picture of the document: 12 GiB free on a card that idles will do, 2 GiB or work will not."""
    berth = make_instance(gpus="sim:3x16GiB")
    berth.start()
    with (somebody_on(berth, 0, "4GiB", 20), somebody_on(berth, 1, "14GiB", 0),
          somebody_on(berth, 2, "1GiB", 90)):
        scheduler(berth, "jobs:\n" + job("A") + job("B"))
        assert [j["gpu_indices"] for j in berth.jobs()] == [[0], [0]]
        text = "jobs:\n" + job("C")
        scheduler(berth, text, "--min-memory", "13000", "--detach")
        scheduler(berth, text.replace("C", "D"), "--max-util", "10", "--detach")
        waiting = {j["name"]: j for j in berth.jobs("queued")}
        assert sorted(waiting) == ["C", "D"]
        why = eventually(lambda: berth.why(waiting["D"]["id"]), "it knows why")
        assert "20 %" in why or "20%" in why, why
    assert {j["state"] for j in berth.wait_all().values()} == {"succeeded"}


def test_a_wait_that_is_too_long_ends_the_job(one_card, scheduler):
    with somebody_on(one_card, 0, "20GiB", 0):
        done = scheduler(one_card, "jobs:\n" + job("A"), "--max-wait", "1s", check=1)
    assert "0 of 1 succeeded" in done.stdout
    [only] = one_card.jobs()
    assert only["state"] == "cancelled" and "max_wait" in only["message"]


def test_a_seed_goes_to_the_command_line_or_into_a_copy_of_the_config(one_card, project, scheduler):
    text = "jobs:\n" + job("A", seed=42) + job("B", seed=7, lr=1)
    copies = project / "configs" / "temp"
    scheduler(one_card, text)
    assert "'--seed', '42']" in (project / "logs" / "deep" / "A.log").read_text()
    assert not copies.exists()

    one_card.cli("check", "--seed-in-config", project / "jobs_x.yaml", check=0)
    assert not copies.exists(), "to check writes nothing"
    for words, head in ((("--seed-in-config",), ""), ((), "seed_in: config\n")):
        shutil.rmtree(copies, ignore_errors=True)
        done = scheduler(one_card, head + text, "--redo", *words)
        assert done.stdout.endswith("2 of 2 succeeded\n")
        log = (project / "logs" / "deep" / "B.log").read_text()
        assert re.search(r"\['--cfp', 'configs/temp/x_seed7_\w{12}.yaml', '--algo', 'B', '--lr', '1'\]", log)
        assert "'seed:', '7'" in log
        [copy, other] = sorted(copies.iterdir())
        assert copy.name.startswith("x_seed42_") and other.name.startswith("x_seed7_")
        assert copy.read_text() == "dataset: cifar # ten\nseed: 42\n"
    assert (project / "configs" / "x.yaml").read_text() == "dataset: cifar # ten\nseed: 0\n"


def test_mistakes_are_told_with_their_place(one_card, scheduler):
    told = scheduler(one_card, "jobs:\n" + job("A").replace("configs/x.yaml", "configs"), check=1).stderr
    assert "is a directory" in told, "why a config cannot be read"
    text = "jobs:\n" + job("A") + job("A") + "  - {name: Z, config: gone.yaml, algoritm: x}\n"
    done = scheduler(one_card, text, check=None)
    assert done.returncode != 0 and "nothing was submitted" in done.stderr
    assert "jobs_x.yaml:6:11: the name 'A' is taken" in done.stderr
    assert "unknown key 'algoritm'; did you mean 'algorithm'?" in done.stderr
    assert one_card.jobs() == []


def test_native_files_resume_when_asked(berth, tmp_path):
    """What was left out counts as done for those that follow it; without --resume all run again."""
    path = tmp_path / "native.yaml"
    path.write_text(
        "version: 1\ndefaults: {gpus: 0}\njobs:\n"
        "  - {name: first, run: 'true', log: first.log}\n"
        f"  - {{name: second, after: first, run: 'test -e {tmp_path}/go'}}\n"
        "  - {name: third, after: [first, second], run: 'true'}\n"
    )
    done = berth.cli("run", path, check=1)
    assert "1 of 3 succeeded" in done.stdout
    (tmp_path / "go").touch()
    done = berth.cli("run", "--resume", path, check=0)
    assert "1 of 3 have succeeded before" in done.stdout and "2 of 2 succeeded" in done.stdout
    assert "nothing is left to run" in berth.cli("run", "--resume", path, check=0).stdout
    (tmp_path / "first.log").unlink()
    assert "1 of 1 succeeded" in berth.cli("run", "--resume", path, check=0).stdout
    assert "3 of 3 succeeded" in berth.cli("run", path, check=0).stdout


def test_the_experiments_of_the_document(make_instance, tmp_path, links):
    berth = make_instance(gpus="sim:6x24GiB")
    berth.start()
    folder = tmp_path / "FedWhat"
    shutil.copytree(EXAMPLE, folder)
    env = berth.environment({**links(berth), "FEDWHAT_ROUND": "0.01"})

    def script(*words):
        return subprocess.run(
            ["bash", *words], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=6 * PATIENCE,
        )

    done = script("run_gpu_aware_experiments.sh", "multi_seed")
    assert done.returncode == 0 and done.stdout.endswith("24 of 24 succeeded\n"), done
    jobs = berth.jobs()
    assert len(jobs) == 24
    spans = [(j["started_at"], j["ended_at"]) for j in jobs]
    for moment, _ in spans:
        assert sum(begin <= moment < end for begin, end in spans) <= 4, "four at once are the most"
    logs = sorted((folder / "logs" / "multi_seed").glob("*.log"))
    assert len(logs) == 24 and all("round 8/8" in log.read_text() for log in logs)

    done = script("run_gpu_aware_experiments.sh", "all")
    assert done.returncode == 0, done
    assert "24 of 24 have succeeded before" in done.stdout
    assert done.stdout.count("6 of 6 succeeded\n") == 2
    assert len(list((folder / "logs" / "gamma_sensitivity").glob("*.log"))) == 6
    assert len(list((folder / "logs" / "lambda_max_sensitivity").glob("*.log"))) == 6

    rows = script("-c", "python scripts/aggregate_multi_seed_results.py --format csv").stdout.splitlines()
    runs = rows[0].split(",").index("n")
    assert len(rows) == 9 and all(row.split(",")[runs] == "3" for row in rows[1:]), rows
