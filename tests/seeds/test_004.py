"""What document 004 promises: gpulimit, a server and its client, on simulated cards."""

import pathlib
import re
import signal
import stat
import subprocess
import sys

import pytest

from berthlib import BIN, BUILD, GIB, PATIENCE, REPO, Gone, alive, eventually, process_stat
from gpulimitlib import Gpulimit, blocked, gpulimit  # noqa: F401
from promises import Elsewhere, promise

sys.path.insert(0, str(REPO / "packaging"))

import package  # noqa: E402

TOP = "gpulimit: 使用GPU（机器学习算法）的任务队列管理"
COMMANDS = "前台命令"
ADD = "添加任务"
PARAMETERS = "更改调度算法参数"

ELSEWHERE = [
    Elsewhere(ADD, "（默认在/tmp/gpulimit下）", "different",
              "the log is in berth's own directory, `gpulimit show` names it and `gpulimit log` shows it: what lies in "
              "/tmp, others can read, and a reboot or the next server empties it"),
    Elsewhere("TODO list", "- [x] add commits", "internal module",
              "comments in gpulimit's own sources; a user has `gpulimit help [cmd]` for every command"),
]

SILENT = [
    # Why such a program is wanted at all.
    "研究机器学习算法，针对不同参数，常常需要跑多组实验。而机器学习的算法通常占用大量的内存、显存。通常无法同时运行多组程序。",
    # The line before a list.
    "现有调度算法下，共有参数如下：",
    "整个系统调度抽为以下4种：",
    "目前调度算法为：",
    "task信息：",
    "- status",
    # What had changed in a version, without saying into what.
    "- 重写status状态",
    "- 调整task调度",
    "- 简化调度算法",
]


@pytest.fixture
def two_cards(make_instance, tmp_path):
    berth = make_instance(gpus="sim:2x24GiB")
    berth.start()
    berth.simgpu("set", "driver", "host_available", "64TiB")
    return Gpulimit(berth, tmp_path / "links")


def serving(berth):
    """The pid of the server that answers, if one does."""
    try:
        return berth.status()["pid"]
    except (Gone, OSError):
        return None


# --- what it is -----------------------------------------------------------------------------------


@promise("004", TOP, "这是一个任务队列自动调度的程序。")
def test_a_queue_is_worked_off_by_itself(gpulimit, tmp_path):
    gpulimit("set", "MAX_RUNNING_TASKS", 1)
    tasks = [gpulimit.add(f"echo {n} >> order", cwd=tmp_path) for n in range(5)]
    for task in tasks:
        gpulimit.wait(task, "complete")
    assert (tmp_path / "order").read_text().split() == list("01234")


@promise("004", TOP, "本调度程序可以自动安排不同GPU上的任务数量，自动调度")
def test_tasks_are_dealt_to_the_cards_by_what_these_have_room_for(two_cards):
    two_cards("set", "TIMER_POLLING_TIME", 3600)  # nothing that is claimed is given away
    tasks = [two_cards.train() for _ in range(5)]
    eventually(lambda: two_cards.listed("running") == tasks[:4], "four run")
    cards = [two_cards.json("show", task)["gpu"] for task in tasks[:4]]
    assert sorted(cards) == [[0], [0], [1], [1]]
    assert [gpu["tasks"] for gpu in two_cards.json("status")["gpus"]] == [2, 2]
    assert two_cards.status(tasks[4]) == "waiting"


@promise("004", TOP, "同时提供前端管理界面，供手动管理。")
def test_a_screen_shows_the_tasks_and_manages_them(blocked, screen_of):
    top = screen_of(blocked.berth, "top")
    top.sees(rf"^> +{blocked.blocker} .*sleep")
    top.send("K")
    top.sees(r"^kill job .*\[y/n\]")
    top.send("y")
    blocked.wait(blocked.blocker, "killed")


# --- install --------------------------------------------------------------------------------------


@promise("004", "源码安装", "git clone https://github.com/lichunown/gpu-limit.git cd gpu-limit python setup.py install")
def test_what_is_built_from_source_has_gpulimits_names():
    for name in ("gpulimit", "gpulimitc", "gpulimit_server", "gpulimit-server"):
        said = subprocess.run([BIN / name, "--help"], capture_output=True, text=True, check=True)
        assert said.stdout.startswith("gpulimit"), said


