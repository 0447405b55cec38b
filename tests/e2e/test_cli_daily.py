"""The CLI all day long: filters, many logs, the pager, --watch, the doctor, completion, manuals."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from berthlib import PATIENCE, eventually, job, read_bytes

ESCAPE = "\x1b"
CTRL_C = "\x03"


def ids_of(done):
    return [j["id"] for j in json.loads(done.stdout)]


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


# --- ls -------------------------------------------------------------------------------------------


def test_ls_finds_jobs_by_what_is_known_of_them(berth):
    berth.wait_one(berth.submit_one("exit 3", name="lr-0.1", queue="car"))
    berth.wait_one(berth.submit_one("true", name="lr-0.2", queue="bus"))
    waiting = berth.submit([job("true", gpus=1, name="eval", queue="car"), job("true", gpus=1)])
    batch = berth.show(waiting[0])["job"]["batch"]

    def ls(*words):
        return ids_of(berth.cli("ls", *words, "--json", check=0))

    assert ls("--queue", "car") == [1, waiting[0]]
    assert ls("--queue", "car", "--state", "failed,killed") == [1]
    assert ls("--name", "lr-*") == [1, 2]
    assert ls("--name", "lr-*", "--limit", 1) == [2]
    assert ls("--name", "lr-*", "1,3-9") == [1]
    assert ls("--batch", batch) == waiting
    assert ls("--since", "1h") == [1, 2, *waiting]
    assert ls("--since", "yesterday", "--state", "failed") == [1]
    # What has not ended is of now, whenever that was.
    eventually(
        lambda: ls("--since", "1s") == waiting, "two have ended more than a second ago", every=0.2
    )
    assert berth.cli("ls", "--name", "nothing*", check=0).stderr == "berth: no such jobs\n"
    done = berth.cli("ls", "--since", "teatime")
    assert done.returncode == 2 and "write 2h, 3 days, yesterday or" in done.stderr


def test_colour_can_be_asked_for_and_refused(berth, terminal):
    berth.wait_one(berth.submit_one("exit 3"))
    assert f"{ESCAPE}[31mfailed" in berth.cli("ls", "--color=always", check=0).stdout
    assert f"{ESCAPE}[31mfailed" in berth.cli("--color", "always", "ls", check=0).stdout
    assert ESCAPE not in terminal(berth, "ls", "--color=never").finish()
    assert f"{ESCAPE}[31m" in terminal(
        berth, "ls", "--color", "always", env={"NO_COLOR": "1"}
    ).finish()
    done = berth.cli("ls", "--color", "mauve")
    assert done.returncode == 2 and "'mauve' is not auto, always or never" in done.stderr


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_tables_fit_terminals_of_any_width(gpu_berth, terminal, columns):
    berth = gpu_berth
    berth.wait_one(berth.submit_one("exit 3", name="a-rather-long-name-of-a-job-" + "x" * 40))
    berth.submit([job("sleep 1000", gpus=1, name=f"train-{n}", queue=f"q{n % 2}") for n in range(4)])
    berth.wait_started(2)
    for words in (["ls"], ["gpus"], []):
        text = plain(terminal(berth, *words, "--color=never", columns=columns).finish())
        lines = text.splitlines()
        assert all(len(line) <= columns for line in lines), (columns, text)
        assert len(lines) <= 23
    listed = plain(terminal(berth, "ls", "--color=never", columns=40).finish())
    assert "running" in listed and "failed" in listed, "states are never cut"


# --- the overview ---------------------------------------------------------------------------------


def test_bare_berth_tells_what_matters_now(gpu_berth, terminal):
    berth = gpu_berth
    assert "nothing here yet" in berth.cli(check=0).stdout
    berth.wait_one(berth.submit_one("exit 3", name="broken"))
    running = berth.submit_one("sleep 1000", gpus=2, name="train", time_ms=7_200_000)
    berth.wait_started(running)
    berth.submit([job("true", gpus=1, name=f"w{n}") for n in range(40)])
    text = plain(terminal(berth).finish())
    assert len(text.splitlines()) <= 23
    assert "1 running, 40 queued, 1 failed since yesterday" in text
    assert re.search(r"Running \(1\)\n +2 train +GPU 0,1 +[█░]+ .* of 2h 00m", text), text
    assert re.search(r"Waiting \(40\)\n +3 w0 ", text), text
    assert "Failed since yesterday (1)\n" in text and "broken  exited with code 3" in text
    assert re.search(r"GPU +0 .* job 2", text) and "berth log 1" in text


# --- the last job ---------------------------------------------------------------------------------


def test_commands_mean_the_last_job_when_none_is_named(berth, terminal):
    for words in (["show"], ["log"], ["wait"]):
        done = berth.cli(*words)
        assert done.returncode == 1 and "there are no jobs yet" in done.stderr
    berth.wait_one(berth.submit_one("echo first", name="first"))
    berth.wait_one(berth.submit_one("echo second; exit 4", name="second"))
    assert berth.cli("log", check=0).stdout == "second\n"
    shown = berth.cli("show", check=0)
    assert shown.stdout.startswith("job          2 second\n") and shown.stderr == ""
    waited = berth.cli("wait", check=1)
    assert waited.stdout == "job 2 second failed: exited with code 4\n"
    assert "the last one, job 2 second, has failed" in berth.cli("why", check=0).stdout
    assert "berth: job 2 second, the last one" in plain(terminal(berth, "log").finish())


# --- log ------------------------------------------------------------------------------------------


def test_many_logs_at_once_each_line_behind_its_name(berth):
    for n in range(1, 4):
        berth.wait_one(
            berth.submit_one(f"printf 'a{n}\\nb{n}\\n10%%\\r99%%\\nend{n}'", name=f"t{n}")
        )
    done = berth.cli("log", "1-2,3", check=0)
    assert done.stdout == "".join(
        f"t{n} | a{n}\nt{n} | b{n}\nt{n} | 99%\nt{n} | end{n}\n" for n in range(1, 4)
    )
    # One line, on which a progress bar went back to its beginning; reading it as text shows two.
    assert berth.cli("log", "2", "-n", 2, check=0).stdout == "10%\n99%\nend2"
    assert berth.cli("log", "1-2", "--lines=1", check=0).stdout == "t1 | end1\nt2 | end2\n"
    assert f"{ESCAPE}[36mt1 |{ESCAPE}[0m a1" in berth.cli("log", "1,2", "--color=always").stdout
    told = json.loads(berth.cli("log", "2", "--json", check=0).stdout)
    assert [(t["id"], t["name"], t["state"]) for t in told] == [(2, "t2", "succeeded")]
    [attempt] = told[0]["attempts"]
    assert attempt["attempt"] == 1 and attempt["size"] == len(read_bytes(attempt["path"]))
    missing = berth.cli("log", "1,77")
    assert missing.returncode == 1 and "there is no job 77" in missing.stderr


def test_logs_are_followed_together_and_across_retries(berth, tmp_path):
    gate = tmp_path / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.05; done"
    berth.submit(
        [
            job(f"echo one; {wait}; echo two", name="a"),
            job(f"echo try; {wait}; [ -e {gate}2 ] || {{ touch {gate}2; exit 1; }}; echo good",
                name="b", retries=1),
        ]
    )
    follow = subprocess.Popen(
        [str(berth.bin_dir / "berth"), "log", "-f", "1-2"],
        env=berth.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    seen = {follow.stdout.readline(), follow.stdout.readline()}
    assert seen == {"a | one\n", "b | try\n"}, "lines come as they are written"
    gate.touch()
    out, err = follow.communicate(timeout=PATIENCE)
    assert follow.returncode == 0, (out, err)
    assert sorted(out.splitlines()) == ["a | two", "b | good", "b | try"]
    assert "attempt 2 of job 2" in err


def test_an_interrupted_follow_exits_with_130(berth, terminal):
    berth.submit_one("echo here; sleep 1000")
    follow = terminal(berth, "log", "-f", "1")
    follow.expect("here")
    follow.send(CTRL_C)
    follow.finish()
    assert follow.code == 130


# --- the pager ------------------------------------------------------------------------------------


def test_long_output_goes_through_a_pager_on_a_terminal_only(berth, terminal):
    berth.submit([job("true", gpus=1, name=f"job-{n}") for n in range(60)])
    pager = {"PAGER": "sed s/^/paged:/"}
    text = plain(terminal(berth, "ls", "--all", env=pager).finish())
    assert text.count("paged:") == 61
    assert "paged:" not in terminal(berth, "ls", "--limit", "5", "--all", env=pager).finish()
    assert "paged:" not in terminal(berth, "ls", "--all", "--no-pager", env=pager).finish()
    assert "paged:" not in terminal(berth, "ls", "--all", env={"PAGER": "cat"}).finish()
    assert "paged:" not in terminal(berth, "ls", "--all", env={**pager, "BERTH_PAGER": ""}).finish()
    assert "paged:" not in berth.cli("ls", "--all", env=pager, check=0).stdout
    berth.kill_jobs(range(1, 61))
    berth.wait_one(berth.submit_one("seq 1000"))
    assert plain(terminal(berth, "log", env=pager).finish()).count("paged:") == 1000


def test_leaving_the_pager_early_is_no_failure(berth, terminal):
    berth.wait_one(berth.submit_one("seq 200000"))
    early = terminal(berth, "log", env={"BERTH_PAGER": "head -n 3"})
    assert plain(early.finish()).splitlines()[-3:] == ["1", "2", "3"]
    assert early.code == 0


@pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
def test_less_is_the_usual_pager(berth, terminal):
    berth.submit([job("true", gpus=1, name=f"job-{n}") for n in range(60)])
    less = terminal(berth, "ls", "--all")
    less.expect("job-10")
    less.send(" ")
    less.expect("job-30")
    less.send("q")
    less.finish()
    assert less.code == 0


# --- --watch --------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [["ls"], ["gpus"], ["status"], []])
def test_watch_redraws_in_place_until_q(gpu_berth, terminal, words):
    berth = gpu_berth
    watch = terminal(berth, *words, "--watch=0.2")
    watch.expect(re.escape(f"{ESCAPE}[?1049h"))
    watch.expect("q ends")
    watch.expect(re.escape(f"{ESCAPE}[H"))
    if not words:
        berth.submit_one("sleep 1000", name="newcomer")
        watch.expect("newcomer")
    watch.send("q")
    assert f"{ESCAPE}[?1049l" in watch.finish()
    assert watch.code == 0


def test_watch_ends_with_ctrl_c_and_waits_for_a_daemon_that_went(berth, terminal):
    berth.submit_one("sleep 1000", name="here")
    watch = terminal(berth, "ls", "--watch=0.2")
    watch.expect("here")
    berth.stop()
    watch.expect(r"sock|daemon|answer")  # told on the screen
    assert not berth.running()
    watch.send(CTRL_C)
    assert f"{ESCAPE}[?1049l" in watch.finish()
    assert watch.code == 130
    assert not (berth.dir / "sock").exists(), "watching starts no daemon"


def test_a_watch_that_is_ended_gives_the_screen_back(berth, terminal):
    watch = terminal(berth, "status", "--watch")
    watch.expect("q ends")
    os.kill(watch.pid, signal.SIGTERM)
    assert f"{ESCAPE}[?1049l" in watch.finish()
    assert watch.code == 128 + signal.SIGTERM


def test_watch_is_refused_where_there_is_no_terminal(berth):
    done = berth.cli("ls", "--watch")
    assert done.returncode == 1 and "draws on a terminal" in done.stderr and done.stdout == ""
    assert berth.cli("ls", "--watch", "--json").returncode == 2
    done = berth.cli("--watch", "ls")
    assert done.returncode == 2 and "berth ls --watch" in done.stderr


# --- run and add ----------------------------------------------------------------------------------


def test_ctrl_c_detaches_from_a_run_and_says_how_to_go_on(berth, terminal, tmp_path):
    file = tmp_path / "jobs.yaml"
    file.write_text("version: 1\njobs:\n  - {gpus: 0, run: sleep 1000}\n  - {gpus: 0, run: sleep 1}\n")
    run = terminal(berth, "run", str(file))
    run.expect(r"/2 done")
    berth.wait_started(1)
    run.send(CTRL_C)
    text = plain(run.finish())
    assert run.code == 130
    assert "jobs 1-2 go on" in text
    for hint in ("berth log -f 1-2", "berth wait 1-2", "berth kill 1-2"):
        assert hint in text
    assert berth.show(1)["job"]["state"] == "running"


def test_a_command_that_chooses_its_own_gpus_is_warned_about(gpu_berth, tmp_path):
    berth = gpu_berth
    done = berth.cli("add", "--name", "mine", "CUDA_VISIBLE_DEVICES=1 true", check=0)
    assert "job 'mine' sets CUDA_VISIBLE_DEVICES itself" in done.stderr
    file = tmp_path / "jobs.yaml"
    file.write_text(
        "version: 1\njobs:\n"
        "  - {name: a, run: 'CUDA_VISIBLE_DEVICES=0 true'}\n"
        "  - {name: b, run: 'true', env: {CUDA_VISIBLE_DEVICES: '1'}}\n"
        "  - {name: c, run: 'true'}\n"
        "  - {name: d, run: 'CUDA_VISIBLE_DEVICES= true', gpus: 0}\n"
    )
    done = berth.cli("run", "--detach", file, check=0)
    assert done.stderr.count("sets CUDA_VISIBLE_DEVICES itself") == 2
    assert "'c'" not in done.stderr and "'d'" not in done.stderr


# --- the doctor -----------------------------------------------------------------------------------


def diagnosis(berth, *, env=None, code=None):
    done = berth.cli("doctor", "--json", env=env, check=code)
    return {entry["check"]: entry for entry in json.loads(done.stdout)}


def test_the_doctor_starts_nothing_and_finds_nothing_wrong(make_instance):
    berth = make_instance(gpus="sim:2x24GiB")
    found = diagnosis(berth, env={"BERTH_TEST_ROOT": str(berth.dir / "none")}, code=0)
    assert found["daemon"]["text"].startswith("none runs")
    assert not berth.dir.exists()
    berth.start()
    found = diagnosis(berth, env={"BERTH_TEST_ROOT": str(berth.dir / "none")}, code=0)
    assert f"pid {berth.pid} answers" in found["daemon"]["text"]
    assert all(entry["advice"] is None for entry in found.values() if entry["result"] == "ok")
    text = berth.cli("doctor", env={"BERTH_TEST_ROOT": str(berth.dir / "none")}, check=0).stdout
    assert re.search(r"^ok +GPUs +simulated", text, re.M) and "0 wrong" in text


def test_the_doctor_finds_what_is_wrong(make_instance, tmp_path):
    berth = make_instance(gpus="auto")
    berth.dir.mkdir(mode=0o700)
    root = tmp_path / "root"
    (root / "run/systemd/seats").mkdir(parents=True)
    (root / "etc/systemd/logind.conf.d").mkdir(parents=True)
    (root / "etc/systemd/logind.conf").write_text("[Login]\nKillUserProcesses=no\n")
    (root / "etc/systemd/logind.conf.d/50-lab.conf").write_text("[Login]\nKillUserProcesses = yes\n")
    (root / "dev").mkdir()
    (root / "dev/nvidiactl").touch()
    berth.dir.chmod(0o777)
    os.utime(berth.dir, None)
    (berth.dir / "berth.db").touch()
    future = time.time() + 86_400
    os.utime(berth.dir / "berth.db", (future, future))
    (berth.dir / "daemon.log").write_text("2024-01-01 level=error pid=1 event=store what=\"torn\"\n")
    found = diagnosis(berth, env={"BERTH_TEST_ROOT": str(root)}, code=1)
    assert found["directory"]["result"] == "fail" and "chmod 700" in found["directory"]["advice"]
    assert found["logout"]["result"] == "fail" and "50-lab.conf" in found["logout"]["text"]
    assert found["GPUs"]["result"] == "fail" and "libnvidia-ml.so.1" in found["GPUs"]["text"]
    assert found["clock"]["result"] == "warn" and "set back" in found["clock"]["text"]
    assert found["daemon log"]["result"] == "warn" and "torn" in found["daemon log"]["text"]
    assert not (berth.dir / "sock").exists()


# --- completion -----------------------------------------------------------------------------------


@pytest.fixture
def completing(gpu_berth, tmp_path):
    """An instance with two jobs, and the path of a shell's script."""
    gpu_berth.submit([job("true", gpus=9, name="alpha", queue="car"), job("true", gpus=9)])

    def script(shell):
        file = tmp_path / f"completion.{shell}"
        file.write_text(gpu_berth.cli("completion", shell, check=0).stdout)
        return file

    path = f"{gpu_berth.bin_dir}:{os.environ['PATH']}"
    return gpu_berth, gpu_berth.environment({"PATH": path, "LANG": "C.UTF-8"}), script


