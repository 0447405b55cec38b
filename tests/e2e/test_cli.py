"""The commands as people and scripts use them: what is printed where, exit codes, JSON."""

import concurrent.futures
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import tempfile

import pytest

from berthlib import BIN, GIB, PATIENCE, job

# What scripts rely on; more may be there.
JOB_FIELDS = (
    "id name state queue priority gpus node attempts exit_code failure_class reason batch owner"
).split()
GPU_FIELDS = (
    "index uuid name node memory_total memory_used memory_free utilization processes state"
).split()
COMMANDS = (
    "add run sweep check convert ls show log why wait kill pause resume start move set gpus status stop doctor completion"
).split()
ESCAPE = "\x1b"


def add(berth, *words, env=None, **run):
    """`berth add`, which prints the new id and nothing else."""
    done = berth.cli("add", *words, check=0, env=env, **run)
    assert re.fullmatch(r"[1-9]\d*\n", done.stdout) and done.stderr == "", done
    return int(done.stdout)


def output(berth, job_id):
    return berth.cli("log", job_id, check=0).stdout


def fails(berth, *words, code, says, **run):
    """The command fails with this exit code, prints nothing, and says that."""
    done = berth.cli(*words, **run)
    assert done.returncode == code, done
    assert done.stdout == "" and done.stderr.startswith("berth: "), done
    assert says in done.stderr, done
    return done.stderr


def popen(berth, *words, **options):
    return subprocess.Popen(
        [str(berth.bin_dir / "berth"), *map(str, words)],
        env=berth.environment(),
        stdin=subprocess.DEVNULL,
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


# --- add, wait, log -------------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_first_job_from_nothing(make_instance):
    """No daemon, no directory: the first command brings both, and the job runs."""
    berth = make_instance(gpus="sim:2x24GiB")
    job_id = add(berth, "--name", "hello", "echo", "hello world")
    assert job_id == 1
    assert berth.cli("wait", 1, check=0).stdout == "job 1 hello succeeded\n"
    assert output(berth, 1) == "hello world\n"
    assert berth.cli("log", check=0).stdout == "hello world\n"  # the last job's
    assert add(berth, "true") == 2


def test_commands_talk_to_nobody_elses_daemon():
    if os.getuid() != 0:
        return  # being somebody else takes root
    with tempfile.TemporaryDirectory() as place, socket.socket(socket.AF_UNIX) as planted:
        os.chmod(place, 0o777)
        planted.bind(f"{place}/sock")
        os.chmod(f"{place}/sock", 0o777)
        planted.listen()
        asked = subprocess.run(
            [BIN / "berth", "ls"], env={**os.environ, "BERTH_DIR": place},
            user=65534, group=65534, extra_groups=[], capture_output=True, text=True,
            timeout=PATIENCE, check=False)
        assert asked.returncode == 1 and "not you" in asked.stderr, asked
        planted.settimeout(PATIENCE)
        with planted.accept()[0] as connection:
            connection.settimeout(PATIENCE)
            assert connection.recv(1) == b"", "nothing was said"


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="the machine has a GPU")
@pytest.mark.parametrize("gpus", ["none", "auto"])
def test_where_there_is_no_gpu_a_job_that_asks_for_nothing_runs_without(make_instance, gpus):
    berth = make_instance(gpus=gpus)
    done = berth.cli("add", "true", check=0)
    assert "no GPU here" in done.stderr
    assert berth.cli("wait", done.stdout.strip(), check=0)
    waiting = add(berth, "--gpus", 1, "true")
    assert "no GPU" in berth.cli("why", waiting, check=0).stdout


def test_one_word_with_shell_syntax_goes_to_bash_and_several_words_do_not(berth):
    shell = add(berth, "--gpus", 0, "echo $((6 * 7)) | tr 4 x; echo $0")
    words = add(berth, "--gpus", 0, "echo", "$((6 * 7))", "|", "--json")
    dashes = add(berth, "--gpus", 0, "--", "printf", "%s", "--name")
    assert berth.cli("wait", "1-3").returncode == 0
    assert output(berth, shell) == "x2\nbash\n"
    assert output(berth, words) == "$((6 * 7)) | --json\n"
    assert output(berth, dashes) == "--name"
    assert "bash         echo" in berth.cli("show", shell, check=0).stdout
    assert "command      echo '$((6 * 7))'" in berth.cli("show", words, check=0).stdout


