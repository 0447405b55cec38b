"""Editing a job file changes nothing that is queued until it is run again, whatever its format."""

import pytest

FILES = {
    "native": ("jobs.yaml", "version: 1\njobs:\n  - name: a\n    gpus: 0\n    run: echo WORD\n", ()),
    "fedwhat": ("jobs.yaml", "jobs:\n  - name: a\n    config: c.yaml\n    algorithm: WORD\n    log_path: WORD.log\n",
                ("--template", "echo {algorithm}")),
    "commands": ("command.txt", "echo WORD\n1,1\n", ()),
    "gpu_manager": ("gpu_manager_config.json", '{"program_template": {"command": "echo", "args": ["WORD"]}}\n', ()),
    "script": ("job.sh", "#!/bin/bash\n#BERTH --gpus 0\necho WORD\n", ()),
}


@pytest.mark.parametrize("dialect", FILES)
def test_what_is_queued_stays_what_it_was(gpu_berth, tmp_path, dialect):
    name, text, options = FILES[dialect]
    (tmp_path / "c.yaml").write_text("seed: 1\n")

    def run(word):
        (tmp_path / name).write_text(text.replace("WORD", word))
        gpu_berth.cli("run", "--detach", "--dialect", dialect, *options, name, cwd=tmp_path, check=0)
        return max(job["id"] for job in gpu_berth.jobs())

    gpu_berth.cli("pause", "--instance", check=0)
    queued = run("old")
    edited = run("new")
    gpu_berth.cli("resume", "--instance", check=0)
    gpu_berth.wait([queued, edited])
    assert gpu_berth.cli("log", queued, check=0).stdout.split() == ["old"]
    assert gpu_berth.cli("log", edited, check=0).stdout.split() == ["new"]