def test_bash_completes_commands_options_jobs_and_queues(completing):
    _, env, script = completing

    def offers(*words):
        harness = (
            'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; '
            '_berth; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-c", harness, "bash", str(script("bash")), *words],
            env=env, capture_output=True, text=True, timeout=PATIENCE,
        )
        assert done.stderr == "", done
        return set(done.stdout.split())

    assert {"add", "ls", "doctor", "completion"} <= offers("berth", "")
    assert offers("berth", "sho") == {"show"}
    assert offers("berth", "ls", "--sta") == {"--state"}
    assert offers("berth", "ls", "--state", "fai") == {"failed"}
    assert offers("berth", "ls", "--state", "failed,k") == {"failed,killed"}
    assert offers("berth", "ls", "--color", "=", "n") == {"never"}
    assert offers("berth", "ls", "--queue", "") == {"car", "default"}
    assert offers("berth", "--color", "never", "show", "") == {"1", "2"}
    assert offers("berth", "log", "1,") == {"1,1", "1,2"}
    assert "--gpus" in offers("berth", "add", "--gp") and not offers("berth", "add", "echo", "--gp")


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_commands_options_jobs_and_queues(completing):
    _, env, script = completing

    def offers(line):
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {script('fish')}; complete -C '{line}'"],
            env=env, capture_output=True, text=True, timeout=PATIENCE,
        )
        return dict((entry + "\t").split("\t")[:2] for entry in done.stdout.splitlines())

    assert "add" in offers("berth ")
    assert offers("berth doc") == {"doctor": "Find and explain what is wrong with this machine"}
    assert "--state" in offers("berth ls --st")
    assert "failed" in offers("berth ls --state f")
    assert "failed,killed" in offers("berth ls --state failed,k")
    assert offers("berth show ")["1"] == "alpha, queued"
    assert set(offers("berth ls --queue ")) == {"car", "default"}


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_commands_options_jobs_and_queues(completing, terminal, tmp_path):
    berth, env, script = completing
    home = tmp_path / "zdot"
    home.mkdir()
    (home / ".zshrc").write_text(
        "PS1='%% '\nautoload -U compinit; compinit -u -D\n"
        f"source {script('zsh')}\nzstyle ':completion:*' menu no\nunsetopt beep\n"
    )
    shell = terminal(
        berth, command=["zsh", "-i"],
        env={**env, "ZDOTDIR": str(home), "TERM": "dumb", "HOME": str(home)},
        columns=120,
    )
    shell.expect("% ")
    for typed, offered in [
        ("berth sho\t", "berth show "),
        ("berth ls --sta\t", "--state="),
        ("berth ls --state=fai\t", "failed"),
        ("berth ls --queue c\t", "car "),
        ("berth show 1\t", "1 "),
        ("berth show \t", "alpha, queued"),
    ]:
        shell.send(typed)
        shell.expect(re.escape(offered))
        shell.send("\x15")  # away with the line
        shell.send("echo mar''ker\r")
        shell.expect("marker")
        shell.expect("% ")
    shell.send("exit\r")