def test_add_can_answer_in_json(berth):
    done = berth.cli("add", "--gpus", 0, "--json", "true", check=0)
    assert json.loads(done.stdout)["ids"] == [1, 1]


@pytest.mark.parametrize(
    "words, says",
    [
        ([], "no command given"),
        ([""], "the command is empty"),
        (["--gpus", "x", "true"], "'x' is not a number of GPUs; write 2, 1..4 or 0"),
        (["--gpus", "4..2", "true"], "'4..2' is not a number of GPUs"),
        (["--gpu-memory", "much", "true"], "--gpu-memory"),
        (["--time", "soon", "true"], "--time"),
        (["--priority", "high", "true"], "'high' is not a whole number"),
        (["--env", "NOVALUE", "true"], "'NOVALUE' is not NAME=VALUE"),
        (["--after", "9-3", "true"], "the wrong way round; write 3-9"),
        (["--bogus", "true"], "--bogus"),
    ],
)
def test_wrong_usage_of_add_is_named_and_exits_with_2(berth, words, says):
    fails(berth, "add", *words, code=2, says=says)
    assert berth.jobs() == []


def test_what_cannot_be_is_refused_with_1(berth):
    fails(berth, "add", "--after", 99, "true", code=1, says="there is no job 99")
    assert berth.jobs() == []


def test_wait_is_for_scripts(berth):
    good = add(berth, "--gpus", 0, "true")
    bad = add(berth, "--gpus", 0, "--name", "bad", "exit 3")
    long = add(berth, "--gpus", 0, "sleep", 1000)
    assert berth.cli("wait", good).returncode == 0
    done = berth.cli("wait", f"{good},{bad}")
    assert done.returncode == 1 and "job 2 bad failed: exited with code 3\n" in done.stdout
    done = berth.cli("wait", "--all", "--timeout", "200ms")
    assert done.returncode == 1 and "1 of 1 jobs have not ended" in done.stderr
    told = json.loads(berth.cli("wait", bad, "--json").stdout)
    assert [(j["id"], j["exit_code"]) for j in told] == [(bad, 3)]
    fails(berth, "wait", good, "--all", code=2, says="give ids, or --all")
    # Waiting for nobody must not look like success.
    fails(berth, "wait", 99, code=1, says="there is no job 99")
    fails(berth, "wait", "90-99", code=1, says="there are no jobs 90-99")
    berth.cli("kill", long, check=0)
    assert berth.cli("wait", long).returncode == 1


def test_log_follows_to_the_end_across_retries(berth, tmp_path):
    gate = tmp_path / "gate"
    job_id = add(
        berth,
        *("--gpus", 0, "--retries", 1),
        f"echo try $BERTH_ATTEMPT_NUMBER; until [ -e {gate} ]; do sleep 0.02; done; "
        "echo over; [ $BERTH_ATTEMPT_NUMBER = 2 ]",
    )
    with popen(berth, "log", "-f", job_id) as following:
        assert following.stdout.readline() == "try 1\n"  # it is there before the job has ended
        assert following.poll() is None
        gate.touch()
        out, err = following.communicate(timeout=PATIENCE)
    assert following.returncode == 0
    assert out == "over\ntry 2\nover\n" and "attempt 2 of job 1" in err
    assert output(berth, job_id) == "try 2\nover\n"
    assert berth.cli("log", job_id, "--attempt", 1, check=0).stdout == "try 1\nover\n"
    fails(berth, "log", job_id, "--attempt", 3, code=1, says="no attempt 3; it has had 2")


def test_log_says_why_there_is_none(berth):
    fails(berth, "log", code=1, says="there are no jobs yet")
    first = add(berth, "--gpus", 0, "sleep", 1000)
    second = add(berth, "--gpus", 0, "--after", first, "true")
    fails(berth, "log", second, code=1, says="it is queued: waits for job 1 to succeed")
    berth.cli("kill", second, check=0)
    fails(berth, "log", "-f", second, code=1, says="never started: cancelled on request")
    fails(berth, "log", 99, code=1, says="there is no job 99")


# --- ls, show, why, kill --------------------------------------------------------------------------


