"""What document 002 promises: the GPU resource manager.

What needs leases, scaling, mail or a cluster is open. Such a wish is refused with a sentence that names it, which
tests show as well; they stand at the end.
"""

import json
import re
import subprocess

import pytest

from berthlib import Instance, PATIENCE, alive, eventually, job as shared
from promises import Elsewhere, promise

SERVES = "概述"
ACQUIRE = "1. 动态 GPU 获取"
MANAGE = "2. 智能资源管理"
GROW = "3. 程序自动扩展"
COMMANDS = "基本命令"
FLOW = "完整工作流程示例"
BY_HAND = "手动申请 GPU"
FILE = "配置文件：`gpu_manager_config.json`"
SEVERAL = "1. 多任务管理"
CUSTOM = "2. 自定义程序配置"
GROWING = "3. 自动扩展配置"
STATE = "状态监控"
LOGS = "日志文件"
PLAN = "1. 资源规划"
TASKS = "2. 任务管理"
ERRORS = "3. 错误处理"
TUNING = "4. 性能优化"
TROUBLE = "常见问题"
DEBUG = "调试命令"
MAIL = "1. 邮件通知"
WATCHING = "2. 自定义监控"
API = "3. API 接口"

# The program: says what it was given, and ends when it is let go.
TRAIN = """#!/bin/bash
echo "words: $*"
echo "devices: $CUDA_VISIBLE_DEVICES order: $CUDA_DEVICE_ORDER level: $LEVEL"
while [ -e hold ]; do sleep 0.02; done
[ -e fail ] && echo "the data is not there" && exit 3
echo "trained"
"""

# As in the document, with a program that is there.
CONFIG = """{
  "monitor_interval": 5,           // 监控间隔（秒）
  "max_gpus_per_task": 4,         // 每个任务最大 GPU 数
  "auto_scale": true,             // 是否启用自动扩展
  "program_template": {            // 程序启动模板
    "command": "bash train.sh",
    "args": ["--gpus", "{gpu_list}"],
    "env_vars": {
      "CUDA_VISIBLE_DEVICES": "{gpu_list}"
    }
  },
  "scaling": {                     // 扩展配置
    "enabled": true,
    "min_gpus": 1,
    "max_gpus": 4,
    "scale_up_threshold": 0.8,
    "scale_down_threshold": 0.3
  }
}
"""
# The same for one GPU at a time.
SINGLE = CONFIG.replace('"max_gpus_per_task": 4', '"max_gpus_per_task": 1').replace('"max_gpus": 4', '"max_gpus": 1')


class Manager:
    """gpu_resource_manager in a folder with its configuration."""

    def __init__(self, berth, folder):
        self.berth = berth
        self.folder = folder
        folder.mkdir()
        for name in ("gpu_resource_manager", "gpu_manager"):
            (folder / name).symlink_to(berth.bin_dir / "berth")
        (folder / "train.sh").write_text(TRAIN)
        self.configure(CONFIG)

    def configure(self, text):
        (self.folder / "gpu_manager_config.json").write_text(text)

    def __call__(self, *words, check=0, program="gpu_resource_manager"):
        done = subprocess.run(
            [str(self.folder / program), *map(str, words)], cwd=self.folder, env=self.berth.environment(),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
        )
        assert check is None or done.returncode == check, done
        return done

    def job(self, task):
        return next(j for j in reversed(self.berth.jobs()) if j["params"].get("task") == task)

    def start(self, task, *words):
        """Starts the program as a task; its job, which runs."""
        self("--start-program", task, *words)
        return self.berth.wait_state(self.job(task)["id"], "running", "succeeded")

    def wait(self, task):
        return self.berth.wait_one(self.job(task)["id"])

    def log(self, task):
        return self.berth.cli("log", self.job(task)["id"], check=0).stdout

    def check(self, *words):
        """What the configuration becomes, and what is said of it."""
        done = self.berth.cli("check", "--json", *words, "gpu_manager_config.json", cwd=self.folder)
        return (json.loads(done.stdout) if done.returncode == 0 else None), done.stderr

    def hold(self):
        (self.folder / "hold").touch()

    def let_go(self):
        (self.folder / "hold").unlink(missing_ok=True)

    def free(self):
        return [g["index"] for g in self.berth.api("GET", "/api/gpus")["gpus"] if g["state"] == "free"]


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """Four cards, shared by the tests of this file."""
    instance = Instance(tmp_path_factory.mktemp("m"), gpus="sim:4x24GiB")
    instance.start()
    yield instance
    instance.close()


@pytest.fixture
def manager(machine, tmp_path):
    made = Manager(machine, tmp_path / "project")
    yield made
    made.let_go()
    machine.cli("kill", "--grace", "0", "all")
    machine.wait_all()
    eventually(lambda: len(made.free()) == 4, "all cards are free for the next test")


# --- 概述, 核心功能 ----------------------------------------------------------------------------------


