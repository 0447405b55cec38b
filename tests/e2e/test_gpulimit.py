"""gpulimit's words: every command of it, by links to the real berth, on simulated cards."""

import pathlib
import signal
import subprocess

import pytest

from berthlib import PATIENCE, Gone, alive, eventually
from gpulimitlib import Gpulimit, blocked, gpulimit  # noqa: F401


# --- add and its options --------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_task_runs_here_with_this_environment(gpulimit, tmp_path):
    task = gpulimit.add("bash", "-c", "echo $GREETING from $PWD", env={"GREETING": "hello"}, cwd=tmp_path)
    gpulimit.wait(task, "complete")
    assert gpulimit("log", task).stdout == f"hello from {tmp_path}\n"
    shown = gpulimit.json("show", task)
    assert shown["run_times"] == 1 and shown["pwd"] == str(tmp_path) and shown["gpu"] == [0]


def test_options_stand_before_the_command_alone(gpulimit):
    first = gpulimit.add("--priority=1", "echo", "--priority=7")
    second = gpulimit.add("--priority", 2, "true")
    gpulimit.wait(first, "complete")
    assert gpulimit.json("show", first)["priority"] == 1
    assert gpulimit.json("show", second)["priority"] == 2
    assert gpulimit.json("show", first)["argv"] == ["echo", "--priority=7"]
    assert gpulimit("log", first).stdout == "--priority=7\n"


def test_a_lower_priority_starts_first(blocked, tmp_path):
    order = tmp_path / "order"
    late = blocked.add("--priority=9", f"echo late >> {order}")
    early = blocked.add("--priority=1", f"echo early >> {order}")
    blocked("kill", blocked.blocker)
    blocked.wait(late, "complete")
    blocked.wait(early, "complete")
    assert order.read_text().split() == ["early", "late"]


def test_output_goes_where_logpath_says(gpulimit, tmp_path):
    task = gpulimit.add("--logpath=out.txt", "echo", "hello", cwd=tmp_path)
    gpulimit.wait(task, "complete")
    assert (tmp_path / "out.txt").read_text() == "hello\n"
    assert gpulimit.json("show", task)["logpath"] == str(tmp_path / "out.txt")
    assert gpulimit("log", task).stdout == "hello\n"


@pytest.mark.parametrize("path", ["./", "new/folder/", "there"])
def test_a_directory_gets_a_log_for_every_task(gpulimit, tmp_path, path):
    (tmp_path / "there").mkdir()
    task = gpulimit.add(f"--logpath={path}", "echo", "hello", cwd=tmp_path)
    gpulimit.wait(task, "complete")
    assert (tmp_path / path / f"{task}.log").read_text() == "hello\n"


def test_wrong_words_are_told(gpulimit):
    assert "did you mean '--priority'" in gpulimit("add", "--prio=1", "true", check=2).stderr
    assert "no command given" in gpulimit("add", check=2).stderr
    assert gpulimit("add", "--priority=x", "true", check=2).stderr.startswith("gpulimit: --priority")
    assert "did you mean 'status'" in gpulimit("statsu", check=2).stderr
    assert "there is no task 77" in gpulimit("show", 77, check=1).stderr
    assert "there is no task 77" in gpulimit("log", 77, check=1).stderr
    assert "usage: gpulimit show" in gpulimit("show", check=2).stderr
    assert "not the id of a task" in gpulimit("debug", "x", check=2).stderr


# --- how cards are shared -------------------------------------------------------------------------


@pytest.mark.smoke
def test_two_tasks_share_a_card_and_a_third_waits_for_what_they_leave(gpulimit):
    gpulimit("set", "TIMER_POLLING_TIME", 3600)  # what they claim stays claimed
    tasks = [gpulimit.train() for _ in range(3)]
    eventually(lambda: gpulimit.listed("running") == tasks[:2], "two share the card")
    reason = eventually(lambda: gpulimit.json("show", tasks[2])["reason"], "why the third waits")
    assert "GPU 0" in reason
    assert gpulimit.listed("waiting") == [tasks[2]]