def test_json_has_what_scripts_rely_on(gpu_berth):
    berth = gpu_berth
    done = add(berth, "--name", "n", "--priority", 3, "exit 7")
    berth.wait_one(done)
    add(berth, "--gpus", 9, "true")
    ended, waiting = json.loads(berth.cli("ls", "--all", "--json", check=0).stdout)
    assert [f for f in JOB_FIELDS if f not in ended] == []
    assert {f: ended[f] for f in JOB_FIELDS if f not in ("node", "batch")} == {
        "id": 1,
        "name": "n",
        "state": "failed",
        "queue": "default",
        "priority": 3,
        "gpus": 1,
        "attempts": 1,
        "exit_code": 7,
        "failure_class": "exit",
        "reason": None,
        "owner": os.geteuid(),
    }
    assert ended["node"] and ended["batch"] is None
    assert waiting["state"] == "queued" and waiting["exit_code"] is None
    assert waiting["reason"] == "asks for 9 GPUs; this machine has 2, so it can never start"

    cards = json.loads(berth.cli("gpus", "--json", check=0).stdout)
    assert [f for f in GPU_FIELDS if f not in cards[0]] == []
    assert [c["index"] for c in cards] == [0, 1]
    assert cards[0]["uuid"].startswith("GPU-") and cards[0]["node"] == ended["node"]
    assert cards[0]["memory_total"] == 24 * GIB
    assert cards[0]["memory_used"] + cards[0]["memory_free"] <= 24 * GIB
    assert cards[0]["processes"] == []

    detail = json.loads(berth.cli("show", 1, "--json", check=0).stdout)
    assert detail["job"] == ended and len(detail["attempts"]) == 1
    assert detail["commands"] == [{"shell": True, "argv": ["exit 7"]}]
    why = json.loads(berth.cli("why", 2, "--json", check=0).stdout)
    assert why["job"]["id"] == 2 and why["reasons"][0]["text"] == waiting["reason"]
    backlog = json.loads(berth.cli("why", "--json", check=0).stdout)
    assert backlog["waiting"] == 1 and [h["first"] for h in backlog["holdups"]] == [2]
    status = json.loads(berth.cli("status", "--json", check=0).stdout)
    assert status["counts"]["queued"] == 1 and status["counts"]["failed"] == 1
    assert status["pid"] == berth.pid and status["instance"] == str(berth.dir)


def test_lists_and_ranges_of_ids(berth):
    berth.submit([job("true") for _ in range(9)])
    berth.wait_all()

    def listed(*words):
        return [j["id"] for j in json.loads(berth.cli("ls", "--json", *words, check=0).stdout)]

    assert listed("3,5-7") == [3, 5, 6, 7]
    assert listed("7", "1-2") == [1, 2, 7]
    assert listed("all") == listed("--all") == list(range(1, 10))
    assert listed("--all", "--limit", 2) == [8, 9]
    assert listed("--state", "failed,killed") == []
    assert listed("5-500") == [5, 6, 7, 8, 9]
    fails(berth, "ls", 99, code=1, says="there is no job 99")
    fails(berth, "ls", "x", code=2, says="'x' is not an id or a range of ids")
    fails(berth, "ls", "--state", "happy", code=2, says="'happy' is not a state")
    fails(berth, "show", "1-2", code=2, says="give one id")
    fails(berth, "show", 99, code=1, says="there is no job 99; `berth ls --all` lists them")
    assert berth.cli("ls", "--state", "failed").stderr == "berth: no such jobs\n"


def test_kill_by_range_and_all(berth):
    running = add(berth, "--gpus", 0, "sleep", 1000)
    waiting = [add(berth, "--gpus", 0, "--after", running, "true") for _ in range(3)]
    berth.wait_started(running)
    assert berth.cli("kill", "3-4", check=0).stdout == "cancelled: 3-4\n"
    done = berth.cli("kill", "4,99")
    assert done.returncode == 1 and done.stdout == "had already ended: 4\n"
    assert "there is no job 99" in done.stderr
    answer = json.loads(berth.cli("kill", "all", "--json", check=0).stdout)
    assert (answer["killed"], answer["cancelled"]) == ([running], [waiting[0]])
    assert berth.cli("wait", running).returncode == 1
    assert berth.cli("kill", "all", check=0).stdout == "there is nothing to kill\n"
    fails(berth, "kill", code=2, says="IDS")
    states = [j["state"] for j in berth.jobs()]
    assert states == ["killed", "cancelled", "cancelled", "cancelled"]