@promise("004", "pip 安装", "本项目已上传pypi，可直接通过pip安装")
@promise("004", "pip 安装", "pip3 install gpulimit")
def test_a_package_brings_gpulimits_names_ready_to_run(tmp_path):
    tree = package.collect(BUILD, tmp_path, "0")
    there = tmp_path / "there"
    for name in [f"bin/{program}" for program in package.PROGRAMS] + [package.LIBRARY]:
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_bytes(tree.files[name][0])
        (there / name).chmod(0o755)
    for name, target in tree.links.items():
        (there / name).symlink_to(target)
    env = {"PATH": f"{there}/bin:/usr/bin:/bin", "HOME": str(tmp_path), "BERTH_DIR": str(tmp_path / "d"),
           "BERTH_GPUS": "sim:1x24GiB"}

    def run(*words):
        return subprocess.run(words, env=env, capture_output=True, text=True, timeout=PATIENCE, check=True)

    try:
        run("gpulimit", "set", "SAFETY_KEEP_MEMORY", "0")
        assert run("gpulimit", "add", "echo", "hello").stdout == "1\n"
        run("berth", "wait", "1")
        assert run("gpulimitc", "log", "1").stdout == "hello\n"
    finally:
        run("berth", "stop")


# --- the server -----------------------------------------------------------------------------------


@promise("004", "usage", "本程序使用linux socket进行交互，后台`gpulimit_server`动态调度，前台`gpulimit`发送命令，获取信息。")
def test_client_and_server_speak_by_a_socket(gpulimit, make_instance):
    socket = gpulimit.berth.dir / "sock"
    mode = socket.stat().st_mode
    assert stat.S_ISSOCK(mode) and not mode & 0o077  # nobody else's
    task = gpulimit.add("sleep", 600)
    gpulimit.wait(task, "running")
    # What the client sent and was told is the server's: it is there without that client.
    assert gpulimit.berth.show(task)["job"]["queue"] == "gpulimit"
    assert gpulimit.listed("running") == [task]


class Server:
    """gpulimit_server, started by a shell's line."""

    def __init__(self, berth, line, links):
        self.shell = subprocess.Popen(
            ["bash", "-c", line], env=berth.environment({"PATH": f"{links}:/usr/bin:/bin"}), cwd=links,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True)
        self.said = self.shell.stdout.readline()
        self.pid = eventually(lambda: serving(berth), "it serves")

    def close(self):
        if alive(self.pid):
            subprocess.run(["kill", "-KILL", str(self.pid)], check=False)
        self.shell.kill()
        self.shell.wait()
        self.shell.stdout.close()


@promise("004", "启动后台服务", "gpulimit_server # 直接启动")
@pytest.mark.parametrize("name", ["gpulimit_server", "gpulimit-server"])
def test_the_server_runs_in_the_foreground(make_instance, tmp_path, name):
    berth = make_instance(gpus="sim:1x24GiB")
    gpulimit = Gpulimit(berth, tmp_path / "links")
    server = Server(berth, f"exec {name} # 直接启动", gpulimit.links)
    try:
        assert server.pid == server.shell.pid
        assert f"serving, pid {server.pid}" in server.said
        assert "tasks: none" in gpulimit("status").stdout
        server.shell.send_signal(signal.SIGINT)
        assert server.shell.wait(PATIENCE) == 0
    finally:
        server.close()


@promise("004", "启动后台服务", "nohup gpulimit_server & # 后台运行")
def test_the_server_runs_in_the_background_when_its_shell_is_gone(make_instance, tmp_path):
    berth = make_instance(gpus="sim:1x24GiB")
    gpulimit = Gpulimit(berth, tmp_path / "links")
    server = Server(berth, "nohup gpulimit_server & # 后台运行", gpulimit.links)
    try:
        assert server.shell.wait(PATIENCE) == 0
        assert alive(server.pid)
        assert "tasks: none" in gpulimit("status").stdout
    finally:
        server.close()


# --- commands -------------------------------------------------------------------------------------


@promise("004", COMMANDS, "$ gpulimitc help GPU Task Manage: usage:")
@promise("004", COMMANDS, "other commands:")
def test_gpulimitc_help_names_every_command(gpulimit):
    told = gpulimit("help", program="gpulimitc").stdout
    assert "Usage: gpulimit" in told
    for command in "help add ls show rm kill mv move set start log status debug".split():
        assert re.search(rf"^  {command} ", told, re.M), told


