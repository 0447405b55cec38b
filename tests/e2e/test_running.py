"""Running programs well: placeholders, ports, conda and its like, and what jobs say of themselves."""

import json
import pathlib
import stat
import subprocess
import sys

import pytest
from berthlib import eventually, job, read_bytes

HOLD = 'until [ -e "$GO" ]; do sleep 0.05; done'


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return path


def log_of(berth, job_id):
    attempts = berth.show(job_id)["attempts"]
    return read_bytes(attempts[-1]["log"]).decode() if attempts else ""


# --- placeholders


def test_placeholders_are_put_in_when_the_attempt_starts(gpu_berth, tmp_path):
    words = "{gpu_list} {gpu_count} {gpu_uuids} {job_id} {batch_id} {uni_id} {work_dir} {log_path}"
    jobs = [
        job(
            f"echo {words}; echo $RUN $BERTH_UNI_ID $BERTH_BATCH_ID $BERTH_WORK_DIR",
            gpus=2,
            cwd=str(tmp_path),
            work_dir="/usr",
            env=["RUN=run-{job_id}"],
            log=str(tmp_path / "log-{job_id}-{gpu_list}.txt"),
        ),
        job("echo ${gpu_count-unset} {{gpu_count}} {a,b} '{other}'"),
    ]
    first, second = gpu_berth.submit(jobs)
    assert gpu_berth.wait_one(first)["state"] == "succeeded"
    show = gpu_berth.show(first)
    log = tmp_path / f"log-{first}-0,1.txt"
    assert show["attempts"][-1]["log"] == show["job"]["log"] == str(log)
    uuids = ",".join(show["attempts"][-1]["gpu_uuids"])
    batch = show["job"]["batch"]
    filled, told = log.read_text().splitlines()
    uni_id = filled.split()[5]
    assert filled == f"0,1 2 {uuids} {first} {batch} {uni_id} /usr {log}"
    assert told == f"run-{first} {uni_id} {batch} /usr"
    # What was submitted is shown as it was submitted.
    assert "{gpu_list}" in show["commands"][0]["argv"][0]
    assert "{gpu_list}" in gpu_berth.cli("show", first, check=0).stdout
    assert filled in gpu_berth.cli("log", first, check=0).stdout

    assert gpu_berth.wait_one(second)["state"] == "succeeded"
    assert log_of(gpu_berth, second) == "unset {gpu_count} a b {other}\n"


def test_each_retry_has_an_id_of_its_own(berth):
    job_id = berth.submit_one("echo {uni_id}; exit 1", retries=1)
    assert berth.wait_one(job_id)["state"] == "failed"
    logs = [pathlib.Path(a["log"]).read_text() for a in berth.show(job_id)["attempts"]]
    assert len(logs) == 2 and logs[0] != logs[1]


def test_a_program_that_is_given_indices_sees_exactly_its_cards(gpu_berth, tmp_path):
    """As "CUDA_VISIBLE_DEVICES": "{gpu_list}" asks for."""
    go = tmp_path / "go"
    print_it = 'echo "$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER $BERTH_GPU_INDICES"; ' + HOLD
    ids = [
        gpu_berth.submit_one(
            print_it, gpus=1, env=["CUDA_VISIBLE_DEVICES={gpu_list}", f"GO={go}"]
        )
        for _ in range(2)
    ]
    for job_id in ids:
        gpu_berth.wait_started(job_id)
    go.touch()
    gpu_berth.wait(ids)
    seen = sorted(log_of(gpu_berth, job_id) for job_id in ids)
    assert seen == ["0 PCI_BUS_ID 0\n", "1 PCI_BUS_ID 1\n"]


def test_a_matrix_job_may_use_them(berth, tmp_path):
    file = tmp_path / "jobs.yaml"
    file.write_text(
        "version: 1\n"
        "jobs:\n"
        "  - name: train-{lr}\n"
        "    matrix: {lr: [1, 2]}\n"
        "    gpus: 0\n"
        "    run: echo {lr} {gpu_count} {job_id} {{lr}}\n"
        "    env: {RUN: '{uni_id}'}\n"
        f"    log: {tmp_path}/out-{{lr}}-{{job_id}}.txt\n"
    )
    done = berth.cli("check", file, check=0)
    assert "names no axis" not in done.stdout + done.stderr
    berth.cli("run", file, check=0)
    assert sorted(p.read_text() for p in tmp_path.glob("out-*.txt")) == [
        "1 0 1 {lr}\n",
        "2 0 2 {lr}\n",
    ]


