"""Scripts with #SBATCH and #BERTH lines run unedited."""

import json
import os
import pwd
import re
import shutil
import stat
import textwrap

import pytest
from berthlib import PATIENCE

ARRAY = """#!/bin/bash
#SBATCH --job-name=digits
#SBATCH --array=1-5:2%2
#SBATCH --gres=gpu:1
#SBATCH --time=0:10:00
#SBATCH --cpus-per-task=2
#SBATCH --output=out/%x-%a.txt
#SBATCH --partition=gpu

# The program itself.
echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, $SLURM_ARRAY_TASK_MIN-$SLURM_ARRAY_TASK_MAX"
echo "in $SLURM_SUBMIT_DIR as $SLURM_JOB_NAME with $SLURM_CPUS_PER_TASK cpus, $0 $*"
[ -n "$CUDA_VISIBLE_DEVICES" ] && echo "has a card"
cat <<END
{"json": {job_id}, "shell": "${HOME:+yes}"}
END
"""


def write(folder, name, text):
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def test_an_ordinary_array_script(gpu_berth, tmp_path):
    (tmp_path / "out").mkdir()
    script = write(tmp_path, "job.sbatch", ARRAY)
    done = gpu_berth.cli(
        "run", "job.sbatch", "--", "--epochs", "3", cwd=tmp_path, check=0, timeout=3 * PATIENCE)
    assert "3 of 3 succeeded" in done.stdout, done
    assert "job.sbatch:8:9: '--partition' says nothing to berth" in done.stderr
    for task in (1, 3, 5):
        assert (tmp_path / "out" / f"digits-{task}.txt").read_text() == (
            f"task {task} of 3, 1-5\n"
            f"in {tmp_path} as digits with 2 cpus, {script} --epochs 3\n"
            "has a card\n"
            '{"json": {job_id}, "shell": "yes"}\n'
        )


def test_check_names_a_script_in_one_line(make_instance, tmp_path):
    write(tmp_path, "job.sh", """\
        #!/bin/bash
        #SBATCH --array=0-1
        #SBATCH --output=%u-%a.out
        echo hello
        """)
    berth = make_instance()
    told = berth.cli("check", "job.sh", "--", "--epochs", "3", cwd=tmp_path, check=0).stdout.splitlines()
    assert len(told) == 4, told
    assert re.fullmatch(rf"job.sh-0 .* /bin/bash {tmp_path}/job.sh --epochs 3", told[1]), told
    # Without USER in the environment, the machine is asked for the name.
    user = pwd.getpwuid(os.getuid()).pw_name
    [log, _] = re.findall(r'"log": "(.*?)"', berth.cli("check", "--json", "job.sh", cwd=tmp_path).stdout)
    assert log == f"{tmp_path}/{user}-0.out"


def test_ids_are_those_of_berth(gpu_berth, tmp_path):
    write(tmp_path, "one.sh", "#!/bin/sh\n#SBATCH -G 1\necho $SLURM_JOB_ID $SLURM_JOB_GPUS\n")
    write(tmp_path, "many.sh",
          "#!/bin/sh\n#SBATCH -a 4-5 -o %A_%a-%j.txt\necho $SLURM_ARRAY_JOB_ID $SLURM_JOBID\n")
    gpu_berth.cli("run", "one.sh", cwd=tmp_path, check=0, timeout=3 * PATIENCE)
    assert (tmp_path / "slurm-1.out").read_text() in ("1 0\n", "1 1\n")
    told = gpu_berth.cli("run", "--detach", "--json", "many.sh", cwd=tmp_path, check=0)
    answer = json.loads(told.stdout)
    first, second = answer["ids"]
    for task, job in ((4, first), (5, second)):
        assert gpu_berth.wait_one(job)["log"] == str(tmp_path / f"{first}_{task}-{job}.txt")
        assert (tmp_path / f"{first}_{task}-{job}.txt").read_text() == f"{first} {job}\n"