@promise("004", COMMANDS, "client.py -h show help")
def test_the_client_shows_help_by_its_option(gpulimit):
    for program in ("gpulimit", "gpulimitc"):
        assert gpulimit("-h", program=program).stdout == gpulimit("help").stdout


@promise("004", COMMANDS, "help [cmd] show help")
def test_help_tells_of_one_command(gpulimit):
    for command in "help add ls show rm kill move set start log status debug".split():
        page = gpulimit("help", command).stdout
        assert re.search(rf"^Usage: gpulimit {'mv' if command == 'move' else command}\b", page, re.M)


@promise("004", COMMANDS, "gpulimit add [cmds] add task [cmds] to gpulimit queue.")
@promise("004", ADD, "gpulimit add [cmds]")
def test_add_puts_a_task_into_the_queue(blocked):
    task = blocked.add("echo", "hello")
    assert blocked.listed("waiting") == [task]
    blocked("kill", blocked.blocker)
    blocked.wait(task, "complete")
    assert blocked("log", task).stdout == "hello\n"


@promise("004", COMMANDS, "add [cmds] ls GPU task queue status")
@promise("004", COMMANDS, "ls ls GPU task queue status")
@promise("004", "查看任务", "gpulimit ls")
def test_ls_lists_the_queue_with_its_states(blocked):
    waiting = blocked.add("echo", "later")
    lines = blocked("ls").stdout.splitlines()
    assert re.match(rf" *{blocked.blocker} +running\(GPU:0\) .* sleep 600", lines[1])
    assert re.match(rf" *{waiting} +waiting .* echo later", lines[2])


@promise("004", COMMANDS, "show [id] show task [id] details.")
@promise("004", "查看任务信息", "gpulimit show [id]")
def test_show_tells_of_one_task(blocked):
    blocked.process(blocked.blocker)
    told = dict(re.findall(r"^(.+?): +(.*)$", blocked("show", blocked.blocker).stdout, re.M))
    assert told["task id"] == str(blocked.blocker) and told["status"] == "running"
    assert told["cmds"] == "sleep 600" and told["use gpu"] == "0" and told["priority"] == "5"
    assert told["run_times"].startswith("1 ") and pathlib.Path(told["out file"]).exists()
    assert pathlib.Path(f"/proc/{told['pid']}/cmdline").read_bytes() == b"sleep\x00600\x00"


@promise("004", COMMANDS, "rm [id] remove task [id] from manage, if task is running, kill it.")
def test_rm_removes_a_task_and_kills_one_that_runs(blocked):
    waiting = blocked.add("true")
    pid = blocked.process(blocked.blocker)["pid"]
    blocked("rm", waiting)
    blocked("rm", blocked.blocker)
    assert not alive(pid) and blocked.json("ls") == []


@promise("004", COMMANDS, "kill [id] kill task [id]")
def test_kill_kills_a_task(blocked):
    pid = blocked.process(blocked.blocker)["pid"]
    blocked("kill", blocked.blocker)
    assert not alive(pid) and blocked.status(blocked.blocker) == "killed"


@promise("004", COMMANDS, "move [id] [index(default=0)] move [id] to [index]")
def test_move_puts_a_task_to_a_place_in_the_queue(blocked):
    a, b, c = [blocked.add("true") for _ in range(3)]
    blocked("move", c)
    assert blocked.listed("waiting") == [c, a, b]
    blocked("move", c, 1)
    assert blocked.listed("waiting") == [a, c, b]


@promise("004", COMMANDS, "set [name] [value] set some property.")
@promise("004", PARAMETERS, "gpulimit set [param name] [value]# 设置新参数")
def test_set_changes_a_parameter(gpulimit):
    gpulimit("set", "MAX_ERR_TIMES", 3)
    task = gpulimit.add("false")
    gpulimit.wait(task, "runtime_error")
    assert gpulimit.json("show", task)["run_times"] == 3


@promise("004", PARAMETERS, "gpulimit set # 查看现有参数")
def test_set_alone_shows_the_parameters(gpulimit):
    told = gpulimit("set").stdout
    for line in ("TIMER_POLLING_TIME = 10", "MAX_ERR_TIMES = 1", "SAFETY_KEEP_MEMORY = 0.2",
                 "SAFETY_KEEP_GPU_MEMORY = 0.5"):
        assert line in told.splitlines(), told