# --- ports


def test_attempts_that_run_side_by_side_have_ports_of_their_own(berth, tmp_path):
    go = tmp_path / "go"
    ids = berth.submit(
        [job("echo {port} $BERTH_PORT $MASTER_PORT; " + HOLD, env=[f"GO={go}"]) for _ in range(4)]
    )
    ids.append(berth.submit_one("echo $MASTER_PORT {port}", env=["MASTER_PORT=77"]))
    ids.append(berth.submit_one("echo ${MASTER_PORT-none} ${BERTH_PORT-none}"))
    for job_id in ids[:4]:
        eventually(lambda j=job_id: log_of(berth, j).endswith("\n"), f"job {job_id} has said its port")
    go.touch()
    berth.wait(ids)
    ports = []
    for job_id in ids[:4]:
        same = set(log_of(berth, job_id).split())
        assert len(same) == 1
        ports.append(int(same.pop()))
    assert len(set(ports)) == 4
    assert all(10_000 <= port < 65_536 for port in ports)
    assert log_of(berth, ids[4]).startswith("77 ")
    assert log_of(berth, ids[5]) == "none none\n"


# --- conda

CONDA_SH = """
export CONDA_EXE='{root}/bin/conda'
__conda_exe() {{ "$CONDA_EXE" "$@"; }}
conda() {{
  case "$1" in
    activate|deactivate) eval "$(__conda_exe shell.posix "$@")" || return ;;
    *) __conda_exe "$@" ;;
  esac
}}
"""

CONDA = """#!/bin/bash
root=$(cd "$(dirname "$0")/.." && pwd)
case "$1 $2" in
  'shell.bash hook') cat "$root/shell/conda.sh" ;;
  'shell.posix activate')
    if [ ! -d "$root/envs/$3" ]; then echo "EnvironmentNameNotFound: $3" >&2; exit 1; fi
    echo "export PATH='$root/envs/$3/bin':\\"\\$PATH\\""
    echo "export CONDA_PREFIX='$root/envs/$3'"
    echo "export CONDA_DEFAULT_ENV='$3'" ;;
  'shell hook') cat "$root/shell/micromamba.sh" ;;
  'run -n') shift 2; env=$1; shift; PATH=$root/envs/$env/bin:$PATH exec "$@" ;;
  *) echo "conda says $*" ;;
esac
"""


def conda_tree(root, *, profile=True, name="conda"):
    """A stand-in with the layout of the real thing: no start-up file mentions it."""
    program(root / "bin" / name, CONDA)
    text = CONDA_SH.format(root=root)
    program(root / "shell/conda.sh", text)
    program(
        root / "shell/micromamba.sh",
        text.replace("conda()", "micromamba()").replace("bin/conda", "bin/micromamba"),
    )
    if profile:
        program(root / "etc/profile.d/conda.sh", text)
    program(root / "envs/train/bin/trainer", "#!/bin/sh\necho trained in $CONDA_DEFAULT_ENV \"$@\"\n")
    return root


def submit_in(berth, script, tmp_path, *variables, **fields):
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    environment = [f"HOME={home}", "PATH=/usr/bin:/bin", *variables]
    [job_id] = berth.submit(job(script, **fields), environment=environment)
    return berth.wait_one(job_id), log_of(berth, job_id)


ACTIVATE = "conda activate train && trainer --lr 1"


@pytest.mark.parametrize("profile", [True, False])
def test_conda_is_found_through_the_submitters_environment(berth, tmp_path, profile):
    root = conda_tree(tmp_path / "sub dir/conda", profile=profile)
    for variable in (
        f"CONDA_EXE={root}/bin/conda",
        f"CONDA_PREFIX={root}",
        f"CONDA_PREFIX={root}/envs/train",
        f"PATH={root}/bin:/usr/bin:/bin",
    ):
        ended, log = submit_in(berth, ACTIVATE, tmp_path, variable)
        assert (ended["state"], log) == ("succeeded", "trained in train --lr 1\n"), variable


