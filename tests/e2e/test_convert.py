"""berth convert: any job file as a native one that makes the same jobs."""

import json

from berthlib import PATIENCE, REPO

SCRIPT = """#!/bin/bash
#SBATCH --job-name=c --array=0-2%1 --gpus=1
#SBATCH --output=%x.%a.txt

for i in 1 2; do
  echo "$SLURM_ARRAY_TASK_ID: $i {x}"
done
"""


def test_the_result_runs_like_the_original(gpu_berth, tmp_path):
    (tmp_path / "c.sbatch").write_text(SCRIPT)
    gpu_berth.cli("convert", "c.sbatch", "-o", "c.yaml", cwd=tmp_path, check=0)
    text = (tmp_path / "c.yaml").read_text()
    assert text.startswith("version: 1\nname: c\nrules:\n  max_concurrent: 1\n"), text
    assert '  echo "$SLURM_ARRAY_TASK_ID: $i {x}"\n' in text, text
    done = gpu_berth.cli("run", "c.yaml", cwd=tmp_path, check=0, timeout=3 * PATIENCE)
    assert "3 of 3 succeeded" in done.stdout, done
    assert (tmp_path / "c.1.txt").read_text() == "1: 1 {x}\n1: 2 {x}\n"


def test_both_are_checked_alike(make_instance, tmp_path):
    berth = make_instance()
    (tmp_path / "c.sbatch").write_text(SCRIPT)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    examples = sorted((REPO / "examples").rglob("*.yaml"))
    commands = sorted((REPO / "tests/golden/commands").rglob("*.txt"))
    managers = sorted((REPO / "tests/fuzz/corpus/gpu_manager").glob("*.json"))
    sources = [tmp_path / "c.sbatch", *examples, *commands, *managers]
    judged, dialects = 0, set()
    for source in sources:
        before = berth.cli("check", "--json", source, cwd=tmp_path)
        if before.returncode != 0:
            continue  # no job file, or one of many parts
        out = elsewhere / f"{judged}.yaml"
        berth.cli("convert", source, "-o", out, cwd=tmp_path, check=0)
        after = berth.cli("check", "--json", out, cwd=elsewhere, check=0)
        assert json.loads(after.stdout) == json.loads(before.stdout), source
        dialects.add(json.loads(before.stdout).get("files", {}).get("dialect", "native"))
        judged += 1
    assert dialects == {"native", "script", "fedwhat", "commands", "gpu_manager"}
    assert not (berth.dir / "sock").exists(), "it needs no daemon"


def test_nothing_is_written_over(make_instance, tmp_path):
    berth = make_instance()
    (tmp_path / "a.yaml").write_text("version: 1\njobs: [{run: 'true'}]\n")
    (tmp_path / "b.yaml").write_text("mine")
    told = berth.cli("convert", "a.yaml", "-o", "b.yaml", cwd=tmp_path)
    assert told.returncode == 1 and "'b.yaml' is there already; --force" in told.stderr
    assert (tmp_path / "b.yaml").read_text() == "mine"
    berth.cli("convert", "a.yaml", "-o", "b.yaml", "--force", cwd=tmp_path, check=0)
    shown = berth.cli("convert", "a.yaml", cwd=tmp_path, check=0).stdout
    assert (tmp_path / "b.yaml").read_text() == shown
    assert shown.splitlines()[:4] == ["version: 1", "name: a", "jobs:", "  - name: job-1"]


def test_mistakes_are_shown_and_nothing_is_made(make_instance, tmp_path):
    berth = make_instance()
    (tmp_path / "a.yaml").write_text("version: 1\njobs: [{runn: 'true'}]\n")
    told = berth.cli("convert", "a.yaml", "-o", "b.yaml", cwd=tmp_path)
    assert told.returncode == 1 and "a.yaml:2:9: unknown key 'runn'" in told.stderr
    assert not (tmp_path / "b.yaml").exists()