@promise("002", SERVES, "实时监控 GPU 可用性")
def test_free_gpus_are_told_as_they_are(manager):
    assert "Free GPUs: 4\n" in manager("--status").stdout
    manager.hold()
    manager.start("a", "--gpus", 3)
    assert "Free GPUs: 1\n" in manager("--status").stdout
    manager.let_go()
    manager.wait("a")
    eventually(lambda: "Free GPUs: 4\n" in manager("--status").stdout, "they are free again")


@promise("002", SERVES, "动态获取空闲 GPU")
@promise("002", ACQUIRE, "当检测到空闲 GPU 时自动获取")
def test_a_program_gets_gpus_as_soon_as_they_are_free(manager):
    manager.hold()
    manager.start("first", "--gpus", 4)
    manager("--start-program", "second", "--gpus", 2)
    waiting = eventually(lambda: manager.berth.why(manager.job("second")["id"]), "the second waits")
    assert "GPU" in waiting
    manager("--release", "first")
    assert len(manager.berth.wait_state(manager.job("second")["id"], "running")["gpu_indices"]) == 2


@promise("002", SERVES, "支持多 GPU 协作")
@promise("002", ACQUIRE, "支持多 GPU 协作运行程序")
@promise("002", GROW, "支持多 GPU 并行计算")
def test_a_program_runs_on_several_gpus(manager):
    manager.start("wide", "--gpus", 3)
    assert len(manager.wait("wide")["gpu_indices"]) == 3
    devices = re.search(r"devices: (\S+)", manager.log("wide"))[1]
    assert len(set(devices.split(","))) == 3


@promise("002", MANAGE, "跟踪 GPU 分配和使用情况")
@promise("002", TASKS, "监控任务状态和性能")
def test_who_has_which_gpus_is_known(manager):
    manager.hold()
    job = manager.start("a", "--gpus", 2)
    assert re.search(r"^Task a: 2 GPUs on \S+ \(running\)$", manager("--status").stdout, re.MULTILINE)
    gpus = json.loads(manager.berth.cli("gpus", "--json", check=0).stdout)
    assert [g["index"] for g in gpus if any(c["job"] == job["id"] for c in g["claims"])] == sorted(job["gpu_indices"])
    assert all({"memory_used", "utilization", "temperature"} <= g.keys() for g in gpus)


@promise("002", MANAGE, "支持资源的动态释放")
def test_gpus_are_given_back_while_others_go_on(manager):
    manager.hold()
    manager.start("a", "--gpus", 2)
    stays = manager.start("b", "--gpus", 1)
    manager("--release", "a")
    eventually(lambda: len(manager.free()) == 3, "those of a are free")
    assert manager.berth.show(stays["id"])["job"]["state"] == "running"


@promise("002", GROW, "智能负载均衡")
def test_work_is_spread_over_the_gpus(manager):
    """Beside a program of its own card, jobs that share cards. Four of them fit on one; each card gets two."""
    manager.configure(SINGLE)
    manager.hold()
    [own] = manager.start("a")["gpu_indices"]
    hold = f"while [ -e {manager.folder}/hold ]; do sleep 0.02; done"
    jobs = manager.berth.submit([shared(hold, gpus=1, gpu_memory=5 * 2**30) for _ in range(6)])
    cards = [manager.berth.wait_state(job, "running")["gpu_indices"][0] for job in jobs]
    assert sorted(cards) == sorted(2 * [card for card in range(4) if card != own])


# --- 使用方法 -----------------------------------------------------------------------------------------


@promise("002", COMMANDS, "# 启动监控模式（推荐） python scripts/gpu_resource_manager.py")
def test_without_options_it_watches(manager, terminal):
    shown = terminal(manager.berth, command=[str(manager.folder / "gpu_resource_manager")], cwd=manager.folder)
    shown.expect(r"gpu_resource_manager, every 5\.0 s")
    shown.expect("Free GPUs: 4")
    shown.send("q")
    shown.finish()
    assert shown.code == 0


@promise("002", COMMANDS, "# 查看当前状态 python scripts/gpu_resource_manager.py --status")
@promise("002", FLOW, "# 4. 监控状态 python scripts/gpu_resource_manager.py --status")
def test_status_shows_gpus_and_tasks(manager):
    manager.hold()
    manager.start("training_task_1", "--gpus", 2)
    said = manager("--status").stdout
    assert "Total GPUs: 4\nFree GPUs: 2\nAllocated GPUs: 2\nActive Tasks: 1\n" in said
    assert "Task training_task_1: 2 GPUs on " in said
    assert manager("--status", program="gpu_manager").stdout == said, "by its later name"