def test_conda_is_found_in_the_usual_places(berth, tmp_path):
    conda_tree(tmp_path / "home/miniconda3")
    ended, log = submit_in(berth, ACTIVATE, tmp_path)
    assert (ended["state"], log) == ("succeeded", "trained in train --lr 1\n")
    ended, log = submit_in(berth, "conda activate nosuch && trainer", tmp_path)
    assert ended["state"] == "failed" and "EnvironmentNameNotFound" in log
    ended, log = submit_in(berth, "conda run -n train trainer x", tmp_path)
    assert ended["state"] == "succeeded" and "trained" in log


def test_conda_works_in_a_script_of_the_job(berth, tmp_path):
    conda_tree(tmp_path / "home/miniforge3")
    for number, line in enumerate(
        ("conda activate train", 'eval "$(conda shell.bash hook)"\nconda activate train')
    ):
        script = program(
            tmp_path / f"run{number}.sh",
            f"#!/bin/bash\nset -euo pipefail\n# a comment\n{line}\ntrainer \"$@\"\n",
        )
        for command in (f"bash {script} a b", f"{script} a b"):
            ended, log = submit_in(berth, command, tmp_path)
            assert (ended["state"], log) == ("succeeded", "trained in train a b\n"), command
    # Whoever says nothing of conda has no function of that name.
    ended, log = submit_in(berth, "type -t con''da || echo none", tmp_path)
    assert log == "none\n"


def test_micromamba_works_too(berth, tmp_path):
    root = conda_tree(tmp_path / "mm", name="micromamba")
    script = "micromamba activate train && trainer"
    ended, log = submit_in(berth, script, tmp_path, f"MAMBA_EXE={root}/bin/micromamba")
    assert (ended["state"], log) == ("succeeded", "trained in train\n")


def test_the_users_own_bash_env_is_read_first(berth, tmp_path):
    conda_tree(tmp_path / "home/miniconda3")
    own = tmp_path / "own env"
    own.write_text("GREETING=hello\n")
    ended, log = submit_in(
        berth, f"echo $GREETING; {ACTIVATE}", tmp_path, f"BASH_ENV={own}"
    )
    assert log == "hello\ntrained in train --lr 1\n"
    ended, log = submit_in(berth, "echo $GREETING", tmp_path, f"BASH_ENV={own}")
    assert log == "hello\n"


USUAL = [
    pathlib.Path(base) / "bin/conda"
    for base in (
        "/opt/conda", "/opt/miniconda3", "/opt/anaconda3", "/opt/miniforge3", "/opt/mambaforge",
        "/opt/miniconda", "/opt/anaconda", "/usr/local", "/usr/local/miniconda3",
        "/usr/local/anaconda3", "/usr/local/miniforge3", "/usr", "/",
    )
]  # fmt: skip


@pytest.mark.skipif(any(p.exists() for p in USUAL), reason="this machine has conda")
def test_where_there_is_no_conda_the_log_says_what_to_do(berth, tmp_path):
    ended, log = submit_in(berth, "conda activate train && trainer", tmp_path)
    assert (ended["state"], ended["exit_code"]) == ("failed", 127)
    assert log.count("\n") == 1
    assert log.startswith("berth: conda was not found: ")
    assert "CONDA_EXE=/path/to/bin/conda" in log


# --- other ways to run Python