@promise("004", COMMANDS, "start [id defalut=None] Force start task(s).")
def test_start_forces_one_task_or_all(blocked):
    first, second, third = [blocked.add("sleep", 600) for _ in range(3)]
    blocked("start", second)
    blocked.wait(second, "running")
    assert blocked.listed("waiting") == [first, third]
    blocked("set", "TIMER_POLLING_TIME", 0.1)
    blocked("set", "SAFETY_KEEP_GPU_MEMORY", 0)
    blocked("start")
    eventually(lambda: blocked.listed("waiting") == [], "all have started")


@promise("004", COMMANDS, "log [id] show [id] output.")
@promise("004", "查看任务输出日志", "gpulimit log [task id]")
def test_log_shows_what_a_task_has_written(gpulimit):
    task = gpulimit.add("echo out; echo err >&2; sleep 600")
    eventually(lambda: gpulimit("log", task).stdout == "out\nerr\n", "both, while it runs")


@promise("004", "查看任务输出日志", "同样，也支持查看`gpulimit_server`的后台输出：")
@promise("004", "查看任务输出日志", "gpulimit log main")
def test_log_main_shows_what_the_server_has_written(make_instance, tmp_path):
    berth = make_instance()
    gpulimit = Gpulimit(berth, tmp_path / "links")
    server = Server(berth, "exec gpulimit_server", gpulimit.links)
    try:
        told = gpulimit("log", "main").stdout
        assert f"pid={server.pid}" in told and "event=" in told, told
    finally:
        server.close()


@promise("004", COMMANDS, "status show System status.")
def test_status_shows_memory_cards_and_tasks(blocked):
    blocked.add("true")
    told = blocked("status").stdout
    assert re.search(r"^memory: \S+ \S+ free of \S+ \S+$", told, re.M)
    assert re.search(r"^tasks: 1 running, 1 waiting$", told, re.M)
    assert re.search(r"^ *0 .*24 GiB", told, re.M)


@promise("004", COMMANDS, "debug [id] if task [id] is `CMD_ERROR`, use this show error traceback.")
@promise("004", "scheduling", "- 'CMD_ERROR'：命令本身有问题，python报错，可用`gpulimit debug [id]`查看报错信息")
def test_a_wrong_command_is_cmd_error_and_debug_says_why(gpulimit, tmp_path):
    task = gpulimit.add("no-such-program", "--alpha=1", cwd=tmp_path)
    gpulimit.wait(task, "CMD_ERROR")
    told = gpulimit("debug", task).stdout
    assert "command not found" in told and "no-such-program --alpha=1" in told
    assert f"pwd:  {tmp_path}" in told and "PATH: " in told


@promise("004", ADD, "# for example # gpulimit add python3 main.py --lambda=12 --alpha=1")
def test_the_words_of_a_command_are_its_own(gpulimit, tmp_path):
    (tmp_path / "main.py").write_text("import sys; print(sys.argv)\n")
    task = gpulimit.add("python3", "main.py", "--lambda=12", "--alpha=1", cwd=tmp_path)
    gpulimit.wait(task, "complete")
    assert gpulimit("log", task).stdout == "['main.py', '--lambda=12', '--alpha=1']\n"


@promise("004", ADD, "gpulimit add --priority=1 [cmds] # 改变添加任务优先级")
def test_add_takes_a_priority(blocked):
    usual = blocked.add("true")
    urgent = blocked.add("--priority=1", "true")
    assert blocked.json("show", urgent)["priority"] == 1
    assert blocked.listed("waiting") == [urgent, usual]


@promise("004", ADD, 'gpulimit add --logpath="./" [cmds] # 重定向任务输出')
def test_add_sends_the_output_elsewhere(gpulimit, tmp_path):
    task = gpulimit.add("--logpath=./", "echo", "hello", cwd=tmp_path)
    gpulimit.wait(task, "complete")
    assert (tmp_path / f"{task}.log").read_text() == "hello\n"
    usual = gpulimit.add("echo", "hello", cwd=tmp_path)
    gpulimit.wait(usual, "complete")
    kept = pathlib.Path(gpulimit.json("show", usual)["logpath"])
    assert kept.is_relative_to(gpulimit.berth.dir) and kept.read_text() == "hello\n"


# --- parameters -----------------------------------------------------------------------------------