@promise("002", COMMANDS, "# 释放任务的 GPU python scripts/gpu_resource_manager.py --release my_task")
def test_release_ends_a_program_and_frees_its_gpus(manager):
    manager.hold()
    job = manager.start("my_task")
    pid = eventually(
        lambda: next((p for p, line in manager.berth.processes().items() if "train.sh" in line), None), "it runs")
    said = manager("--release", "my_task").stdout
    assert f"released my_task: job {job['id']} has ended" in said
    assert manager.berth.show(job["id"])["job"]["state"] == "killed" and not alive(pid)
    eventually(lambda: len(manager.free()) == 4, "its GPUs are free")
    assert "there is no task 'other'" in manager("--release", "other", check=1).stderr


@promise("002", COMMANDS, "# 启动程序 python scripts/gpu_resource_manager.py --start-program my_task")
@promise("002", FLOW, "# 3. 启动训练程序 python scripts/gpu_resource_manager.py --start-program training_task_1")
def test_start_program_starts_the_program_of_the_configuration(manager):
    manager("--start-program", "my_task")
    assert manager.wait("my_task")["state"] == "succeeded"
    assert manager.log("my_task").startswith("words: --gpus ") and manager.log("my_task").endswith("trained\n")
    (manager.folder / "gpu_manager_config.json").rename(manager.folder / "other.json")
    assert "gpu_manager_config.json" in manager("--start-program", "my_task", check=1).stderr
    manager("--config", "other.json", "--start-program", "my_task")