def test_why_tells_what_a_job_waits_for(gpu_berth):
    berth = gpu_berth
    assert berth.cli("why", check=0).stdout == "no job is waiting\n"
    holder = add(berth, "--gpus", 2, "sleep", 1000)
    berth.wait_started(holder)
    waiting = add(berth, "--name", "next", "--gpus", 2, "true")
    after = add(berth, "--after", waiting, "true")
    told = berth.cli("why", waiting, check=0).stdout
    assert told.startswith("job 2 next is queued:\n  first in queue 'default'\n  - "), told
    assert "would fit when job 1 ends" in told, told
    assert f"job {waiting}" in berth.cli("why", after, check=0).stdout
    assert "is running" in berth.cli("why", holder, check=0).stdout
    everything = berth.cli("why", check=0).stdout
    assert everything.startswith("2 jobs wait:\n"), everything
    assert "the first is job 2" in everything and "the first is job 3" in everything
    # The same words in the list and at the end of show.
    [reason] = re.findall(r"  - (.*)", told)
    assert reason in berth.cli("ls", check=0, env={"COLUMNS": "400"}).stdout
    assert reason in berth.cli("show", waiting, check=0).stdout


def test_gpus_and_status_for_people(gpu_berth):
    berth = gpu_berth
    add(berth, "--gpu-memory", "4GiB", "sleep", 1000)
    berth.wait_state(1, "running")
    header, first, second = berth.cli("gpus", check=0).stdout.splitlines()
    assert header.split()[:4] == ["GPU", "NAME", "MEMORY", "FREE"]
    assert sorted(row.split()[0] for row in (first, second)) == ["0", "1"]
    [taken] = [row for row in (first, second) if "claimed" in row]
    assert taken.split()[-1] == "1"  # the job
    status = berth.cli("status", check=0).stdout
    assert f"pid {berth.pid}" in status and str(berth.dir) in status
    assert "jobs: 1 running, 0 queued" in status and "GPUs: 1 of 2 free, simulated" in status
    overview = berth.cli(check=0).stdout
    assert overview.startswith("1 running, 0 queued") and "1 sleep 1000  GPU " in overview


# --- what the job finds ---------------------------------------------------------------------------


def test_the_job_runs_as_if_started_where_it_was_submitted(berth, tmp_path):
    here = tmp_path / "here"
    here.mkdir()

    def submitter():
        os.umask(0o027)
        os.nice(7)

    script = 'pwd; echo "$PWD"; umask; nice; readlink /proc/self/fd/0; env'
    env = {
        "MINE": "a b",
        "SHLVL": "9",
        "SSH_CONNECTION": "x",
        "TMUX": "y",
        "BERTH_GPUS": "none",
        "OVER": "submitted",
    }
    job_id = add(
        berth, "--gpus", 0, "--env", "OVER=given", script, env=env, cwd=here, preexec_fn=submitter
    )
    assert berth.cli("wait", job_id).returncode == 0
    cwd, pwd, umask, nice, stdin, *environment = output(berth, job_id).splitlines()
    assert (cwd, pwd) == (str(here), str(here))
    assert (umask, nice, stdin) == ("0027", str(os.nice(0) + 7), "/dev/null")
    variables = dict(line.split("=", 1) for line in environment if "=" in line)
    assert variables["MINE"] == "a b" and variables["OVER"] == "given"
    assert variables["BERTH_JOB_ID"] == str(job_id) and variables["BERTH_DIR"] == str(berth.dir)
    # What belonged to the submitter's terminal stays there.
    assert "SSH_CONNECTION" not in variables and "TMUX" not in variables
    assert "BERTH_GPUS" not in variables and variables["SHLVL"] != "10"
    assert variables["CUDA_VISIBLE_DEVICES"] == ""


def test_cwd_and_log_are_relative_to_where_one_is(berth, tmp_path):
    (tmp_path / "sub").mkdir()
    job_id = add(berth, "--gpus", 0, "--cwd", "sub", "--log", "out.txt", "pwd", cwd=tmp_path)
    assert berth.cli("wait", job_id).returncode == 0
    assert (tmp_path / "out.txt").read_text() == f"{tmp_path}/sub\n"


