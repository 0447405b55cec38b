"""What document 003 promises: compete_gpu_retry for one card and for several; its console stands elsewhere."""

import json
import re
import subprocess
import time
import types

import pytest
from command_scheduler import *  # noqa: F401,F403
from command_scheduler import Scheduler, ending_everything, eventually
from promises import REPO, Elsewhere, promise

MANAGE = """\
check_time: 5
maximize_resource_utilization: false
use_all_gpus: true
gpu_left: 0
retry_config:
  max_retry_before_backoff: 3
  backoff_duration: 600
work_dir: null
gpu_command_file: command/command_gpu.txt
gpus_command_file: command/command_gpus.txt
"""

# As the document has them.
SINGLE = """\
# 队列ID
1
# 命令（不需要引号）
python script.py --arg1 value1
# 显存需求(GB)
20

# 下一个任务块
2
bash run.sh
25
"""
MULTI = """\
# 队列ID
1
# 命令
python script.py --arg1 value1
# GPU数量需求
2
# 显存需求(GB)
20
"""


# --- runs that many tests look at -----------------------------------------------------------------


def started(at, program, *words):
    """One of the schedulers, started as people start it; it goes on by itself."""
    return subprocess.Popen([str(at.machine.bin_dir / program), *map(str, words)], cwd=at.dir,
                            env=at.machine.environment(), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture(scope="module")
def layout(machine, tmp_path_factory):
    """The document's directories: command/, config/, and from the first run on logs/. Each file writes its name."""
    with ending_everything(machine):
        at = Scheduler(machine, tmp_path_factory.mktemp("layout"), "scripts/compete_gpu_retry")
        for index in ("", "_1", "_2", "_17"):
            at.write(f"command/command_gpu{index}.txt",
                     f"# 队列ID\n1\necho command_gpu{index} $CUDA_VISIBLE_DEVICES >> ran\n# 显存需求(GB)\n20\n")
            at.write(f"command/command_gpus{index}.txt",
                     f"1\necho command_gpus{index} $CUDA_VISIBLE_DEVICES >> ran\n2\n20\n")
        at.write("config/gpu_manage.yaml", MANAGE)
        yield at


def ran(layout, program, *words):
    """What one run of a scheduler writes: the name of the file, and the cards."""
    file = layout.dir.parent / "ran"
    file.unlink(missing_ok=True)
    said = layout.call(program, *words).stdout
    assert re.search(r"1 of 1 succeeded", said)
    [line] = file.read_text().splitlines()
    return line.split()


@pytest.fixture(scope="module")
def single(machine, tmp_path_factory):
    """main_gpu with two queues, looked at while it runs and after it has ended."""
    with ending_everything(machine):
        at = Scheduler(machine, tmp_path_factory.mktemp("single") / "project")
        at.write("config/gpu_manage.yaml", "retry_config: {max_retry_before_backoff: 2, backoff_duration: 0.4}\n")
        at.write("command/command_gpu_1.txt",
                 f"1\n{at.task('a')}\n20\n\n1\n{at.task('b')}\n18.5\n\n"
                 f"2\necho x >> tries; [ $(wc -l < tries) -eq 4 ]\n{at.task('c')}\n20\n")
        runner = started(at, "main_gpu", "--command-file", "command/command_gpu_1.txt")
        try:
            at.pid = runner.pid
            at.begun("a", "c")
            at.first = eventually(lambda: (s := at.state()) and s["running_tasks"] == 2 and s, "two are told of")
            at.cards_then = at.cards()
            at.files_then = sorted(p.name for p in (at.logs / "state").glob("*.json"))
            at.gpus_then = json.loads(at.call("berth", "gpus", "--json").stdout)
            at.let_go("c")
            at.second = eventually(lambda: (s := at.state()) and s["completed_tasks"] == 1 and s, "one has ended")
            at.let_go("a")
            at.begun("b")
            at.ended_before_b = at.lines("ended")
            at.let_go("b")
            at.said = runner.communicate(timeout=60)[0]
        finally:
            runner.kill()
            runner.wait()
        at.code = runner.returncode
        at.final = at.settled()
        yield at


@pytest.fixture(scope="module")
def several(machine, tmp_path_factory):
    """main_gpus with tasks for one, two and three of three cards, the smallest first in the file."""
    with ending_everything(machine):
        at = Scheduler(machine, tmp_path_factory.mktemp("several") / "project")
        at.write("config/gpu_manage.yaml", "compete_gpus: [2, 3, 4]\n")
        at.write("command/command_gpus.txt", "\n\n".join(
            f"# 队列ID\n{queue}\n{at.task(name)}\n# GPU数量需求\n{count} #GPUs\n# GB\n20"
            for queue, name, count in ((1, "one", 1), (2, "two", 2), (3, "three", 3))))
        runner = started(at, "main_gpus", "--command-file", "command/command_gpus.txt")
        try:
            at.pid = runner.pid
            at.begun("three")
            at.first = types.SimpleNamespace(
                cards=at.cards(), state=eventually(
                    lambda: (s := at.state()) and s["running_tasks"] == 1 and s, "one is told of"))
            at.let_go("three")
            at.second = at.begun("one", "two")
            at.let_go("one", "two")
            at.said = runner.communicate(timeout=60)[0]
        finally:
            runner.kill()
            runner.wait()
        at.code = runner.returncode
        at.final = at.settled()
        yield at


# --- 项目概述 -------------------------------------------------------------------------------------


@promise("003", "项目概述", "GPU 竞争调度器是一个用于管理多个脚本对 GPU 资源竞争使用的系统。")
def test_scripts_that_compete_for_a_card_take_turns(scheduler):
    scheduler.config("compete_gpus: [0]\n")
    scheduler.write("command.txt", "\n\n".join(
        f"{i}\nmkdir alone && sleep 0.05 && rmdir alone && echo {i} >> ran\n20" for i in range(5)))
    ended = scheduler.run()
    assert {job["state"] for job in ended.values()} == {"succeeded"}
    assert {job["attempts"] for job in ended.values()} == {1}, "no two were on the card at once"
    assert sorted(scheduler.lines("ran")) == list("01234")


@promise("003", "项目概述", "支持单卡和多卡两种调度模式，实现队内串行、队间并行的任务调度策略。")
def test_there_are_two_modes(single, several):
    assert (single.final["mode"], several.final["mode"]) == ("single", "multi")
    assert single.code == several.code == 0
    assert single.ended_before_b == ["c", "a"], "serial inside, parallel between"


# --- 目录结构 -------------------------------------------------------------------------------------


@promise("003", "目录结构", "scripts/compete_gpu_retry/")
def test_the_files_may_stay_where_they_are(layout):
    assert ran(layout, "main_gpu")[0] == "command_gpu"


@promise("003", "目录结构", "main_gpu.py                # 单GPU调度器")
def test_main_gpu_is_the_scheduler_for_one_card(layout):
    name, cards = ran(layout, "main_gpu", "--command-file", "command/command_gpu.txt")
    assert name == "command_gpu" and re.fullmatch(r"\d", cards)


@promise("003", "目录结构", "main_gpus.py               # 多GPU调度器")
def test_main_gpus_is_the_scheduler_for_several(layout):
    name, cards = ran(layout, "main_gpus", "--command-file", "command/command_gpus.txt")
    assert name == "command_gpus" and re.fullmatch(r"\d,\d", cards)


@promise("003", "目录结构", "command/                       # 命令配置文件目录")
def test_command_files_have_their_directory(layout):
    state = layout.check("command/command_gpu.txt")["files"]
    assert state["config_file"] == str(layout.dir / "command/command_gpu.txt")
    assert state["state_dir"] == str(layout.dir / "logs"), "logs are beside it, not in it"


@promise("003", "目录结构", "command_gpu.txt            # 单GPU任务配置（配置1）")
def test_the_first_file_for_one_card(layout):
    assert ran(layout, "main_gpu", "--config-file", "config/gpu_manage.yaml")[0] == "command_gpu"
    # As its public file names it.
    layout.write("config/bare.yaml", "gpu_command_file: command_gpu.txt\ngpus_command_file: command_gpus.txt\n")
    assert ran(layout, "main_gpu", "--config-file", "config/bare.yaml")[0] == "command_gpu"


@promise("003", "目录结构", "command_gpu_1.txt          # 单GPU任务配置（配置2）")
def test_the_second_file_for_one_card(layout):
    words = ("--config-file", "config/gpu_manage.yaml", "--config-index", "1")
    assert ran(layout, "main_gpu", *words)[0] == "command_gpu_1"


@promise("003", "目录结构", "command_gpu_2.txt          # 单GPU任务配置（配置3）")
def test_the_third_file_for_one_card(layout):
    assert ran(layout, "main_gpu", "--config-index", "2")[0] == "command_gpu_2"


@promise("003", "目录结构", "command_gpus.txt           # 多GPU任务配置（配置1）")
def test_the_first_file_for_several_cards(layout):
    assert ran(layout, "main_gpus", "--config-file", "config/gpu_manage.yaml")[0] == "command_gpus"
    layout.write("config/silent.yaml", "gpu_left: 0\n")
    assert ran(layout, "main_gpus", "--config-file", "config/silent.yaml")[0] == "command_gpus"


@promise("003", "目录结构", "command_gpus_1.txt         # 多GPU任务配置（配置2）")
def test_the_second_file_for_several_cards(layout):
    assert ran(layout, "main_gpus", "--config-index", "1")[0] == "command_gpus_1"


@promise("003", "目录结构", "...                        # 更多配置文件")
def test_more_files_may_follow(layout):
    assert ran(layout, "main_gpus", "--config-index", "17")[0] == "command_gpus_17"
    said = layout.call("main_gpu", "--config-index", "18", code=1).stderr
    assert "command_gpu_18.txt" in said


@promise("003", "目录结构", "config/                        # 配置文件目录")
def test_the_configuration_is_found_in_its_directory(layout):
    rules = layout.check("command/command_gpu.txt")["rules"]
    assert rules["gpu_left"] == "0", "only the file in config/ says so"


@promise("003", "目录结构", "gpu_manage.yaml            # 调度器配置文件")
def test_every_key_of_gpu_manage_yaml_counts(scheduler):
    scheduler.write("command/command_gpu.txt", SINGLE)
    scheduler.write("config/gpu_manage.yaml", """\
check_time: 7
maximize_resource_utilization: true
memory_save_mode: true
compete_gpus: [1, 2]
use_all_gpus: false
gpu_left: 1
min_gpu: 1
max_gpu: 2
retry_config: {max_retry_before_backoff: 4, backoff_duration: 30}
work_dir: "../"
gpu_command_file: command/command_gpu.txt
gpus_command_file: command/command_gpus.txt
""")
    found = scheduler.check("command/command_gpu.txt")
    expected = {"sample_age_max": "7s", "maximize_resource_utilization": "true", "strategy": "memory_save",
                "gpus": "1,2", "gpu_left": "1", "gpu_left_mode": "any", "min_gpu": "1", "max_gpu": "2",
                "retry_config.max_retry_before_backoff": "4", "retry_config.backoff_duration": "30s"}
    assert expected.items() <= found["rules"].items()
    assert found["jobs"][0]["cwd"] == str(scheduler.project)


@promise("003", "目录结构", "logs/                          # 调度器日志目录")
def test_logs_have_their_directory(single, several):
    assert (single.logs / "compete_gpu.log").is_file() and (several.logs / "compete_gpus.log").is_file()
    assert not (single.dir / "command/logs").exists()


@promise("003", "目录结构", "compete_gpu.log            # 单GPU调度器日志")
def test_the_log_for_one_card(single):
    log = eventually(lambda: "completed 3, failed 0" in single.log() and single.log(), "it tells of the end")
    assert re.search(r"queue 1: job \d+ started on GPU \d", log)
    assert not (single.logs / "compete_gpus.log").exists()


@promise("003", "目录结构", "compete_gpus.log           # 多GPU调度器日志")
def test_the_log_for_several_cards(several):
    assert re.search(r"queue 3: job \d+ started on GPU 2,3,4", several.log("compete_gpus.log")), several.log(
        "compete_gpus.log")
    assert not (several.logs / "compete_gpu.log").exists()


@promise("003", "目录结构", "state/                    # 调度器状态文件目录")
def test_state_files_have_their_directory(single):
    assert len(list((single.logs / "state").iterdir())) == len(list((single.logs / "state").glob("*.json"))) == 1


@promise("003", "目录结构", "{pid}.json             # 调度器状态（按进程PID命名）")
def test_the_state_file_has_the_pid_of_the_scheduler(single, several):
    assert single.files_then == [f"{single.pid}.json"] and single.first["pid"] == single.pid
    assert (several.logs / f"state/{several.pid}.json").is_file()


@promise("003", "目录结构", "help/                          # 帮助文档")
def test_the_programs_explain_themselves(layout):
    for program in ("main_gpu", "main_gpus"):
        said = layout.call(program, "--help").stdout
        assert "--command-file" in said and "--config-file" in said and "--config-index" in said
    assert (REPO / "docs/formats/command-files.md").is_file()


@promise("003", "目录结构", "项目架构.md                # 本文档")
def test_the_architecture_is_described():
    text = (REPO / "ARCHITECTURE.md").read_text("utf-8")
    missing = [p.name for p in (REPO / "src").iterdir() if p.is_dir() and f"`src/{p.name}`" not in text]
    assert not missing


@promise("003", "目录结构", "GPU管理后端逻辑.md         # 调度器逻辑说明")
def test_the_logic_is_described():
    text = (REPO / "docs/guide/scheduling.md").read_text("utf-8")
    assert re.search(r"quota = min\(max_gpu, max\(min_gpu, available . gpu_left\)\)", text)


@promise("003", "目录结构", "test_gpu_memory.py             # GPU 内存测试脚本")
def test_there_is_a_test_of_gpu_memory(layout):
    script = REPO / "examples/test_gpu_memory.py"
    done = subprocess.run(["/usr/bin/python3", script, "--memory", "0.001", "--time", "0"], capture_output=True,
                          text=True, timeout=60)
    assert "CUDA_VISIBLE_DEVICES=" in done.stdout
    assert done.returncode == 0 or (done.returncode == 3 and "cannot test GPU memory: " in done.stderr), done
    # The same on simulated cards.
    layout.write("memory.txt", f"1\n{layout.machine.bin_dir}/berth-simgpu train --memory 4GiB --time 0.1s\n5\n")
    assert layout.run("memory.txt")["q1-1"]["state"] == "succeeded"


# --- 单GPU调度器, 多GPU调度器 -----------------------------------------------------------------------


@promise("003", "单GPU调度器 (main_gpu.py)", "- 每个任务使用单张 GPU")
def test_each_task_has_one_card(single):
    assert all(re.fullmatch(r"\d", cards) for cards in single.cards().values())
    assert {p["gpu_count"] for q in single.final["queues"].values() for p in q["processes"]} == {1}


@promise("003", "单GPU调度器 (main_gpu.py)", "- 支持 `--command-file` 参数指定配置文件")
def test_main_gpu_takes_a_command_file(single):
    assert "submitted command/command_gpu_1.txt: 3 jobs" in single.said
    assert single.final["config_file"] == str(single.dir / "command/command_gpu_1.txt")
    assert single.final["config_index"] == 1


@promise("003", "单GPU调度器 (main_gpu.py)", "- 实现队内串行、队间并行调度")
def test_main_gpu_is_serial_inside_and_parallel_between(single):
    assert set(single.cards_then) == {"a", "c"}, "both queues at once, and one task of each"
    assert "a" in single.ended_before_b


@promise("003", "多GPU调度器 (main_gpus.py)", "- 每个任务可使用多张 GPU")
def test_a_task_may_have_several_cards(several):
    assert several.first.cards == {"three": "2,3,4"}
    assert len(several.second["two"].split(",")) == 2 and len(several.second["one"].split(",")) == 1
    used = f"{several.second['one']},{several.second['two']}".split(",")
    assert sorted(used) == ["2", "3", "4"]


@promise("003", "多GPU调度器 (main_gpus.py)", "- 支持 `--command-file` 参数指定配置文件")
def test_main_gpus_takes_a_command_file(several):
    assert "submitted command/command_gpus.txt: 3 jobs" in several.said
    assert several.final["config_file"] == str(several.dir / "command/command_gpus.txt")


@promise("003", "多GPU调度器 (main_gpus.py)", "- 优先调度 GPU 需求量大的任务")
def test_the_task_with_the_most_cards_goes_first(several):
    assert set(several.first.cards) == {"three"}, "though it stands last in the file"


# --- 2. 命令配置 (command/) -------------------------------------------------------------------------

COMMANDS = "2. 命令配置 (command/)"


@promise("003", COMMANDS, "支持多配置文件，命名规则：")
def test_the_name_of_a_file_says_which_it_is(layout):
    found = {name: layout.check(f"command/{name}.txt")["files"] for name in
             ("command_gpu", "command_gpu_1", "command_gpus", "command_gpus_2")}
    assert {n: (f["mode"], f["config_index"]) for n, f in found.items()} == {
        "command_gpu": ("single", 0), "command_gpu_1": ("single", 1),
        "command_gpus": ("multi", 0), "command_gpus_2": ("multi", 2)}


@promise("003", COMMANDS, "- **配置1**: `command_gpu.txt` / `command_gpus.txt`")
def test_configuration_one(layout):
    assert ran(layout, "main_gpu", "--config-index", "0")[0] == "command_gpu"
    assert ran(layout, "main_gpus", "--config-index", "0")[0] == "command_gpus"


@promise("003", COMMANDS, "- **配置2**: `command_gpu_1.txt` / `command_gpus_1.txt`")
def test_configuration_two(layout):
    assert ran(layout, "main_gpu", "--config-index", "1")[0] == "command_gpu_1"
    assert ran(layout, "main_gpus", "--command-file", "command/command_gpus_1.txt")[0] == "command_gpus_1"


@promise("003", COMMANDS, "- **配置3**: `command_gpu_2.txt` / `command_gpus_2.txt`")
def test_configuration_three(layout):
    assert ran(layout, "main_gpu", "--command-file", "command/command_gpu_2.txt")[0] == "command_gpu_2"
    assert ran(layout, "main_gpus", "--config-index", "2")[0] == "command_gpus_2"


@promise("003", COMMANDS, "- **配置N**: `command_gpu_{N-1}.txt` / `command_gpus_{N-1}.txt`")
@promise("003", "v2.0.0 (2025-12-03)", "- **多配置支持**：支持无限数量的配置文件")
def test_configuration_n(layout):
    assert ran(layout, "main_gpu", "--config-index", "17")[0] == "command_gpu_17"
    eventually(lambda: layout.settled()["config_index"] == 17, "the newest state file tells of it")


# --- 核心特性 -------------------------------------------------------------------------------------


@promise("003", "核心特性", "1. **队内串行**：同一队列的任务按顺序执行")
@promise("003", "v1.1.0", "- 队内串行、队间并行")
def test_tasks_of_a_queue_run_in_order(scheduler):
    scheduler.write("command_gpus.txt", "\n\n".join(f"1\necho {i} >> order\n1\n2" for i in range(5)))
    scheduler.call("main_gpus", "--command-file", "command_gpus.txt")
    assert scheduler.lines("order") == list("01234")


@promise("003", "核心特性", "2. **队间并行**：不同队列的任务可同时在不同 GPU 上执行")
def test_tasks_of_two_queues_run_on_two_cards(single):
    assert len(set(single.cards_then.values())) == 2
    assert sorted(single.first["gpus_used"]) == sorted(int(c) for c in single.cards_then.values())


@promise("003", "核心特性", "3. **GPU 占用追踪**：调度器内部维护 GPU 占用状态，避免冲突")
def test_what_is_given_away_is_known_before_it_can_be_seen(single):
    claimed = [g for g in single.gpus_then if g["claims"]]
    assert [g["index"] for g in claimed] == sorted(single.first["gpus_used"])
    assert all(g["state"] == "claimed" and g["memory_used"] == 0 for g in claimed), "no process uses them yet"
    assert single.first["gpu_assignments"] == {single.cards_then["a"]: "1", single.cards_then["c"]: "2"}


@promise("003", "核心特性", "4. **智能 GPU 选择**：多个可用 GPU 时使用高频采样策略")
def test_of_several_cards_the_one_is_taken_that_was_used_least_of_late(scheduler):
    machine = scheduler.machine
    scheduler.write("command_gpu.txt", "1\necho $CUDA_VISIBLE_DEVICES >> taken\n20\n")
    scheduler.config("check_time: 0.3\ncompete_gpus: [5, 6]\n")
    for busy, idle in ((5, 6), (6, 5)):
        # Idle at this moment, but busy a quarter of the last seconds.
        machine.simgpu("set", busy, "samples", "25,0,25,20,10,0")
        try:
            time.sleep(0.4)  # no look from before may decide
            scheduler.run("command_gpu.txt")
        finally:
            machine.simgpu("set", busy, "samples", "auto")
        assert scheduler.lines("taken")[-1] == str(idle)


@promise("003", "核心特性", "5. **重试机制**：任务失败后自动重试，支持退避策略")
@promise("003", "v1.1.0", "- 重试机制")
def test_a_failed_task_is_tried_again_with_waits(single):
    process = single.final["queues"]["2"]["processes"][0]
    assert process["status"] == "completed" and process["retry_count"] == 3
    said = json.loads(single.call("berth", "history", process["job_id"], "--kind", "retried", "--json").stdout)
    assert ["trying again in 0.4 s" in event["detail"] for event in said] == [False, False, True]


@promise("003", "GPU 分配逻辑", "实际使用GPU数量 = min(max_gpu, max(min_gpu, available_gpus - gpu_left))")
def test_the_formula_says_how_many_cards_are_used(scheduler, tmp_path):
    listed = "compete_gpus: [0, 1, 2, 3]\n"
    for number, (left, least, most) in enumerate(((1, 0, 8), (1, 1, 2), (3, 2, 8), (4, 1, 8), (0, 3, 2))):
        at = Scheduler(scheduler.machine, tmp_path / f"quota{number}")
        at_most = min(most, max(least, 4 - left))
        cards, why = at.used_cards(f"{listed}gpu_left: {left}\nmin_gpu: {least}\nmax_gpu: {most}\n", 5)
        assert len(cards) == at_most, (left, least, most, cards)
        assert len(why) == 5 - at_most and set(cards) <= {0, 1, 2, 3}


@promise("003", "v2.0.0 (2025-12-03)", "- **GPU 占用追踪**：修复队间并行时 GPU 分配冲突问题")
def test_queues_that_start_at_once_do_not_collide(scheduler):
    cards, why = scheduler.used_cards("maximize_resource_utilization: true\n", 10)
    assert cards == list(range(10)) and not why


# --- 使用方式 -------------------------------------------------------------------------------------


@promise("003", "直接运行调度器",
         "cd scripts/compete_gpu_retry\n\n# 单GPU模式\npython app/main_gpu.py --command-file command/command_gpu.txt")
def test_typed_for_one_card(layout):
    (layout.dir.parent / "ran").unlink(missing_ok=True)
    said = layout.shell("cd scripts/compete_gpu_retry\nmain_gpu --command-file command/command_gpu.txt",
                        cwd=layout.project)
    assert "1 of 1 succeeded" in said
    assert (layout.dir.parent / "ran").read_text().startswith("command_gpu ")


@promise("003", "直接运行调度器", "# 多GPU模式\npython app/main_gpus.py --command-file command/command_gpus.txt")
@promise("003", "v1.1.0", "- 单GPU/多GPU调度器")
def test_typed_for_several_cards(layout):
    (layout.dir.parent / "ran").unlink(missing_ok=True)
    layout.shell("main_gpus --command-file command/command_gpus.txt")
    assert re.fullmatch(r"command_gpus \d,\d\n", (layout.dir.parent / "ran").read_text())


@promise("003", "直接运行调度器", "# 使用其他配置\npython app/main_gpu.py --command-file command/command_gpu_1.txt")
def test_typed_for_another_file(layout):
    (layout.dir.parent / "ran").unlink(missing_ok=True)
    layout.shell("main_gpu --command-file command/command_gpu_1.txt")
    assert (layout.dir.parent / "ran").read_text().startswith("command_gpu_1 ")


# --- 配置文件格式 -----------------------------------------------------------------------------------


@promise("003", "单GPU配置 (command_gpu.txt)",
         "# 队列ID\n1\n# 命令（不需要引号）\npython script.py --arg1 value1\n# 显存需求(GB)\n20")
def test_a_block_for_one_card(scheduler):
    for text in (SINGLE, SINGLE.replace("\n", "\r\n"), "\ufeff" + SINGLE, SINGLE.rstrip()):
        found = scheduler.jobs_of(text, "command_gpu.txt")
        assert found[0] == (["python script.py --arg1 value1"], 1, 20, 1)


@promise("003", "单GPU配置 (command_gpu.txt)", "# 下一个任务块\n2\nbash run.sh\n25")
def test_the_next_block(scheduler):
    assert scheduler.jobs_of(SINGLE, "command_gpu.txt")[1:] == [(["bash run.sh"], 2, 25, 1)]
    # It asks for more than any card has, which berth says at once instead of waiting for ever in silence.
    ids = scheduler.submit("command_gpu.txt")
    assert "24 GiB" in eventually(lambda: scheduler.why(ids["q2-1"]), "it knows why it waits")
    said = scheduler.call("main_gpu", "--command-file", "command_gpu.txt", "--detach")
    scheduler.submitted += [int(n) for n in re.findall(r"(\d+)-(\d+) \(batch", said.stdout)[0]]
    assert re.search(r"warning: job \d+ can never start as things are: .*too small", said.stderr), said


@promise("003", "多GPU配置 (command_gpus.txt)",
         "# 队列ID\n1\n# 命令\npython script.py --arg1 value1\n# GPU数量需求\n2\n# 显存需求(GB)\n20")
def test_a_block_for_several_cards(scheduler):
    assert scheduler.jobs_of(MULTI, "command_gpus.txt") == [(["python script.py --arg1 value1"], 1, 20, 2)]
    said = scheduler.mistakes_of(MULTI, "tasks.txt")
    assert "reads both ways: with --mode multi as queue 1, 1 command, 2 GPUs with 20 GiB each" in said
    assert "with --mode single as queue 1, 1 command, one GPU with 20 GiB and '2' too many" in said


# --- 更新日志 -------------------------------------------------------------------------------------


@promise("003", "v2.2.0 (2025-12-03)", "- **进程级状态**：状态页面显示每个进程的详细信息（显存、命令、GPU、重试次数等）")
def test_each_process_is_told_of_in_detail(single):
    waiting, retried = single.first["queues"]["1"]["processes"][1], single.first["queues"]["2"]["processes"][0]
    assert (waiting["status"], waiting["memory_gb"], waiting["commands"]) == ("pending", 18.5, [single.task("b")])
    assert (retried["memory_gb"], retried["gpus"], retried["retry_count"]) == (
        20, [int(single.cards_then["c"])], 3)
    assert retried["started_at"] and retried["finished_at"] is None
    assert single.final["queues"]["1"]["processes"][1]["finished_at"]


@promise("003", "v2.1.0 (2025-12-03)", "- **状态共享机制**：调度器写入 JSON 状态文件，前端读取展示")
def test_the_state_is_shared_as_json(single):
    assert {"pid", "mode", "config_index", "config_file", "state", "pending_tasks", "running_tasks",
            "completed_tasks", "failed_tasks", "gpus_used", "gpu_assignments", "queues"} <= set(single.first)
    assert (single.first["state"], single.final["state"]) == ("running", "completed")


@promise("003", "v2.1.0 (2025-12-03)", "- **队列状态监控**：显示每个队列的任务进度、当前任务、GPU 分配")
def test_each_queue_is_told_of(single):
    one, two = single.first["queues"]["1"], single.first["queues"]["2"]
    assert (one["pending_tasks"], one["running_tasks"], one["completed_tasks"]) == (1, 1, 0)
    assert one["current_task"] == single.task("a") and one["current_gpu"] == [int(single.cards_then["a"])]
    assert two["running_tasks"] == 1 and two["current_gpu"] == [int(single.cards_then["c"])]
    assert single.second["queues"]["2"]["current_task"] is None


CONSOLE = "API and console"
MODULE = "internal module"
TREE = "目录结构"
ROUTES = "后端 API"
PAGES = "前端页面"


def route(sentence, instead):
    return Elsewhere(ROUTES, sentence, CONSOLE, instead)


ELSEWHERE = [
    Elsewhere(TREE, "├── app/                           # 调度器核心应用", MODULE,
              "the programs `main_gpu` and `main_gpus`, links to `berth`"),
    Elsewhere(TREE, "utils/                     # 工具模块", MODULE,
              "nothing to import: `berth` is one program, and `--json` speaks to scripts"),
    Elsewhere(TREE, "__init__.py", MODULE,
              "nothing to import: `berth` is one program, and `--json` speaks to scripts"),
    Elsewhere(TREE, "gpu_monitor.py         # GPU 状态监控", MODULE, "`berth gpus`, `berth top`"),
    Elsewhere(TREE, "gpu_select.py          # GPU 智能选择策略", MODULE,
              "the rule `strategy`; `memory_spend` and `memory_save` are what `memory_save_mode` chooses between"),
    Elsewhere(TREE, "parse_command_file.py  # 单GPU命令文件解析器", MODULE, "`berth check command_gpu.txt`"),
    Elsewhere(TREE, "gpus_command_file.py   # 多GPU命令文件解析器", MODULE, "`berth check command_gpus.txt`"),
    Elsewhere(TREE, "process_yaml.py        # YAML 配置文件管理", MODULE,
              "`berth check` for what a configuration says, `berth set --batch ID` to change it"),
    Elsewhere(TREE, "retry.py               # 重试机制配置", MODULE, "the rules `retry_config.*`, see docs/guide/retries.md"),
    Elsewhere(TREE, "update_state.py        # 状态写入模块（调度器端，写入JSON状态文件）", MODULE,
              "the daemon writes `logs/state/{pid}.json`, see docs/formats/state-files.md"),
    Elsewhere(TREE, "control_setting.yaml       # 控制台配置文件", CONSOLE, "the page /ui/setting"),
    Elsewhere(TREE, "control/                       # 控制台（Web UI）", CONSOLE, "`berth ui` and the pages below /ui"),
    Elsewhere(TREE, "run.sh                     # 启动脚本", CONSOLE, "`berth ui` starts it and prints the link"),
    Elsewhere(TREE, "shut_down.sh               # 关闭脚本", CONSOLE, "`POST /api/ui/stop`: the daemon stops listening"),
    Elsewhere(TREE, "logs/                      # 控制台日志", CONSOLE, "the daemon's own log, which `berth status` names"),
    Elsewhere(TREE, "src/                       # 源代码", MODULE, "`src/api` and `src/daemon` of this repository"),
    Elsewhere(TREE, "main.py                # FastAPI 主程序", MODULE, "`berthd`, which serves API and console itself"),
    Elsewhere(TREE, "column/                # 业务模块", MODULE, "the routes of the API, see docs/formats/api.md"),
    Elsewhere(TREE, "config_rule.py     # YAML 配置处理", MODULE, "the page /ui/rule, `berth set`"),
    Elsewhere(TREE, "config_command.py  # 命令配置处理（支持多配置）", MODULE, "the page /ui/command, `/api/commands/{mode}`"),
    Elsewhere(TREE, "display_state.py   # 调度器状态管理（读取状态、日志绑定）", MODULE,
              "the page /ui/state, `/api/scheduler/running`, `/api/log/bindings`"),
    Elsewhere(TREE, "manage_gpu.py      # GPU 监控", MODULE, "the page /ui/gpu, `berth gpus`"),
    Elsewhere(TREE, "setting.py         # 系统设置", MODULE, "the page /ui/setting"),
    Elsewhere(TREE, "manage_port.py     # 端口管理", MODULE, "`berth ui --port N`"),
    Elsewhere(TREE, "manage_ip.py       # IP 管理", MODULE, "the daemon listens on 127.0.0.1 unless told"),
    Elsewhere(TREE, "run_app.py         # 调度器运行管理", MODULE, "`/api/scheduler/{mode}/start` and `stop`"),
    Elsewhere(TREE, "dashboard/             # 前端构建产物", MODULE, "the console is built into `berthd`"),
    Elsewhere(TREE, "dist/              # 静态文件", MODULE, "the console is built into `berthd`"),
    Elsewhere(TREE, "scheduler_*.log            # 通过控制台启动的调度器日志", CONSOLE,
              "the log of a batch that `POST /api/scheduler/{mode}/start` has started"),
    Elsewhere(TREE, "控制台后端.md              # 控制台后端 API", CONSOLE, "docs/formats/api.md"),
    Elsewhere(TREE, "控制台前端.md              # 控制台前端设计", CONSOLE, "the pages below /ui, opened by `berth ui`"),
    Elsewhere("3. 控制台 (control/)", "基于 FastAPI + React 的 Web 管理界面：", CONSOLE,
              "`berth ui` opens the console; `berthd` serves it"),
    route("| `/api/commands/{mode}/list` | GET | 列出所有配置 |", "`GET /api/commands/{mode}/list`, page /ui/command"),
    route("| `/api/commands/{mode}/all` | GET | 获取所有配置数据 |", "`GET /api/commands/{mode}/all`, page /ui/command"),
    route("| `/api/commands/{mode}` | GET | 获取指定配置 |", "`GET /api/commands/{mode}`, page /ui/command"),
    route("| `/api/commands/{mode}` | PUT | 更新配置 |", "`PUT /api/commands/{mode}`, page /ui/command"),
    route("| `/api/commands/{mode}/new` | POST | 创建新配置 |", "`POST /api/commands/{mode}/new`, page /ui/command"),
    route("| `/api/commands/{mode}/{index}` | DELETE | 删除配置 |",
          "`DELETE /api/commands/{mode}/{index}`, page /ui/command"),
    route("| `/api/scheduler/{mode}/start` | POST | 启动调度器 |",
          "`POST /api/scheduler/{mode}/start`, page /ui/command; in a terminal `main_gpu` and `main_gpus`"),
    route("| `/api/scheduler/{mode}/stop` | POST | 停止调度器 |",
          "`POST /api/scheduler/{mode}/stop`, page /ui/state; in a terminal `berth kill`"),
    route("| `/api/scheduler/{mode}/state` | GET | 获取调度器状态 |", "`GET /api/scheduler/{mode}/state`, page /ui/state"),
    route("| `/api/scheduler/running` | GET | 获取所有运行中调度器详细状态 |",
          "`GET /api/scheduler/running`, page /ui/state"),
    route("| `/api/scheduler/stop/{pid}` | POST | 通过 PID 停止调度器 |",
          "`POST /api/scheduler/stop/{pid}`, page /ui/state"),
    route("| `/api/log/bind` | POST | 绑定日志文件到进程 |", "`POST /api/log/bind`, page /ui/command"),
    route("| `/api/log/bindings` | GET | 获取所有日志绑定 |", "`GET /api/log/bindings`, page /ui/state"),
    route("| `/api/log/content` | GET | 读取绑定的日志内容 |", "`GET /api/log/content`, page /ui/state"),
    route("| `/api/log/read` | GET | 通过路径读取日志 |", "`GET /api/log/read`, page /ui/state"),
    Elsewhere(PAGES, "- `/ui/gpu` - GPU 实时监控", CONSOLE, "the page /ui/gpu; in a terminal `berth top`"),
    Elsewhere(PAGES, "- `/ui/command` - 命令配置管理（支持多配置）", CONSOLE, "the page /ui/command"),
    Elsewhere(PAGES, "- `/ui/state` - 调度器状态监控（实时显示队列和任务状态）", CONSOLE,
              "the page /ui/state; in a terminal `berth top`"),
    Elsewhere(PAGES, "- `/ui/rule` - 规则配置", CONSOLE, "the page /ui/rule; in a terminal `berth set`"),
    Elsewhere(PAGES, "- `/ui/setting` - 系统设置", CONSOLE, "the page /ui/setting"),
    Elsewhere("启动控制台", "cd scripts/compete_gpu_retry/control\nbash run.sh", CONSOLE, "`berth ui`, from any directory"),
    Elsewhere("通过 API 启动调度器",
              '# 启动配置1的单GPU调度器\ncurl -X POST "http://localhost:29214/api/scheduler/single/start?config_index=0"',
              CONSOLE, "`POST /api/scheduler/single/start?config_index=0` with a token"),
    Elsewhere("通过 API 启动调度器",
              '# 启动配置2的多GPU调度器\ncurl -X POST "http://localhost:29214/api/scheduler/multi/start?config_index=1"',
              CONSOLE, "`POST /api/scheduler/multi/start?config_index=1` with a token"),
    Elsewhere("v2.2.0 (2025-12-03)", "- **日志绑定功能**：命令配置页面支持为每个进程绑定日志文件", CONSOLE,
              "the page /ui/command, `POST /api/log/bind`"),
    Elsewhere("v2.2.0 (2025-12-03)", "- **日志查看**：状态监控页面支持查看已绑定的日志内容", CONSOLE,
              "the page /ui/state, `GET /api/log/content`; what a task prints is shown by `berth log`, bound or not"),
    Elsewhere("v2.2.0 (2025-12-03)",
              "- **日志独立存储**：日志绑定信息保存在 `control/logs/log_bindings.json`，不修改配置文件", CONSOLE,
              "`POST /api/log/bind` and `GET /api/log/bindings`; command files are not touched"),
    Elsewhere("v2.2.0 (2025-12-03)", "- **状态管理模块**：新增 `display_state.py` 模块统一管理调度器状态和日志绑定", MODULE,
              "the page /ui/state, `/api/scheduler/running`, `/api/log/bindings`"),
    Elsewhere("v2.1.0 (2025-12-03)", "- **状态栏功能**：实时显示调度器运行状态", CONSOLE,
              "the page /ui/state; in a terminal `berth top`"),
    Elsewhere("v2.1.0 (2025-12-03)", "- **进程级停止**：支持通过 PID 停止调度器", CONSOLE,
              "`POST /api/scheduler/stop/{pid}`, page /ui/state; in a terminal `berth kill`"),
    Elsewhere("v2.0.0 (2025-12-03)", "- **调度器运行 API**：通过控制台启动/停止调度器", CONSOLE,
              "`POST /api/scheduler/{mode}/start` and `stop`, page /ui/command"),
    Elsewhere("v2.0.0 (2025-12-03)", "- **配置层级**：按 配置 → 队列 → 进程 三级展开", CONSOLE,
              "the pages /ui/command and /ui/state; `logs/state/{pid}.json` has the same three levels"),
    Elsewhere("v1.1.0", "- Web 控制台", CONSOLE, "`berth ui` and the pages below /ui"),
]
# Names of columns, and the word for the first version.
SILENT = ["| 路径 | 方法 | 说明 |", "- 初始版本"]