def test_small_tasks_make_room_for_more(gpulimit):
    gpulimit("set", "TIMER_POLLING_TIME", 0.1)
    tasks = [gpulimit.train(memory="1GiB") for _ in range(5)]
    eventually(lambda: gpulimit.listed("running") == tasks, "all share the card")


def test_a_card_above_the_limit_gets_no_more_tasks(gpulimit):
    gpulimit("set", "TIMER_POLLING_TIME", 0.1)
    gpulimit("set", "SAFETY_KEEP_GPU_MEMORY", 0.8)
    first = gpulimit.train(memory="6GiB")  # a quarter of the card, where a fifth is the limit
    gpulimit.wait(first, "running")
    second = gpulimit.train()
    eventually(lambda: gpulimit.json("show", second)["reason"], "it waits")
    gpulimit("set", "SAFETY_KEEP_GPU_MEMORY", 0.5)
    gpulimit.wait(second, "running")


def test_no_task_starts_where_too_little_memory_is_left(gpulimit):
    gpulimit.berth.simgpu("set", "driver", "host_available", "1MiB")
    gpulimit.berth.restart()  # so that no earlier look counts
    task = gpulimit.add("true")
    eventually(lambda: "keep_host_memory" in (gpulimit.json("show", task)["reason"] or ""),
               "it waits for memory")
    gpulimit("set", "SAFETY_KEEP_MEMORY", 0)
    gpulimit.wait(task, "complete")


def test_a_task_that_runs_out_of_gpu_memory_gets_more(gpulimit):
    task = gpulimit.train(memory="16GiB", seconds="0.1s")  # more than half the card
    gpulimit.wait(task, "complete")
    assert gpulimit.json("show", task)["gpu"] == [0]
    # As much as no card has:
    task = gpulimit.train(memory="40GiB", seconds="0.1s")
    gpulimit.wait(task, "runtime_error")
    shown = gpulimit.json("show", task)
    assert shown["run_times"] > 1 and "GPU memory" in shown["reason"]
    assert "GPU memory" in gpulimit("debug", task).stdout


def test_without_cards_tasks_run_without(make_instance, tmp_path):
    berth = make_instance()
    berth.start()
    gpulimit = Gpulimit(berth, tmp_path / "links")
    gpulimit("set", "SAFETY_KEEP_MEMORY", 0)
    task = gpulimit.add("true")
    gpulimit.wait(task, "complete")
    assert "no GPUs found" in gpulimit("status").stdout


# --- looking --------------------------------------------------------------------------------------


def test_ls_lists_what_runs_what_waits_in_order_and_what_has_ended(blocked):
    ended = blocked.add("true")
    blocked("kill", ended)
    waiting = [blocked.add("echo", word * 60) for word in "ab"]
    assert [t["id"] for t in blocked.json("ls")] == [blocked.blocker, *waiting, ended]
    lines = blocked("ls", env={"COLUMNS": "80"}).stdout.splitlines()
    assert len(lines) == 5 and "STATUS" in lines[0]
    assert "running(GPU:0)" in lines[1] and "killed" in lines[4]
    assert "a" * 60 in blocked("ls", "--all").stdout


def test_an_empty_queue_says_so(gpulimit):
    assert "no tasks" in gpulimit("ls").stdout
    assert gpulimit.json("ls") == []


def test_show_tells_everything_of_a_task(blocked):
    shown = blocked.process(blocked.blocker)
    assert alive(shown["pid"])
    assert pathlib.Path(f"/proc/{shown['pid']}/cmdline").read_bytes() == b"sleep\x00600\x00"
    text = blocked("show", blocked.blocker).stdout
    for word in ("task id:", "status:", "pid:", "priority:", "use gpu:", "run_times:", "out file:",
                 "pwd:", "cmds:", "added:", "started:"):
        assert word in text, text


def test_status_tells_of_the_machine_and_the_queue(blocked):
    blocked.add("true")
    text = blocked("status").stdout
    assert "1 running, 1 waiting" in text and "24 GiB" in text and "MAX_RUNNING_TASKS = 1" in text
    told = blocked.json("status")
    assert told["tasks"]["running"] == 1 and told["gpus"][0]["tasks"] == 1
    assert told["memory"]["total"] > 0 and told["parameters"]["SAFETY_KEEP_GPU_MEMORY"] == 0.5