@promise("002", FLOW, "# 1. 启动资源管理器 python scripts/gpu_resource_manager.py &")
def test_in_the_background_nothing_has_to_keep_running(manager):
    """The daemon does what the manager did, and is there already."""
    done = subprocess.run(["bash", "-c", "./gpu_resource_manager & wait"], cwd=manager.folder, timeout=PATIENCE,
                          env=manager.berth.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert "Total GPUs: 4\n" in done.stdout and "berthd watches the GPUs" in done.stdout
    manager("--daemon")


@promise("002", FLOW, "# 5. 完成后释放资源 python scripts/gpu_resource_manager.py --release training_task_1")
@promise("002", TASKS, "及时释放不再使用的资源")
def test_what_has_ended_holds_nothing(manager):
    manager.start("training_task_1", "--gpus", 4)
    manager.wait("training_task_1")
    eventually(lambda: len(manager.free()) == 4, "its GPUs are free by themselves")
    assert "has ended (succeeded), and its GPUs were free" in manager("--release", "training_task_1").stdout


@promise("002", BY_HAND, "脚本会自动在名称前加前缀 `NDFS_`，避免被误判为占位。")
def test_the_job_has_a_prefix(manager):
    assert manager.start("exp_train")["name"] == "NDFS_exp_train"
    manager.configure(CONFIG.replace('"auto_scale"', '"job_prefix": "LAB_",\n  "auto_scale"'))
    assert manager.start("other")["name"] == "LAB_other"


@promise("002", BY_HAND, "`--gpus <N>` 申请 GPU 张数，受以下限制：")
def test_gpus_says_how_many(manager):
    assert len(manager.start("a", "--gpus", 1)["gpu_indices"]) == 1
    assert len(manager.start("b", "--gpus", 3)["gpu_indices"]) == 3
    said = manager("--start-program", "c", "--gpus", 5, check=2).stderr
    assert "'c' wants 5 GPUs, and max_gpus_per_task is 4" in said


@promise("002", BY_HAND, "• 全局硬上限 `max_total_gpus=8`；")
def test_all_tasks_together_have_eight_at_most(manager):
    manager.hold()
    manager.start("a", "--gpus", 4)
    manager("--start-program", "b", "--gpus", 4)  # waits, and counts
    said = manager("--start-program", "c", "--gpus", 1, check=2).stderr
    assert "'c' wants 1 of the 8 GPUs that max_total_gpus allows, and other tasks have 8" in said
    manager.configure(CONFIG.replace('"auto_scale"', '"max_total_gpus": 9,\n  "auto_scale"'))
    manager("--start-program", "c", "--gpus", 1)


@promise("002", BY_HAND, "手动可再要 `max_manual_gpus=6`；")
def test_six_by_hand_at_most(manager):
    manager.configure('{"program_template": {"command": "true"}}')
    assert "max_manual_gpus is 6" in manager("--start-program", "a", "--gpus", 7, check=2).stderr
    manager("--start-program", "a", "--gpus", 6)
    manager.configure('{"program_template": {"command": "true"}, "max_manual_gpus": 2}')
    assert "max_manual_gpus is 2" in manager("--start-program", "b", "--gpus", 3, check=2).stderr


@promise("002", BY_HAND, "如果需求超过可用额度，脚本会给出警告并拒绝提交。")
def test_what_is_more_than_allowed_is_refused_and_not_submitted(manager):
    before = len(manager.berth.jobs())
    said = manager("--start-program", "exp_train", "--gpus", 7, check=2).stderr
    assert "'exp_train' wants 7 GPUs" in said and "nothing was started" in said
    assert len(manager.berth.jobs()) == before


@promise("002", BY_HAND, "> 建议在提交前用 `system_monitor.py` 查看当前 Running/Pending 数，保持资源占用合理。")
def test_what_runs_and_what_waits_is_counted(manager):
    manager.hold()
    manager.start("a", "--gpus", 4)
    manager("--start-program", "b")
    manager("--start-program", "c")
    said = eventually(lambda: "(waiting: no GPU" in (s := manager("--status").stdout) and s, "why they wait")
    assert "Active Tasks: 1\nWaiting Tasks: 2\n" in said and re.search(r"^Task b: 1 GPU \(waiting: ", said, re.MULTILINE)


# --- 配置说明 -----------------------------------------------------------------------------------------


@promise("002", FILE, '{ "monitor_interval": 5, // 监控间隔（秒）')
@promise("002", TUNING, "调整监控间隔平衡性能和资源消耗")
def test_monitor_interval_is_how_old_a_look_may_be(manager):
    """While something waits."""
    manager.hold()
    manager.start("a", "--gpus", 4)
    manager("--start-program", "b")
    batch = manager.job("b")["batch"]
    rules = json.loads(manager.berth.cli("set", "--batch", batch, "--json", check=0).stdout)["rules"]
    assert next(r["value"] for r in rules if r["key"] == "sample_age_max") == "5s"
    manager.configure(CONFIG.replace('"monitor_interval": 5', '"monitor_interval": 60'))
    assert manager.check()[0]["rules"]["sample_age_max"] == "60000ms"


@promise("002", FILE, '"max_gpus_per_task": 4, // 每个任务最大 GPU 数')
def test_a_task_has_max_gpus_per_task_at_most(manager):
    manager.configure(CONFIG.replace('"max_gpus_per_task": 4', '"max_gpus_per_task": 2'))
    assert len(manager.start("a")["gpu_indices"]) == 2, "of four that are free"
    assert "max_gpus_per_task is 2" in manager("--start-program", "b", "--gpus", 3, check=2).stderr


@promise("002", FILE, '"program_template": { // 程序启动模板 "command": "python train.py",')
def test_the_command_is_run_in_the_folder_of_the_file(manager):
    manager.configure(CONFIG.replace("bash train.sh", "pwd && bash train.sh"))
    manager.start("a")
    manager.wait("a")
    assert manager.log("a").startswith(f"{manager.folder}\n")
    assert manager.check()[0]["jobs"][0]["run"] == "pwd && bash train.sh --gpus {gpu_list}"


@promise("002", FILE, '"args": ["--gpus", "{gpu_list}"],')
def test_the_words_behind_it_have_the_gpus_it_got(manager):
    job = manager.start("a", "--gpus", 2)
    manager.wait("a")
    assert f"words: --gpus {','.join(map(str, job['gpu_indices']))}\n" in manager.log("a")


@promise("002", FILE, '"env_vars": { "CUDA_VISIBLE_DEVICES": "{gpu_list}" } },')
def test_its_variables_have_them_too(manager):
    job = manager.start("a", "--gpus", 2)
    manager.wait("a")
    assert f"devices: {','.join(map(str, job['gpu_indices']))} order: PCI_BUS_ID" in manager.log("a")


@promise("002", FILE, '"min_gpus": 1,')
@promise("002", GROWING, '"min_gpus": 1, // 最少 GPU 数')
def test_min_gpus_is_the_fewest_it_starts_with(manager):
    manager.configure(CONFIG.replace('"min_gpus": 1', '"min_gpus": 2'))
    manager.hold()
    manager.start("a", "--gpus", 3)
    manager("--start-program", "b")
    waiting = eventually(lambda: manager.berth.why(manager.job("b")["id"]), "one free GPU is too few")
    assert "asks for 2" in waiting
    manager("--release", "a")
    assert len(manager.berth.wait_state(manager.job("b")["id"], "running")["gpu_indices"]) in (2, 3, 4)


@promise("002", FILE, '"max_gpus": 4,')
@promise("002", GROWING, '"max_gpus": 8, // 最大 GPU 数')
def test_of_two_limits_the_smaller_is_taken_and_told(manager):
    shown, said = manager.check()
    assert shown["jobs"][0]["gpus"] == "1..4" and "smaller" not in said
    manager.configure(CONFIG.replace('"max_gpus": 4', '"max_gpus": 8'))
    shown, said = manager.check()
    assert shown["jobs"][0]["gpus"] == "1..4"
    assert "gpu_manager_config.json:15:17: scaling.max_gpus is 8, and max_gpus_per_task is 4: the smaller is taken, 4" in said
    manager.configure(CONFIG.replace('"max_gpus": 4', '"max_gpus": 3'))
    done = manager("--start-program", "a")
    assert "max_gpus_per_task is 4, and scaling.max_gpus is 3: the smaller is taken, 3" in done.stderr
    assert len(manager.wait("a")["gpu_indices"]) == 3


# --- 高级用法 -----------------------------------------------------------------------------------------


@promise("002", SEVERAL, """# 同时运行多个任务""")
@promise("002", SEVERAL, """python scripts/gpu_resource_manager.py --start-program task1
python scripts/gpu_resource_manager.py --start-program task2""")
def test_several_tasks_run_at_once(manager):
    manager.configure(SINGLE)
    manager.hold()
    jobs = [manager.start(name) for name in ("task1", "task2")]
    assert [manager.berth.show(j["id"])["job"]["state"] for j in jobs] == ["running", "running"]
    assert jobs[0]["gpu_indices"] != jobs[1]["gpu_indices"]
    assert "Active Tasks: 2\n" in manager("--status").stdout


@promise("002", CUSTOM, """修改 `gpu_manager_config.json` 中的 `program_template`：
{
  "program_template": {
    "command": "python my_custom_script.py",
    "args": [
      "--model", "resnet50",
      "--data", "/path/to/data",
      "--gpus", "{gpu_list}",
      "--epochs", "200"
    ],
    "env_vars": {
      "CUDA_VISIBLE_DEVICES": "{gpu_list}",
      "PYTHONPATH": "/users/you/ND-Flexible-Sensor",
      "CUDA_LAUNCH_BLOCKING": "1"
    }
  }
}""")
def test_a_program_of_ones_own(manager):
    (manager.folder / "mine.sh").write_text('echo "$*" "$PYTHONPATH" "$CUDA_LAUNCH_BLOCKING" "$CUDA_VISIBLE_DEVICES"\n')
    manager.configure("""{
  "program_template": {
    "command": "bash mine.sh",
    "args": [
      "--model", "resnet50",
      "--data", "/path/to/data",
      "--gpus", "{gpu_list}",
      "--epochs", "200"
    ],
    "env_vars": {
      "CUDA_VISIBLE_DEVICES": "{gpu_list}",
      "PYTHONPATH": "/opt/lab",
      "CUDA_LAUNCH_BLOCKING": "1"
    }
  }
}""")
    card = manager.start("a")["gpu_indices"][0]
    manager.wait("a")
    assert manager.log("a") == (
        f"--model resnet50 --data /path/to/data --gpus {card} --epochs 200 /opt/lab 1 {card}\n")


# --- 监控和日志 ----------------------------------------------------------------------------------------


@promise("002", STATE, """# 实时查看状态
python scripts/gpu_resource_manager.py --status
# 输出示例：
# ============================================================
# GPU Resource Manager Status
# ============================================================
# Total Nodes: 11
# Total GPUs: 44
# Free GPUs: 2
# Allocated GPUs: 42
# Active Tasks: 3
#
# Node Details:
# ----------------------------------------
# qa-a10-023: 0/4 free (4 allocated)
# qa-a10-024: 1/4 free (3 allocated)
# qa-a10-025: 1/4 free (3 allocated)
#
# Task Allocations:
# ----------------------------------------
# Task training_task_1: 2 GPUs on qa-a10-024 (running)
# Task training_task_2: 1 GPU on qa-a10-025 (running)""")
def test_the_status_looks_as_it_did(manager):
    """Of one node, this one; how many tasks wait is new."""
    manager.hold()
    manager.start("training_task_1", "--gpus", 2)
    manager.start("training_task_2", "--gpus", 1)
    node = manager.berth.status()["node"]
    assert manager("--status").stdout == f"""{"=" * 60}
GPU Resource Manager Status
{"=" * 60}
Total Nodes: 1
Total GPUs: 4
Free GPUs: 1
Allocated GPUs: 3
Active Tasks: 2
Waiting Tasks: 0

Node Details:
{"-" * 40}
{node}: 1/4 free (3 allocated)

Task Allocations:
{"-" * 40}
Task training_task_1: 2 GPUs on {node} (running)
Task training_task_2: 1 GPU on {node} (running)
"""


def manager_log(manager, pattern):
    path = manager.folder / "gpu_manager.log"
    return eventually(lambda: path.exists() and re.search(pattern, path.read_text(errors="replace")),
                      f"{pattern} in gpu_manager.log")


@promise("002", LOGS, "日志文件：`gpu_manager.log`")
@promise("002", DEBUG, "# 查看详细日志 tail -f gpu_manager.log")
def test_there_is_a_log_beside_the_configuration(manager):
    job = manager.start("a")
    manager_log(manager, rf"job {job['id']} started on GPU")
    manager_log(manager, rf"job {job['id']} ended normally")
    assert not [p.name for p in manager.folder.iterdir() if p.name.startswith(("uni_id.json", "state"))]


@promise("002", LOGS, "包含所有操作记录和错误信息")
@promise("002", ERRORS, "检查日志文件了解错误原因")
@promise("002", TROUBLE, "查看日志文件了解详细错误")
def test_the_log_has_what_was_done_and_what_went_wrong(manager):
    (manager.folder / "fail").touch()
    job = manager.start("a")
    manager.wait("a")
    manager_log(manager, rf"job {job['id']} .*submitted")
    manager_log(manager, rf"job {job['id']} .*(failed|abnormal).*exit")
    assert "the data is not there" in manager.log("a"), "its own words are in its own log"


@promise("002", LOGS, "支持日志轮转和大小限制")
def test_the_log_rotates(manager):
    path = manager.folder / "gpu_manager.log"
    with open(path, "wb") as file:
        file.truncate(11 * 1024 * 1024)
    job = manager.start("a")
    manager_log(manager, rf"job {job['id']} started on GPU")
    assert path.stat().st_size < 1024 * 1024
    assert (manager.folder / "gpu_manager.log.1").stat().st_size == 11 * 1024 * 1024


# --- 最佳实践 -----------------------------------------------------------------------------------------


@promise("002", TASKS, "为每个任务使用唯一的任务 ID")
def test_a_task_is_there_once(manager):
    manager.hold()
    job = manager.start("a", "--gpus", 1)
    said = manager("--start-program", "a", check=1).stderr
    assert f"task 'a' is there already, running as job {job['id']}" in said
    manager("--release", "a")
    assert manager.start("a")["id"] > job["id"], "later the name may be used again"


@promise("002", ERRORS, "配置合适的重试机制")
def test_a_failed_task_can_be_run_again(manager):
    (manager.folder / "fail").touch()
    job = manager.start("a")["id"]
    assert manager.wait("a")["state"] == "failed"
    (manager.folder / "fail").unlink()
    manager.berth.cli("retry", job, check=0)
    ended = eventually(lambda: (j := manager.job("a"))["state"] == "succeeded" and j, "it succeeds")
    assert ended["id"] == job and ended["attempts"] == 2


# --- 故障排除 -----------------------------------------------------------------------------------------


@promise("002", TROUBLE, "1. **无法分配 GPU** - 检查是否有空闲 GPU")
def test_a_task_that_waits_says_what_it_waits_for(manager):
    manager.hold()
    holder = manager.start("a", "--gpus", 4)
    manager("--start-program", "b")
    said = eventually(lambda: "taken by job" in (s := manager("--status").stdout) and s, "why it waits")
    assert f"GPUs 0-3: taken by job {holder['id']}" in said


@promise("002", TROUBLE, "确认节点状态正常")
def test_a_card_that_is_out_of_order_is_told(manager):
    manager.berth.simgpu("set", 3, "lost", "yes")
    try:
        eventually(lambda: "3/4 free (0 allocated, 1 not ours to use)" in manager("--status").stdout, "it is seen")
        assert len(manager.start("a")["gpu_indices"]) == 3, "and not used"
    finally:
        manager.berth.simgpu("set", 3, "lost", "no")
        state = lambda: manager.berth.api("GET", "/api/gpus")["gpus"][3]["state"]  # noqa: E731
        eventually(lambda: state() == "drained", "it stays out of use until somebody has looked at it")
        manager.berth.cli("resume", "--gpu", "3", check=0)


@promise("002", TROUBLE, "2. **程序启动失败** - 检查程序路径和参数")
def test_a_program_that_is_not_there_is_told(manager):
    manager.configure(CONFIG.replace("bash train.sh", "./gone.sh"))
    manager("--start-program", "a")
    ended = manager.wait("a")
    assert ended["state"] == "failed" and ended["exit_code"] == 127
    assert "./gone.sh: No such file or directory" in manager.log("a")


@promise("002", TROUBLE, "确认环境变量设置正确")
def test_the_variables_of_a_task_can_be_looked_at(manager):
    manager.configure(CONFIG.replace('"env_vars": {', '"env_vars": {\n      "LEVEL": "three",'))
    job = manager.start("a")["id"]
    shown = json.loads(manager.berth.cli("show", job, "--json", check=0).stdout)
    assert "LEVEL=three" in json.dumps(shown)
    manager.wait("a")
    assert "level: three" in manager.log("a")


@promise("002", TROUBLE, "验证 GPU 驱动和 CUDA 版本")
def test_driver_and_cuda_are_told(manager):
    """The newest CUDA that the driver can do, as nvidia-smi has it."""
    manager.berth.cli("gpus", check=0)
    told = eventually(lambda: manager.berth.status()["probe"]["driver"], "somebody has looked")
    assert re.fullmatch(r"NVML \d+\.\d+\.\d+, CUDA \d+\.\d+", told)
    assert re.search(r"^GPUs: .*\(NVML [\d.]+, CUDA [\d.]+\)", manager.berth.cli("status", check=0).stdout, re.MULTILINE)
    assert "driver" in manager.berth.cli("doctor").stdout.lower()


@promise("002", DEBUG, "# 查看进程状态 ps aux | grep gpu_resource_manager")
def test_it_is_a_process_of_that_name(manager, terminal):
    shown = terminal(manager.berth, command=[str(manager.folder / "gpu_resource_manager")], cwd=manager.folder)
    shown.expect("Free GPUs")
    with open(f"/proc/{shown.pid}/cmdline") as line:  # what ps shows
        assert line.read() == f"{manager.folder}/gpu_resource_manager\0"


@promise("002", DEBUG, "# 检查配置文件 cat gpu_manager_config.json")
def test_the_configuration_can_be_checked(manager):
    done = manager.berth.cli("check", "gpu_manager_config.json", cwd=manager.folder, check=0)
    assert "bash train.sh --gpus {gpu_list}" in done.stdout
    manager.configure(CONFIG.replace("max_gpus_per_task", "max_gpu_per_task"))
    assert "3:3: unknown key 'max_gpu_per_task'; did you mean 'max_gpus_per_task'?" in manager.check()[1]


# --- 扩展功能 -----------------------------------------------------------------------------------------


@promise("002", WATCHING, "可以扩展监控功能： - 添加性能指标监控")
def test_a_program_may_report_metrics(manager):
    manager.configure(CONFIG.replace("bash train.sh", f"{manager.berth.bin_dir}/berth report --metric acc=0.93 #"))
    manager.start("a")
    assert manager.wait("a")["state"] == "succeeded"
    assert "0.93" in manager.berth.cli("results", manager.job("a")["id"], check=0).stdout


@promise("002", WATCHING, "支持更多资源类型")
def test_other_resources_are_there_as_well(manager):
    path = manager.folder / "native.yaml"
    path.write_text("version: 1\nrules: {resources: {licence: 1}}\ndefaults: {gpus: 0}\njobs:\n"
                    "  - {name: a, run: 'sleep 600', resources: {licence: 1}, cpus: 1, memory: 1MiB}\n"
                    "  - {name: b, run: 'true', resources: {licence: 1}}\n")
    manager.berth.cli("run", "--detach", path, check=0)
    b = manager.berth.jobs()[-1]["id"]
    assert "licence" in eventually(lambda: manager.berth.why(b), "it waits for the licence")


@promise("002", API, "支持自动化脚本调用")
def test_scripts_can_call_it(manager):
    job = manager.start("a")["id"]
    assert manager.berth.api("GET", f"/api/jobs/{job}")["job"]["params"] == {"task": "a"}
    assert manager.berth.wait([job])[job]["exit_code"] == 0


# --- what is open is refused by name ------------------------------------------------------------------


@pytest.mark.parametrize("words", [
    ("--allocate", "my_task"), ("--allocate", "exp_train", "--gpus", "4"), ("--quick-get", "2"), ("--use",),
    ("--request", "2"), ("--manage",),
])
def test_what_needs_leases_is_refused_by_name(manager, words):
    before = len(manager.berth.jobs())
    said = manager(*words, check=1).stderr
    assert said.startswith(f"gpu_resource_manager: {words[0]}: ")
    assert "comes with leases, which this version does not have" in said and "--start-program" in said
    assert len(manager.berth.jobs()) == before


@pytest.mark.parametrize("line, sentence", [
    ('"auto_manage": true', "auto_manage: keeping GPUs without a program comes with leases"),
    ('"aggressive_mode": true', "aggressive_mode: taking GPUs before they are needed comes with leases"),
    ('"min_reserved_gpus": 1', "min_reserved_gpus: keeping GPUs in reserve comes with leases"),
    ('"max_reserved_gpus": 2', "max_reserved_gpus: keeping GPUs in reserve comes with leases"),
    ('"notification": {"enabled": true, "email": "me@example.org", "gpu_available_threshold": 1}',
     "notification.enabled: this version sends no mail"),
    ('"manual_allocation_enabled": false', "to run this file is to ask for GPUs by hand"),
    ('"queue_waiting": false', "a job here waits until its GPUs are free"),
])
def test_keys_that_need_what_is_not_there_are_refused(manager, line, sentence):
    manager.configure(CONFIG.replace('"auto_scale"', f'{line},\n  "auto_scale"'))
    shown, said = manager.check()
    assert shown is None and sentence in said and "gpu_manager_config.json:4:" in said


@pytest.mark.parametrize("line, sentence", [
    ('"managed_job_prefixes": ["NDFS_"]', "managed_job_prefixes is not heeded"),
    ('"quick_allocation_timeout": 30', "quick_allocation_timeout is not heeded: allocations without a program"),
    ('"parallel_submissions": 3', "parallel_submissions is not heeded"),
    ('"logging": {"level": "INFO"}', "logging.level is not heeded"),
    ('"max_total_gpus": 8', "max_total_gpus holds for this run"),
    ('"auto_manage": false', "growing and shrinking while it runs comes with leases"),
])
def test_keys_that_change_nothing_are_told(manager, line, sentence):
    manager.configure(CONFIG.replace('"auto_scale"', f'{line},\n  "auto_scale"'))
    shown, said = manager.check()
    assert shown is not None and sentence in said


def test_a_program_that_runs_neither_grows_nor_shrinks_and_that_is_said(manager):
    said = manager("--start-program", "a").stderr
    assert "auto_scale: the program gets as many GPUs as are free when it starts, 1 to 4, and keeps them" in said
    for key in ("scale_up_threshold", "scale_down_threshold"):
        assert f"scaling.{key} is not heeded: a running program neither grows nor shrinks" in said


def is_open(heading, sentence, what, instead):
    return Elsewhere(heading, sentence, "open", f"{what}; {instead}")


FIXED = "a program gets as many GPUs as are free when it starts, between min_gpus and max_gpus, and a warning says so"
START = "`gpu_resource_manager --start-program TASK --gpus N` takes GPUs when the program starts"
HERE = "the cards of this machine are watched, by `gpu_resource_manager --status` and `berth gpus`"

ELSEWHERE = [
    is_open(SERVES, "自动扩展运行中的程序", "scaling", FIXED),
    is_open(ACQUIRE, "监控所有 GPU 节点的空闲状态", "clusters", HERE),
    is_open(MANAGE, "自动选择最优的 GPU 节点", "clusters", "the best cards of this machine are chosen"),
    is_open(GROW, "当新的 GPU 可用时，自动扩展运行中的程序", "scaling", FIXED),
    is_open(COMMANDS, "# 为特定任务分配 GPU python scripts/gpu_resource_manager.py --allocate my_task", "leases", START),
    is_open(FLOW, "# 2. 分配 GPU 给任务 python scripts/gpu_resource_manager.py --allocate training_task_1", "leases", START),
    is_open(BY_HAND, "在自动保底外，如需临时占用更多 GPU，可运行： # 申请 4 张 GPU，任务名 exp_train "
            "python scripts/gpu_resource_manager.py --allocate exp_train --gpus 4", "leases", START),
    is_open(BY_HAND, "`--allocate <task_id>` 指定作业名称；", "leases", "`--start-program TASK` names it"),
    is_open(BY_HAND, "自动模式最多 2 张，", "leases", "nothing is held without a program"),
    is_open(FILE, '"auto_scale": true, // 是否启用自动扩展', "scaling", FIXED),
    is_open(FILE, '"scaling": { // 扩展配置 "enabled": true,', "scaling", FIXED),
    is_open(FILE, '"scale_up_threshold": 0.8, "scale_down_threshold": 0.3', "scaling", "a warning at each of them"),
    is_open(SEVERAL, "python scripts/gpu_resource_manager.py --allocate task1 "
            "python scripts/gpu_resource_manager.py --allocate task2", "leases", START),
    is_open(GROWING, '"scaling": { "enabled": true,', "scaling", FIXED),
    is_open(GROWING, '"scale_up_threshold": 0.8, // GPU 使用率超过 80% 时扩展', "scaling", "a warning at the key"),
    is_open(GROWING, '"scale_down_threshold": 0.3 // GPU 使用率低于 30% 时收缩', "scaling", "a warning at the key"),
    is_open(PLAN, "使用自动扩展功能优化资源使用", "scaling", FIXED),
    is_open(TUNING, "使用合适的扩展阈值", "scaling", "a warning at the keys"),
    is_open(TROUBLE, "3. **自动扩展不工作** - 确认 `auto_scale` 设置为 `true` - 检查扩展阈值配置 - 验证程序支持动态 GPU 扩展",
            "scaling", FIXED),
    is_open(DEBUG, "# 检查 GPU 状态 free_gpus.sh @crc_gpu", "clusters", HERE),
    is_open(MAIL, '配置邮件通知功能： { "notification": { "enabled": true, "email": "you@example.org", '
            '"gpu_available_threshold": 1 } }', "mail", "notification.enabled is refused; `berth wait` returns at the end"),
    is_open(WATCHING, "集成其他集群管理工具", "clusters", "jobs run on this machine; #SBATCH scripts run unedited"),
    Elsewhere(API, "未来可以添加 REST API 接口： - 支持远程管理", "API and console",
              "the HTTP API is documented in docs/formats/api.md; `berth --server URL` from another machine"),
    Elsewhere(API, "集成到 Web 界面", "API and console", "the console; `berth top` is the live view in a terminal"),
]
SILENT = [
    # They only lead to what follows.
    "GPU 资源管理器是一个智能的 GPU 资源管理系统，可以：",
    "说明：",
    # Advice about the user's own programs and numbers.
    "- 根据任务需求合理设置 GPU 数量",
    "- 避免过度分配导致资源浪费",
    "- 确保程序支持多 GPU 运行",
    "- 优化程序的多 GPU 支持",
    # Who wrote it, and when.
    "*最后更新：2025-07-16*",
    "*维护者：you*",
]