@promise("004", PARAMETERS, "- TIMER_POLLING_TIME：轮询时间")
def test_timer_polling_time_is_how_long_a_task_is_watched_before_the_next(gpulimit):
    gpulimit("set", "TIMER_POLLING_TIME", 3600)
    tasks = [gpulimit.train(memory="1GiB") for _ in range(3)]
    eventually(lambda: gpulimit.listed("running") == tasks[:2], "two have started")
    eventually(lambda: "GPU 0" in (gpulimit.json("show", tasks[2])["reason"] or ""), "the third waits")
    gpulimit("set", "TIMER_POLLING_TIME", 0.1)
    gpulimit.wait(tasks[2], "running")


@promise("004", PARAMETERS, "- MAX_ERR_TIMES：最大运行次数（大于1的话，任务出错可重启）")
def test_max_err_times_is_how_often_a_task_runs(gpulimit, tmp_path):
    once = gpulimit.add("false")
    gpulimit.wait(once, "runtime_error")
    assert gpulimit.json("show", once)["run_times"] == 1
    gpulimit("set", "MAX_ERR_TIMES", 2)
    better = gpulimit.add("test -e mark || { touch mark; false; }", cwd=tmp_path)
    gpulimit.wait(better, "complete")
    assert gpulimit.json("show", better)["run_times"] == 2


@promise("004", PARAMETERS,
         "- SAFETY_KEEP_MEMORY：保留内存百分比（默认0.2），当内存超出80%时不再新添加任务")
def test_no_task_is_added_when_a_fifth_of_the_memory_is_all_that_is_left(make_instance, tmp_path):
    berth = make_instance(gpus="sim:1x24GiB")
    gpulimit = Gpulimit(berth, tmp_path / "links")
    berth.start()
    total = gpulimit.json("status")["memory"]["total"]
    assert gpulimit.json("set")["SAFETY_KEEP_MEMORY"] == 0.2
    berth.simgpu("set", "driver", "host_available", int(total * 0.19))
    berth.restart()  # so that no earlier look counts
    task = gpulimit.add("true")
    eventually(lambda: "keep_host_memory" in (gpulimit.json("show", task)["reason"] or ""), "it waits")
    berth.simgpu("set", "driver", "host_available", int(total * 0.21))
    berth.restart()
    gpulimit.wait(task, "complete")


@promise("004", PARAMETERS,
         "- SAFETY_KEEP_GPU_MEMORY：针对单个显卡，保留显存的百分比（默认0.5），当显存超出50%时不再新添加任务")
def test_no_task_is_added_to_a_card_that_is_more_than_half_full(gpulimit):
    assert gpulimit.json("set")["SAFETY_KEEP_GPU_MEMORY"] == 0.5
    env = {"PATH": "/usr/bin:/bin", "BERTH_SIM_DIR": str(gpulimit.berth.dir / "simgpu")}
    with subprocess.Popen([BIN / "berth-simgpu", "hold", "0", "--memory", "13GiB"], env=env,
                          stdout=subprocess.PIPE) as other:
        try:
            other.stdout.readline()  # it holds
            gpulimit.berth.restart()  # so that no earlier look counts
            task = gpulimit.add("true")
            eventually(lambda: "GPU 0" in (gpulimit.json("show", task)["reason"] or ""), "it waits")
        finally:
            other.kill()
    gpulimit.wait(task, "complete")


# --- scheduling -----------------------------------------------------------------------------------


@promise("004", "scheduling", "- timer_call定时器：按照一定时间间隔运行")
def test_time_alone_starts_a_task(gpulimit):
    gpulimit("set", "TIMER_POLLING_TIME", 0.5)
    tasks = [gpulimit.train(memory="1GiB") for _ in range(3)]
    # Nothing ends and nobody asks for anything: room is found by looking again.
    for task in tasks:
        gpulimit.wait(task, "running")


@promise("004", "scheduling", "- callback_process_end：单个任务结束回调函数")
def test_the_end_of_a_task_starts_the_next(gpulimit, tmp_path):
    gpulimit("set", "TIMER_POLLING_TIME", 3600)
    gpulimit("set", "MAX_RUNNING_TASKS", 1)
    first = gpulimit.add("until test -e go; do sleep 0.01; done", cwd=tmp_path)
    second = gpulimit.add("true")
    gpulimit.wait(first, "running")
    assert gpulimit.status(second) == "waiting"
    (tmp_path / "go").touch()
    gpulimit.wait(second, "complete")
    ended, started = gpulimit.json("show", first)["ended"], gpulimit.json("show", second)["started"]
    assert 0 <= started - ended < PATIENCE / 2, "not by the time that passes"