def test_a_virtual_environment_runs_by_its_path(berth, tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    code = "import sys; print(sys.prefix)"
    [direct] = berth.submit(job(argv=[f"{venv}/bin/python", "-c", code]))
    [sourced] = berth.submit(job(f"source {venv}/bin/activate && python -c '{code}'"))
    berth.wait([direct, sourced])
    assert log_of(berth, direct) == log_of(berth, sourced) == f"{venv}\n"


@pytest.mark.parametrize("through_bash", [True, False])
def test_launchers_get_the_right_words(gpu_berth, tmp_path, through_bash):
    """Stand-ins that say with which words they were called."""
    bin_dir = tmp_path / "bin"
    for name in ("uv", "poetry", "accelerate", "torchrun"):
        program(
            bin_dir / name,
            '#!/bin/bash\necho "$(basename "$0")" "$#" "$@" "cards=$BERTH_GPU_COUNT"\n',
        )
    commands = [
        ["uv", "run", "train.py", "--lr", "0.1"],
        ["poetry", "run", "python", "train.py"],
        ["accelerate", "launch", "--num_processes", "{gpu_count}", "--main_process_port", "{port}",
         "train.py"],
        ["torchrun", "--nproc_per_node={gpu_count}", "--master_port={port}", "train.py"],
    ]  # fmt: skip
    environment = [f"PATH={bin_dir}:/usr/bin:/bin"]
    ids = gpu_berth.submit(
        [
            job(" ".join(words), gpus=2) if through_bash else job(argv=words, gpus=2)
            for words in commands
        ],
        environment=environment,
    )
    ended = gpu_berth.wait(ids)
    assert {j["state"] for j in ended.values()} == {"succeeded"}
    for words, job_id in zip(commands, ids):
        got = log_of(gpu_berth, job_id).split()
        assert got[:2] == [words[0], str(len(words) - 1)]
        assert got[-1] == "cards=2"
        wanted = [word.replace("{gpu_count}", "2") for word in words[1:]]
        for want, have in zip(wanted, got[2:-1], strict=True):
            if "{port}" in want:
                assert have.removeprefix(want.removesuffix("{port}")).isdigit()
            else:
                assert have == want


# --- berth report

REPORT = '"$BERTH_BIN_DIR/berth" report '


def test_a_reported_failure_beats_exit_code_0(berth):
    ids = berth.submit(
        [
            job(REPORT + "--state abnormal_exit --error-type bad_data"),
            job(REPORT + "--state abnormal_exit --error-type oom"),
            job(REPORT + "--state running && " + REPORT + "--state normal_exit"),
            job(REPORT + "--state normal_exit; exit 3"),
            job(REPORT + "--state abnormal_exit; " + REPORT + "--state normal_exit"),
        ]
    )
    ended = berth.wait(ids)
    told = [(ended[i]["state"], ended[i]["failure_class"], ended[i]["exit_code"]) for i in ids]
    assert told == [
        ("failed", "exit", 0),
        ("failed", "gpu_oom", 0),
        ("succeeded", None, 0),
        ("failed", "exit", 3),
        ("succeeded", None, 0),
    ]
    assert "it reported abnormal_exit: bad_data" in ended[ids[0]]["message"]


def test_metrics_are_kept_beside_the_log_and_go_with_the_job(berth):
    job_id = berth.submit_one(
        REPORT + "--metric acc=0.93 --metric loss=nan --step 3 --pid 12; "
        + REPORT + "--metric acc=1e-3"
    )
    assert berth.wait_one(job_id)["state"] == "succeeded"
    report = pathlib.Path(berth.show(job_id)["attempts"][-1]["report"])
    assert report.parent == pathlib.Path(berth.show(job_id)["job"]["log"]).parent
    first, second = [json.loads(line) for line in report.read_text().splitlines()]
    assert first.pop("wall") > 1_600_000_000_000
    assert first == {"metrics": {"acc": 0.93, "loss": None}, "step": 3, "pid": 12}
    assert second["metrics"] == {"acc": 0.001}
    berth.cli("rm", job_id, check=0)
    assert not report.exists()


def test_the_report_of_a_job_with_its_own_log_goes_with_it_too(berth, tmp_path):
    log = tmp_path / "own.log"
    job_id = berth.submit_one(REPORT + "--metric a=1", log=str(log))
    berth.wait_one(job_id)
    report = pathlib.Path(berth.show(job_id)["attempts"][-1]["report"])
    assert report.exists()
    berth.cli("rm", job_id, check=0)
    assert log.exists() and not report.exists()


def test_what_a_program_writes_to_the_file_itself_counts(berth):
    line = '{\\"state\\": \\"abnormal_exit\\", \\"error_type\\": \\"oom\\"}'
    ids = berth.submit(
        [
            job(f'echo "{line}" >> "$BERTH_REPORT"'),
            job('head -c 100000 /dev/urandom > "$BERTH_REPORT"'),
            job('mkfifo "$BERTH_REPORT"'),
        ]
    )
    ended = berth.wait(ids)
    assert [ended[i]["failure_class"] for i in ids] == ["gpu_oom", None, None]


def test_outside_a_job_it_says_so(berth):
    done = berth.cli("report", "--state", "running", check=1)
    assert "not inside a job" in done.stderr
    for wrong in (["--state", "fine"], ["--metric", "acc"], ["--metric", "acc=good"], []):
        assert berth.cli("report", *wrong, env={"BERTH_REPORT": "/nowhere"}).returncode == 2
    done = berth.cli("report", "--metric", "a=1", env={"BERTH_REPORT": "/nowhere/x"}, check=1)
    assert "/nowhere/x" in done.stderr