def test_an_array_is_followed_by_its_id(berth, tmp_path):
    """As with sbatch, the id that its tasks see means all of them, and ID_TASK one."""
    write(tmp_path, "old.sh", "#!/bin/sh\n#SBATCH -o old.txt\ntrue\n")
    write(tmp_path, "array.sh",
          "#!/bin/sh\n#SBATCH -a 2-4 -o array.txt\n"
          "while [ ! -e go$SLURM_ARRAY_TASK_ID ]; do sleep 0.05; done\n"
          "[ $SLURM_ARRAY_TASK_ID != 3 ]\n")

    def submit(name, **given):
        told = berth.cli("run", "--detach", "--json", name, cwd=tmp_path, **given)
        return json.loads(told.stdout)

    for _ in range(3):  # ids of jobs that are those of batches, too
        berth.wait_one(submit("old.sh", check=0)["ids"][0])
    array = submit("array.sh", check=0)
    first, last = array["ids"]
    (tmp_path / "go2").touch()
    berth.wait_one(first)

    def follow(name, dependency):
        write(tmp_path, name, f"#!/bin/sh\n#SBATCH -d {dependency} -o {name}.txt\ntrue\n")
        return submit(name, check=0)["ids"][0]

    task = follow("task.sh", f"afterok:{first}_2")
    assert berth.wait_one(task)["state"] == "succeeded"
    whole = follow("whole.sh", f"afterany:{first}")
    (tmp_path / "go4").touch()
    berth.wait_one(last)
    assert berth.show(whole)["job"]["state"] == "queued"
    failing = follow("failing.sh", f"afterok:{first}")
    (tmp_path / "go3").touch()
    assert berth.wait_one(whole)["state"] == "succeeded"
    assert berth.wait_one(failing)["state"] == "cancelled"
    write(tmp_path, "none.sh", f"#!/bin/sh\n#SBATCH -d afterok:{first}_9\ntrue\n")
    refused = berth.cli("run", "none.sh", cwd=tmp_path, check=1)
    assert f"the array {first} has no task 9 to follow" in refused.stderr
    # The same through the daemon's own reading of job files.
    sent = berth.api("POST", "/api/jobfiles", {
        "text": f"#!/bin/sh\n#SBATCH -d afterany:{first} -o sent.txt\ntrue\n",
        "name": "sent.sh", "cwd": str(tmp_path)})
    assert berth.show(sent["ids"][0])["after"] == list(range(first, last + 1))


def test_cards_are_numbers_as_slurm_has_them(gpu_berth, tmp_path):
    """Programs for Slurm read them as integers; #BERTH alone gets UUIDs, as every job of berth."""
    show = "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER [$SLURM_STEP_GPUS]\n"
    write(tmp_path, "slurm.sh", "#!/bin/sh\n#SBATCH -G 2 -o slurm.txt\n" + show)
    write(tmp_path, "own.sh", "#!/bin/sh\n#BERTH --gpus 1 --log own.txt\n" + show)
    for script in ("slurm.sh", "own.sh"):
        gpu_berth.cli("run", script, cwd=tmp_path, check=0, timeout=3 * PATIENCE)
    assert (tmp_path / "slurm.txt").read_text() == "0,1 PCI_BUS_ID [0,1]\n"
    assert re.fullmatch(r"GPU-\S+ PCI_BUS_ID \[\]\n", (tmp_path / "own.txt").read_text())


def test_the_script_is_the_one_that_was_submitted(berth, tmp_path):
    script = write(
        tmp_path, "job.sh",
        "#!/bin/bash\n#BERTH --gpus 0 --log out.txt\n"
        "while [ ! -e go ]; do sleep 0.05; done\necho first\n")
    told = berth.cli("run", "--detach", "--json", "job.sh", cwd=tmp_path, check=0)
    script.write_text("#!/bin/bash\necho second\n")
    (tmp_path / "go").touch()
    assert berth.wait_one(json.loads(told.stdout)["ids"][0])["state"] == "succeeded"
    assert (tmp_path / "out.txt").read_text() == "first\n"


def test_errors_dependencies_and_environment(berth, tmp_path):
    first = json.loads(berth.cli(
        "run", "--detach", "--json", write(tmp_path, "a.sh", "#!/bin/sh\n#SBATCH -o a.txt\nexit 3\n"),
        cwd=tmp_path, check=0).stdout)["ids"][0]
    write(tmp_path, "b.sh",
          f"#!/bin/bash\n#SBATCH --dependency=afternotok:{first} -o b.txt -e 'b err.txt'\n"
          "#SBATCH --export=SAID=hello,KEPT\n"
          "echo $SAID $KEPT [$DROPPED]; echo bad >&2\n")
    done = berth.cli("run", "b.sh", cwd=tmp_path, check=0, timeout=3 * PATIENCE,
                     env={"KEPT": "kept", "DROPPED": "dropped"})
    assert "1 of 1 succeeded" in done.stdout
    assert (tmp_path / "b.txt").read_text() == "hello kept []\n"
    assert (tmp_path / "b err.txt").read_text() == "bad\n"