@promise("004", "scheduling", "- callback_add_process：用户添加任务时的回调函数")
def test_adding_a_task_starts_it(gpulimit):
    gpulimit("set", "TIMER_POLLING_TIME", 3600)
    task = gpulimit.add("true")
    gpulimit.wait(task, "complete")
    shown = gpulimit.json("show", task)
    assert 0 <= shown["started"] - shown["added"] < PATIENCE / 2, "not by the time that passes"


@promise("004", "scheduling", "- user_start_scheduling：用户强制运行任务调用")
def test_a_user_starts_a_task_whatever_the_parameters_say(blocked):
    blocked("set", "SAFETY_KEEP_GPU_MEMORY", 0.9)
    task = blocked.train(memory="10GiB")
    other = blocked.train(memory="10GiB")
    assert blocked.listed("waiting") == [task, other]
    blocked("start", task)
    blocked.wait(task, "running")
    assert blocked.status(other) == "waiting"


@promise("004", "scheduling",
         "- 仅仅进行轮询，有符合条件的任务的话，每次添加1个任务（**条件**参考**[更改调度算法参数]**部分）")
def test_each_task_that_starts_counts_before_the_next_may(gpulimit):
    """gpulimit started one in each round so that the next saw what it took; here it is counted at once."""
    gpulimit("set", "TIMER_POLLING_TIME", 3600)
    gpulimit("set", "SAFETY_KEEP_GPU_MEMORY", 0.9)
    tasks = [gpulimit.add("sleep", 600) for _ in range(4)]
    gpulimit.wait(tasks[0], "running")
    eventually(lambda: all("GPU 0" in (gpulimit.json("show", t)["reason"] or "") for t in tasks[1:]),
               "none joins one whose memory is not known yet")
    assert gpulimit.listed("running") == tasks[:1]


@promise("004", "scheduling", "- priority：default=5， 越小越优先")
def test_the_usual_priority_is_five_and_lower_goes_first(blocked):
    usual, late, early = blocked.add("true"), blocked.add("--priority=6", "true"), blocked.add("--priority=4", "true")
    assert blocked.json("show", usual)["priority"] == 5
    assert blocked.listed("waiting") == [early, usual, late]


@promise("004", "scheduling", "-  'complete'：任务完成")
def test_complete_is_what_ended_well(gpulimit):
    task = gpulimit.add("true")
    gpulimit.wait(task, "complete")
    assert gpulimit.json("show", task)["exit_code"] == 0


@promise("004", "scheduling", "- 'waiting'：等待调用")
def test_waiting_is_what_has_not_started(blocked):
    task = blocked.add("true")
    shown = blocked.json("show", task)
    assert shown["status"] == "waiting" and shown["started"] is None and shown["run_times"] == 0


@promise("004", "scheduling", "-  'running'：正在运行")
def test_running_is_what_has_a_process(blocked):
    shown = blocked.process(blocked.blocker)
    assert shown["status"] == "running" and alive(shown["pid"]) and shown["gpu"] == [0]


@promise("004", "scheduling", "- 'runtime_error'：任务在运行过程中出错，可能是显存爆了，也有可能是程序有问题")
def test_runtime_error_is_what_failed_by_its_memory_or_by_itself(gpulimit):
    wrong = gpulimit.add("python3", "-c", "raise ValueError('no such thing')")
    large = gpulimit.train(memory="40GiB", seconds="0.1s")
    for task, why in ((wrong, "ValueError: no such thing"), (large, "GPU memory")):
        gpulimit.wait(task, "runtime_error")
        assert why in gpulimit("debug", task).stdout


@promise("004", "scheduling", "-  'killed'：被用户kill的正在运行的进程，用户可以通过start命令重启")
def test_what_was_killed_is_started_again_under_its_id(blocked):
    before = blocked.process(blocked.blocker)["pid"]
    blocked("kill", blocked.blocker)
    assert blocked.status(blocked.blocker) == "killed"
    blocked("start", blocked.blocker)
    blocked.wait(blocked.blocker, "running")
    shown = blocked.process(blocked.blocker)
    assert shown["pid"] != before and shown["run_times"] == 2