def test_the_log_of_the_server_is_shown(make_instance, tmp_path):
    berth = make_instance()  # no daemon: gpulimit starts one, whose output goes to its own log
    gpulimit = Gpulimit(berth, tmp_path / "links")
    assert "event=" in gpulimit("log", "main").stdout
    berth.cli("stop", check=0)


def test_jobs_of_other_queues_are_left_alone(gpulimit):
    other = gpulimit.berth.submit_one("sleep 600")
    gpulimit.berth.wait_state(other, "running")
    assert gpulimit.json("ls") == []
    assert "none of gpulimit's tasks" in gpulimit("kill", other, check=1).stderr
    gpulimit("kill", "all")
    assert gpulimit.berth.show(other)["job"]["state"] == "running"


# --- states and what led to them ------------------------------------------------------------------


def test_a_command_that_cannot_start_is_cmd_error_and_debug_says_why(gpulimit, tmp_path):
    (tmp_path / "plain.txt").write_text("no program\n")
    for words, why in [
        (("no-such-program", "--x"), "command not found"),
        (("./plain.txt",), "permission denied"),
        (("/no/such/file",), "command not found"),
    ]:
        task = gpulimit.add(*words, cwd=tmp_path)
        gpulimit.wait(task, "CMD_ERROR")
        assert gpulimit.json("show", task)["run_times"] == 1
        text = gpulimit("debug", task).stdout
        assert "CMD_ERROR" in text and why in text and words[0] in text, text
        assert f"pwd:  {tmp_path}" in text and "PATH: " in text, text