def test_python_scripts(berth, tmp_path):
    script = write(
        tmp_path, "job.py",
        "#!/usr/bin/env python3\n#SBATCH --output=py.txt\n"
        "import os, sys\nprint(sys.argv, __file__, __name__, os.environ['SLURM_PROCID'])\n")
    berth.cli("run", "job.py", "--", "-x", "", cwd=tmp_path, check=0, timeout=3 * PATIENCE)
    assert (tmp_path / "py.txt").read_text() == (
        f"['{script}', '-x', ''] {script} __main__ 0\n")


def test_srun_is_missed_before_anything_runs(make_instance, tmp_path):
    berth = make_instance()
    write(tmp_path, "job.sh", "#!/bin/bash\n#SBATCH -G 1\nsrun python train.py\n")
    path = tmp_path / "bin"
    path.mkdir()
    told = berth.cli("check", "job.sh", cwd=tmp_path, check=0, env={"PATH": str(path)})
    assert "job.sh:3:1: this line calls srun, and there is none on PATH" in told.stderr
    srun = path / "srun"
    srun.write_text("#!/bin/sh\n")
    srun.chmod(srun.stat().st_mode | stat.S_IXUSR)
    told = berth.cli("check", "job.sh", cwd=tmp_path, check=0, env={"PATH": str(path)})
    assert told.stderr == ""


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
def test_a_script_that_calls_srun_runs_where_there_is_none(berth, tmp_path, shell):
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("sh", "bash", "cat", "sort", "echo"):
        (path / name).symlink_to(shutil.which(name))
    write(tmp_path, "inner.sh", "srun --mpi=none echo inner\n")
    write(
        tmp_path, "job.sh",
        f"#!{shell}\n#SBATCH --output=out.txt\nset -eu\nSLURM_NTASKS=3\n"
        "srun -u -c4 --gres gpu:1 -N 1 -- sh -c 'echo $SLURM_PROCID $SLURM_LOCALID \"$@\"' x 'a b' | sort\n"
        "srun -n1 -J one sh -c 'echo $# $*' x --n 'c d'\n"
        "echo in | srun -n 1 cat\n"
        "srun --ntasks 2 sh -c '[ $SLURM_PROCID != 0 ] || exit 7' || echo failed $?\n"
        "srun --ntasks=2 || echo failed $?\n"
        + ("SLURM_NTASKS=1 bash inner.sh\n" if shell == "/bin/bash" else "echo inner\n"))
    done = berth.cli("run", "job.sh", cwd=tmp_path, env={"PATH": str(path)}, timeout=3 * PATIENCE)
    assert done.returncode == 0, done
    assert (tmp_path / "out.txt").read_text() == (
        "0 0 a b\n1 1 a b\n2 2 a b\n2 --n c d\nin\nfailed 7\n"
        "srun: no command was given\nfailed 1\ninner\n")


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_scontrol_tells_the_machine_where_there_is_none(berth, tmp_path, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    write(tmp_path, "job.sh", f"""\
        #!/usr/bin/env {shell}
        #SBATCH --output=out.txt
        head_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
        echo "$head_node"
        [ "$head_node" = "$SLURMD_NODENAME" ] || exit 1
        scontrol show hostname
        scontrol show hostnames a,b
        scontrol show job 7 || echo no $?
        """)
    done = berth.cli("run", "job.sh", cwd=tmp_path, check=0, timeout=3 * PATIENCE)
    assert "job.sh:8:1: this line calls scontrol, and there is none on PATH" in done.stderr
    name = os.uname().nodename.split(".")[0]
    assert (tmp_path / "out.txt").read_text() == (
        f"{name}\n{name}\na\nb\nscontrol: only 'show hostnames' is there, not 'show job 7'\nno 1\n")


def test_mistakes_have_their_place(make_instance, tmp_path):
    berth = make_instance()
    write(tmp_path, "job.sh", "#!/bin/bash\n#SBATCH --time=soon\n#SBATCH -a 3-1\nls\n")
    told = berth.cli("run", "job.sh", cwd=tmp_path)
    assert told.returncode == 1 and told.stdout == ""
    assert "job.sh:2:9: --time: 'soon' is not a time" in told.stderr
    assert "  2 | #SBATCH --time=soon\n" in told.stderr
    assert "job.sh:3:9: --array: '3-1'" in told.stderr
    assert "'job.sh' has 2 mistakes; nothing was submitted" in told.stderr
    assert not (berth.dir / "sock").exists(), "it needs no daemon"