@promise("004", "scheduling", "- 'paused'：暂停的进程（暂停状态仍然占用GPU显存）")
def test_what_is_paused_stands_still_and_keeps_its_gpu_memory(gpulimit):
    task = gpulimit.train(memory="6GiB")
    gpulimit.wait(task, "running")

    def used():
        return gpulimit.json("status")["gpus"][0]["used"]

    eventually(lambda: used() >= 6 * GIB, "it has its memory")
    gpulimit.berth.cli("pause", task, check=0)
    gpulimit.wait(task, "paused")
    pid = gpulimit.process(task)["pid"]
    eventually(lambda: process_stat(pid)[0] == "T", "it stands still")
    assert used() >= 6 * GIB


@promise("004", "scheduling", "- run_times：任务出错")
def test_run_times_counts_the_runs_of_a_task_that_fails(gpulimit):
    gpulimit("set", "MAX_ERR_TIMES", 4)
    task = gpulimit.add("false")
    gpulimit.wait(task, "runtime_error")
    assert gpulimit.json("show", task)["run_times"] == 4
    assert "run_times:  4 (MAX_ERR_TIMES 4)" in gpulimit("show", task).stdout


# --- the list of what was to be done --------------------------------------------------------------


@promise("004", "TODO list", "- [x] change raise type, and add `try except` for exception break.")
def test_nothing_that_is_asked_wrongly_ends_the_server(gpulimit):
    pid = serving(gpulimit.berth)
    for words in (("show", "x"), ("show", 99), ("rm", 99), ("start", 99), ("set", "NO", 1), ("mv", 99, 0),
                  ("set", "MAX_ERR_TIMES", "x"), ("nothing",), ("add",), ("log", 99), ("kill", 99)):
        said = gpulimit(*words, check=None)
        assert said.returncode in (1, 2) and said.stderr.startswith("gpulimit: "), said
    assert serving(gpulimit.berth) == pid
    gpulimit.wait(gpulimit.add("true"), "complete")


@promise("004", "TODO list", r"- [x] \_\_doc\_\_")
def test_every_command_tells_what_it_does(gpulimit):
    commands = re.findall(r"^  (\w+) ", gpulimit("help").stdout, re.M)
    assert len(commands) >= 12
    for command in commands:
        first = gpulimit("help", command).stdout.splitlines()[0]
        assert len(first.split()) >= 2, first


@promise("004", "TODO list", "- [ ] kill all, range")
def test_kill_takes_all_and_ranges(blocked):
    a, b, c = [blocked.add("true") for _ in range(3)]
    blocked("kill", f"{a}-{b}")
    assert blocked.listed("killed") == [a, b] and blocked.listed("waiting") == [c]
    blocked("kill", "all")
    assert blocked.listed("killed") == [blocked.blocker, a, b, c]


@promise("004", "TODO list", "- [x] use priority queue as task_manage.queue")
def test_the_queue_is_one_of_priorities(blocked, tmp_path):
    tasks = [blocked.add(f"--priority={p}", f"echo {p} >> order", cwd=tmp_path) for p in (7, 3, 9, 1)]
    blocked("kill", blocked.blocker)
    for task in tasks:
        blocked.wait(task, "complete")
    assert (tmp_path / "order").read_text().split() == list("1379")


@promise("004", "TODO list", "- [x] Improve scheduling aligorithm")
def test_small_tasks_come_to_share_a_card_and_none_runs_out_of_memory(gpulimit):
    gpulimit("set", "TIMER_POLLING_TIME", 0.1)
    tasks = [gpulimit.train(memory="2GiB") for _ in range(3)]
    eventually(lambda: gpulimit.listed("running") == tasks, "three share the card")
    assert {t["run_times"] for t in gpulimit.json("ls")} == {1}


@promise("004", "TODO list", "- [ ] catch memory error in cmds， when cmds is `python ...` and use`tf` or `pytorch`.")
@pytest.mark.parametrize("error", [
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
    "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with "
    "shape[64,512] on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
], ids=["pytorch", "tf"])
def test_a_memory_error_of_python_is_known_and_tried_again_with_more(gpulimit, tmp_path, error):
    """It fails for want of memory once, and not when it has more of the card."""
    (tmp_path / "main.py").write_text(
        "import os, sys\n"
        "if not os.path.exists('mark'):\n"
        "    open('mark', 'w').close()\n"
        f"    sys.exit({error!r})\n")
    task = gpulimit.add("python3", "main.py", cwd=tmp_path)
    gpulimit.wait(task, "complete")
    first, second = gpulimit.berth.show(task)["attempts"]
    assert first["failure_class"] == "gpu_oom", first
    assert second["gpu_memory"] > first["gpu_memory"]