def test_a_directory_that_is_gone_is_cmd_error(blocked, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    task = blocked.add("true", cwd=folder)
    folder.rmdir()
    blocked("kill", blocked.blocker)
    blocked.wait(task, "CMD_ERROR")
    assert str(folder) in blocked("debug", task).stdout


def test_a_program_that_fails_is_runtime_error_with_its_traceback(gpulimit):
    task = gpulimit.add("python3", "-c", "raise ValueError('no such thing')")
    gpulimit.wait(task, "runtime_error")
    assert "ValueError: no such thing" in gpulimit("debug", task).stdout
    missing = gpulimit.add("python3", "no-such-file.py")
    gpulimit.wait(missing, "runtime_error")
    assert gpulimit.json("show", missing)["exit_code"] == 2


def test_a_task_that_fails_is_run_as_often_as_allowed(gpulimit):
    gpulimit("set", "MAX_ERR_TIMES", 6)
    task = gpulimit.add("false")
    gpulimit.wait(task, "runtime_error")
    assert gpulimit.json("show", task)["run_times"] == 6


def test_debug_has_nothing_to_say_of_what_went_well(gpulimit):
    task = gpulimit.add("true")
    gpulimit.wait(task, "complete")
    assert "nothing went wrong" in gpulimit("debug", task).stdout


# --- kill, rm, clean ------------------------------------------------------------------------------


@pytest.mark.smoke
def test_kill_ends_a_task_and_returns_when_it_has_ended(blocked):
    pid = blocked.process(blocked.blocker)["pid"]
    assert blocked("kill", blocked.blocker).stdout == f"killed: {blocked.blocker}\n"
    assert not alive(pid)
    assert blocked.status(blocked.blocker) == "killed"
    assert "had already ended" in blocked("kill", blocked.blocker).stdout


def test_kill_takes_ranges_and_all(blocked):
    a, b, c = [blocked.add("true") for _ in range(3)]
    blocked("kill", f"{a}-{b}")
    assert blocked.listed("killed") == [a, b]
    blocked("kill", "all")
    assert blocked.listed("killed") == [blocked.blocker, a, b, c]
    assert "nothing to kill" in blocked("kill", "all").stdout


def test_rm_kills_what_runs_and_forgets_it(blocked):
    waiting = blocked.add("sleep", 600)
    pid = blocked.process(blocked.blocker)["pid"]
    blocked("rm", waiting, blocked.blocker)
    assert not alive(pid)
    assert blocked.json("ls") == []
    assert "there is no task" in blocked("show", blocked.blocker, check=1).stderr
    assert "name the tasks by their ids" in blocked("rm", "all", check=2).stderr


def test_clean_removes_what_is_complete_or_could_not_start(gpulimit):
    good, bad, wrong = gpulimit.add("true"), gpulimit.add("false"), gpulimit.add("no-such-program")
    gpulimit.wait(good, "complete")
    gpulimit.wait(bad, "runtime_error")
    gpulimit.wait(wrong, "CMD_ERROR")
    assert gpulimit("clean").stdout == f"removed: {good},{wrong}\n"
    assert [t["id"] for t in gpulimit.json("ls")] == [bad]
    assert "there is nothing to remove" in gpulimit("clean", "killed").stdout
    gpulimit("clean", "runtime_error")
    assert gpulimit.json("ls") == []
    assert "there is no status 'done'" in gpulimit("clean", "done", check=2).stderr
    assert "gpulimit rm" in gpulimit("clean", "waiting", check=2).stderr


# --- order, parameters, start ---------------------------------------------------------------------


def test_mv_moves_a_waiting_task(blocked):
    a, b, c = [blocked.add("true") for _ in range(3)]
    blocked("mv", c)
    assert blocked.listed("waiting") == [c, a, b]
    blocked("move", c, 1)
    assert blocked.listed("waiting") == [a, c, b]
    blocked("mv", a, 99)
    assert blocked.listed("waiting") == [c, b, a]
    low = blocked.add("--priority=9", "true")
    blocked("mv", low, 0)
    assert blocked.listed("waiting") == [low, c, b, a]
    assert "only waiting tasks" in blocked("mv", blocked.blocker, check=1).stderr
    assert "is no place" in blocked("mv", a, "x", check=2).stderr


def test_parameters_have_the_defaults_of_gpulimit_and_are_kept(gpulimit):
    assert gpulimit.json("set") == {
        "TIMER_POLLING_TIME": 10,
        "MAX_ERR_TIMES": 1,
        "MAX_RUNNING_TASKS": -1,
        "SAFETY_KEEP_MEMORY": 0.2,
        "SAFETY_KEEP_GPU_MEMORY": 0.5,
    }
    text = gpulimit("set").stdout
    assert "SAFETY_KEEP_GPU_MEMORY = 0.5\n" in text and "must be free when a task starts" in text
    changed = {
        "TIMER_POLLING_TIME": 2.5,
        "MAX_ERR_TIMES": 3,
        "MAX_RUNNING_TASKS": 2,
        "SAFETY_KEEP_MEMORY": 0.1,
        "SAFETY_KEEP_GPU_MEMORY": 0.25,
    }
    for name, value in changed.items():
        assert gpulimit("set", name, value).stdout == f"{name} = {value}\n"
        assert gpulimit("set", name).stdout == f"{name} = {value}\n"
    gpulimit.berth.restart()
    assert gpulimit.json("set") == changed
    gpulimit("set", "MAX_RUNNING_TASKS", -1)
    assert gpulimit.json("set")["MAX_RUNNING_TASKS"] == -1


def test_parameters_change_gpulimits_queue_alone(gpulimit):
    before = gpulimit.berth.api("GET", "/api/rules")["rules"]
    gpulimit("set", "SAFETY_KEEP_GPU_MEMORY", 0.25)
    after = gpulimit.berth.api("GET", "/api/rules")["rules"]
    assert [r for r in after if r["key"] != "queue.gpulimit.limit"] == before


def test_wrong_values_are_refused(gpulimit):
    assert "did you mean 'MAX_ERR_TIMES'" in gpulimit("set", "MAX_ERR_TIME", 2, check=2).stderr
    assert "between 0 and 0.99" in gpulimit("set", "SAFETY_KEEP_MEMORY", 20, check=2).stderr
    assert gpulimit.json("set")["SAFETY_KEEP_MEMORY"] == 0.2


def test_start_runs_a_waiting_task_whatever_the_limits_say(blocked):
    blocked("set", "SAFETY_KEEP_GPU_MEMORY", 0.9)
    waiting, other = blocked.train(), blocked.train()
    blocked("start", waiting)
    blocked.wait(waiting, "running")
    assert blocked.status(other) == "waiting"
    assert "runs already" in blocked("start", waiting).stdout


def test_start_without_an_id_lets_all_waiting_tasks_go(blocked):
    tasks = [blocked.add("true") for _ in range(3)]
    blocked("start")
    for task in tasks:
        blocked.wait(task, "complete")
    assert blocked.status(blocked.blocker) == "running"
    assert "no task is waiting" in blocked("start").stdout


def test_start_lets_a_paused_task_go_on(blocked):
    blocked.berth.cli("pause", blocked.blocker, check=0)
    assert blocked.status(blocked.blocker) == "paused"
    blocked("start", blocked.blocker)
    assert blocked.status(blocked.blocker) == "running"


@pytest.mark.smoke
def test_start_revives_tasks_that_have_ended_under_their_ids(gpulimit, tmp_path):
    mark = tmp_path / "mark"
    failed = gpulimit.add(f"test -e {mark}")
    missing = gpulimit.add(tmp_path / "program")
    killed = gpulimit.add("sleep", 600)
    gpulimit.wait(failed, "runtime_error")
    gpulimit.wait(missing, "CMD_ERROR")
    gpulimit.wait(killed, "running")
    gpulimit("kill", killed)
    mark.touch()
    (tmp_path / "program").write_text("#!/bin/sh\necho there now\n")
    (tmp_path / "program").chmod(0o755)
    for task in (failed, missing, killed):
        gpulimit("start", task)
    gpulimit.wait(failed, "complete")
    gpulimit.wait(missing, "complete")
    gpulimit.wait(killed, "running")
    assert gpulimit.json("show", failed)["run_times"] == 2
    assert gpulimit("log", missing).stdout == "there now\n"
    gpulimit("start", failed)
    eventually(lambda: gpulimit.json("show", failed)["run_times"] == 3, "what is complete runs again")


# --- programs -------------------------------------------------------------------------------------


def test_help_is_told_in_every_way(gpulimit):
    told = gpulimit("help").stdout
    assert told == gpulimit("-h").stdout == gpulimit("--help").stdout == gpulimit().stdout
    assert gpulimit("help", program="gpulimitc").stdout == told
    for command in ("help add ls show rm clean kill mv set start log status debug").split():
        assert f"\n  {command} " in told, told
        page = gpulimit("help", command).stdout
        assert f"Usage: gpulimit {command}" in page
        if command != "help":
            assert gpulimit(command, "--help").stdout == page == gpulimit(command, "-h").stdout
    assert gpulimit("help", "move").stdout == gpulimit("help", "mv").stdout
    assert "did you mean 'kill'" in gpulimit("help", "kil", check=2).stderr
    assert gpulimit("--version").stdout.startswith("gpulimit")


def answers(berth):
    try:
        return berth.status()
    except Gone:
        return None


def test_gpulimit_server_serves_in_the_foreground(make_instance, tmp_path):
    berth = make_instance(gpus="sim:1x24GiB")
    gpulimit = Gpulimit(berth, tmp_path / "links")
    server = subprocess.Popen(
        [str(tmp_path / "links" / "gpulimit_server")],
        env=berth.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert f"serving, pid {server.pid}" in server.stderr.readline()
        eventually(lambda: answers(berth), "it serves")
        berth.simgpu("set", "driver", "host_available", "64TiB")
        task = gpulimit.add("true")
        gpulimit.wait(task, "complete")
        assert berth.status()["pid"] == server.pid
        again = gpulimit(program="gpulimit_server")
        assert "runs already" in again.stdout
        assert "event=" in gpulimit("log", "main").stdout
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0
    finally:
        server.kill()
        server.wait()
        server.stderr.close()
    assert gpulimit("now", program="gpulimit_server", check=2).stderr.startswith("gpulimit_server: ")
    assert "foreground" in gpulimit("--help", program="gpulimit_server").stdout