def test_devices_are_given_by_uuid(gpu_berth):
    berth = gpu_berth
    cards = {c["index"]: c["uuid"] for c in json.loads(berth.cli("gpus", "--json").stdout)}
    show = "echo $CUDA_VISIBLE_DEVICES; echo $NVIDIA_VISIBLE_DEVICES; echo $BERTH_GPU_INDICES"
    both = add(berth, "--gpus", 2, show)
    one = add(berth, show)
    assert berth.cli("wait", f"{both},{one}").returncode == 0
    for job_id, count in ((both, 2), (one, 1)):
        cuda, nvidia, indices = output(berth, job_id).splitlines()
        given = [int(n) for n in indices.split(",")]
        assert len(given) == count and cuda == nvidia == ",".join(cards[n] for n in given)
    done = berth.cli("add", "CUDA_VISIBLE_DEVICES=0 python train.py", check=0)
    assert "sets CUDA_VISIBLE_DEVICES itself" in done.stderr and done.stdout == "3\n"


# --- run ------------------------------------------------------------------------------------------


def test_run_can_be_left_and_the_jobs_go_on(berth, tmp_path):
    gate = tmp_path / "gate"
    file = tmp_path / "jobs.yaml"
    file.write_text(
        "version: 1\ndefaults: {gpus: 0}\njobs:\n"
        f'  - {{name: a, run: "until [ -e {gate} ]; do sleep 0.02; done"}}\n'
        "  - {name: b, run: 'true', after: a}\n"
    )
    with popen(berth, "run", file) as running:
        berth_line = running.stdout.readline()
        assert "2 jobs, 1-2" in berth_line
        assert "started" in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130
    assert "jobs 1-2 go on" in err and "berth wait 1-2" in err and "berth kill 1-2" in err
    assert [j["state"] for j in berth.jobs()] == ["running", "queued"]
    gate.touch()
    assert berth.cli("wait", "1-2").returncode == 0


def test_run_detached(berth, tmp_path):
    file = tmp_path / "jobs.yaml"
    file.write_text("version: 1\njobs:\n  - {gpus: 0, run: sleep 1000}\n")
    done = berth.cli("run", "--detach", file, check=0)
    assert done.stdout.startswith(f"submitted {file}: 1 job, 1")
    told = json.loads(berth.cli("run", "--detach", "--json", file, check=0).stdout)
    assert told["ids"] == [2, 2]
    fails(berth, "run", "--json", file, code=2, says="goes with --detach")
    stdin = subprocess.run(
        [str(berth.bin_dir / "berth"), "run", "--detach", "-"],
        env=berth.environment(),
        input=file.read_bytes(),
        capture_output=True,
    )
    assert stdin.returncode == 0 and len(berth.jobs()) == 3