def test_completion_is_silent_without_a_daemon(make_instance):
    berth = make_instance()
    done = berth.cli("__complete", "jobs", check=0)
    assert (done.stdout, done.stderr) == ("", "") and not berth.dir.exists()
    done = berth.cli("completion", "tcsh")
    assert done.returncode == 2 and "'tcsh' is not bash, zsh or fish" in done.stderr


# --- manual pages ---------------------------------------------------------------------------------


def help_of(berth, *words):
    return berth.cli(*words, "--help", check=0).stdout


def commands_of(text):
    """Those that `berth --help` lists."""
    return re.findall(r"^  ([a-z]\w*) {2,}\S", text.split("Examples:")[0], re.M)


def test_every_command_and_option_is_in_its_manual_page(make_instance, tmp_path):
    berth = make_instance()
    pages = tmp_path / "man"
    berth.cli("__man", pages, check=0)
    main = help_of(berth)
    commands = commands_of(main)
    assert {"add", "ls", "doctor"} <= set(commands)
    assert {p.name for p in pages.iterdir()} == {"berth.1", *(f"berth-{c}.1" for c in commands)}
    for command in ["", *commands]:
        page = (pages / (f"berth-{command}.1" if command else "berth.1")).read_text()
        text = help_of(berth, *command.split())
        for option in re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, re.M):
            assert f"\\fB{option.replace('-', chr(92) + '-')}\\fR" in page, (command, option)
        for positional in re.findall(r"^  ([A-Z]+)\b", text, re.M):
            assert f"\\fI{positional}\\fR" in page, (command, positional)
    for command in commands:
        assert f"berth\\-{command}" in (pages / "berth.1").read_text()


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_manual_pages_are_clean_roff(make_instance, tmp_path):
    berth = make_instance()
    berth.cli("__man", tmp_path / "man", check=0)
    for page in (tmp_path / "man").iterdir():
        done = subprocess.run(
            ["groff", "-man", "-ww", "-Tutf8", "-z", str(page)], capture_output=True, text=True
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), page


def test_help_groups_the_commands_and_each_has_an_example(make_instance):
    berth = make_instance()
    text = help_of(berth)
    at = [text.index(f"\n{group}:\n") for group in ("Submit", "Look", "Control", "Shell")]
    assert at == sorted(at) and "__" not in text
    for command in commands_of(text):
        told = help_of(berth, command)
        assert f"  berth {command}" in told.split("Examples:\n")[1], command
        assert max(map(len, told.splitlines())) <= 80, command
    done = berth.cli("lss")
    assert done.returncode == 2 and "there is no command 'lss'; did you mean 'ls'?" in done.stderr