def test_mistakes_in_a_job_file_are_all_told_with_their_place(berth, tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(
        "version: 1\njobs:\n  - run: 'true'\n    gpu_mem: 8GiB\n  - name: second\n    gpus: many\n"
    )
    done = berth.cli("run", "bad.yaml", cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == "", done
    assert "bad.yaml:4:5: unknown key 'gpu_mem'; did you mean 'gpu_memory'?" in done.stderr
    assert "  4 |     gpu_mem: 8GiB\n    |     ^" in done.stderr
    assert "bad.yaml:6:11: " in done.stderr and "this job has no 'run'" in done.stderr
    assert "nothing was submitted" in done.stderr and berth.jobs() == []
    good = tmp_path / "good.yaml"
    good.write_text("version: 1\njobs:\n  - {gpus: 0, run: 'true'}\n")
    berth.cli("run", good, "bad.yaml", cwd=tmp_path)
    assert berth.jobs() == [], "one wrong file, and none is submitted"
    fails(berth, "run", tmp_path / "none.yaml", code=1, says="cannot read the job file")
    fails(berth, "run", tmp_path, code=1, says="is a directory; name a job file in it")


# --- the daemon -----------------------------------------------------------------------------------


def test_two_commands_at_once_start_one_daemon(make_instance):
    berth = make_instance()
    with concurrent.futures.ThreadPoolExecutor(6) as several:
        ids = list(several.map(lambda n: add(berth, "--gpus", 0, "true"), range(6)))
    assert sorted(ids) == [1, 2, 3, 4, 5, 6]
    assert berth.cli("wait", "1-6").returncode == 0
    assert berth.cli("stop", check=0).stdout.startswith("the daemon has stopped")
    assert berth.cli("stop", check=0).stdout == "no daemon is running\n"
    # And the next command starts it again, with everything still known.
    assert len(json.loads(berth.cli("ls", "--all", "--json", check=0).stdout)) == 6


def test_inside_a_job_no_daemon_is_started(make_instance):
    berth = make_instance()
    fails(
        berth,
        *("add", "true"),
        code=1,
        says="one started from inside a job would end with the job",
        env={"BERTH_ATTEMPT": "x/1"},
    )
    assert not (berth.dir / "berth.db").exists()
    # With a daemon, a job may submit jobs.
    berth.start()
    outer = add(berth, "--gpus", 0, f"{berth.bin_dir}/berth add --gpus 0 echo inner")
    assert berth.cli("wait", outer).returncode == 0 and output(berth, outer) == "2\n"
    assert berth.cli("wait", 2).returncode == 0


# --- how it looks ---------------------------------------------------------------------------------


def on_a_terminal(berth, *words, env=None):
    """What is written when standard output is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [str(berth.bin_dir / "berth"), *words],
        env=berth.environment({"TERM": "xterm", **(env or {})}),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as running:
        os.close(theirs)
        out = b""
        while select.select([ours], [], [], PATIENCE)[0]:
            try:
                out += os.read(ours, 65536)
            except OSError:
                break
        running.wait(PATIENCE)
    os.close(ours)
    return out.decode()


def test_colour_only_on_a_terminal_that_wants_it(berth):
    berth.wait_one(add(berth, "--gpus", 0, "exit 3"))
    for words in (["ls"], ["show", "1"], ["status"], ["wait", "1"]):
        assert ESCAPE not in berth.cli(*words).stdout
        assert ESCAPE not in on_a_terminal(berth, *words, env={"NO_COLOR": "1"})
        assert ESCAPE not in on_a_terminal(berth, *words, env={"TERM": "dumb"})
    assert f"{ESCAPE}[31mfailed" in on_a_terminal(berth, "ls")


def test_a_terminal_gets_progress_in_place(berth, tmp_path):
    file = tmp_path / "jobs.yaml"
    file.write_text("version: 1\njobs:\n  - {gpus: 0, run: sleep 1}\n  - {gpus: 0, run: 'true'}\n")
    out = on_a_terminal(berth, "run", str(file))
    assert "/2 done" in out and f"{ESCAPE}[J" in out and "2 of 2 succeeded" in out


def test_lines_fit_the_terminal(berth):
    berth.wait_one(add(berth, "--gpus", 0, "--name", "long", "true " + "x" * 500))
    berth.wait_one(add(berth, "--gpus", 0, "true " + "y" * 500))
    for line in on_a_terminal(berth, "ls", env={"COLUMNS": "70", "NO_COLOR": "1"}).splitlines():
        assert len(line) <= 80, line


def test_a_reader_that_goes_away_is_no_crash(berth):
    berth.submit([job("true") for _ in range(300)])
    ls = f"{berth.bin_dir}/berth ls --all --json"
    pipe = f"{ls} | head -c 10; status=${{PIPESTATUS[0]}}; echo; echo $status"
    done = subprocess.run(
        ["bash", "-c", pipe],
        env=berth.environment(),
        capture_output=True,
        text=True,
    )
    assert done.stderr == "" and int(done.stdout.splitlines()[-1]) in (0, 1, 141)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_tells_its_options_and_an_example(make_instance, command):
    berth = make_instance()
    done = berth.cli(command, "--help", check=0)
    assert done.stderr == "" and f"Usage: berth {command}" in done.stdout
    assert f"  berth {command}" in done.stdout.split("Examples:\n")[1]
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert not berth.dir.exists(), "help starts nothing"


def test_help_lists_every_command(make_instance):
    berth = make_instance()
    text = berth.cli("--help", check=0).stdout
    listed = re.findall(r"^  ([a-z]\w*) {2,}\S", text.split("Examples:\n")[0], re.M)
    assert sorted(set(listed) & set(COMMANDS)) == sorted(COMMANDS)
    assert re.fullmatch(r"berth \d+\.\d+\.\d+\n", berth.cli("--version", check=0).stdout)
    fails(berth, "frobnicate", code=2, says="frobnicate")
