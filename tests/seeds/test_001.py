"""What document 001 promises: queues, retries and backoff of compete_gpu_retry."""

import json
import re
import subprocess
import types

import pytest
from command_scheduler import *  # noqa: F401,F403
from command_scheduler import Scheduler, ending_everything, eventually, living, process_on
from promises import Elsewhere, promise

# config.yaml as the document has it; the work directory is put in.
CONFIG = """\
# 调度配置
check_time: 5  # 调度间隔（秒）
maximize_resource_utilization: false  # 极限利用资源模式

# GPU 配置
compete_gpus: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]  # 手动指定的 GPU 列表
use_all_gpus: true  # 是否自动探测所有 GPU
gpu_left: 1  # 剩余几张卡给其他用户

# 重试配置
retry_config:
  max_retry_before_backoff: 3  # 每 3 次重试后进入退避
  backoff_duration: 600         # 退避时间 10 分钟

work_dir: {work_dir}
"""

# command_bk.txt as the document has it.
OPTIMISED = """\
# 注释行（以 # 开头）
# 空行分隔不同任务

# 任务1：队列1
1 #队列ID
"rm -rf {work_dir}/experiments/car196/knowledge_base"
"bash {work_dir}/scripts/set_hyperparameters.sh --experience_number 8"
"bash {work_dir}/scripts/run_pipeline.sh car --uni_id {uni_id}"
20 #剩余显存

# 任务2：队列2
2
"rm -rf {work_dir}/experiments/flower102/knowledge_base"
"bash {work_dir}/scripts/set_hyperparameters.sh --experience_number 5"
"bash {work_dir}/scripts/run_pipeline.sh flower --uni_id {uni_id}"
20
"""

# Its standard form: three commands, then two.
STANDARD = """\
# 注释行（以 # 开头）
# 空行分隔不同任务

# 任务1：队列1
echo 命令1 >> done
echo 命令2 >> done
echo 命令3 >> done
1,20

# 任务2：队列2
true
echo 命令2 >> done2
2,20
"""


# --- runs that many tests look at -----------------------------------------------------------------


def retries_of(at, job):
    """What was said at each retry of a job."""
    said = at.call("berth", "history", job, "--kind", "retried", "--json").stdout
    return [event["detail"] for event in json.loads(said)]


@pytest.fixture(scope="module")
def pipeline(machine, tmp_path_factory):
    """The document's own files, in the document's directories. The car pipeline first says that it ran out of
    memory, then that it broke, then that all is well."""
    project = tmp_path_factory.mktemp("fgvr")
    with ending_everything(machine):
        at = Scheduler(machine, project, "scripts/compete_gpu_retry")
        scripts = at.add_pipeline()
        (scripts / "car.ends").write_text("abnormal_exit oom\nabnormal_exit runtime_error\nnormal_exit\n")
        for name in ("car196", "flower102"):
            (project / "experiments" / name / "knowledge_base").mkdir(parents=True)
        at.config(CONFIG.replace("{work_dir}", f'"{project}"'))
        at.write("command_bk.txt", OPTIMISED)
        at.ended = at.run("command_bk.txt", "--rule", "retry_config.raise_memory=false")
        at.final = at.settled()
        at.marks = {n: [m.split() for m in at.lines(f"scripts/{n}.marks")] for n in ("car", "flower")}
        eventually(lambda: "completed 2" in at.log(), "the log tells of the end")
        yield at


@pytest.fixture(scope="module")
def queues(machine, tmp_path_factory):
    """Two tasks in queue 1, one in queue 2, looked at while the first ones run, then after each end."""
    with ending_everything(machine):
        at = Scheduler(machine, tmp_path_factory.mktemp("queues") / "project")
        at.write("command.txt", f"{at.task('a')}\n1,20\n\n{at.task('c')}\n2,20\n\n{at.task('b')}\n1,20\n")
        at.ids = at.submit()
        at.begun("a", "c")
        at.first = types.SimpleNamespace(
            cards=at.cards(), b=at.state_of(at.ids["q1-2"]), why=machine.why(at.ids["q1-2"]),
            state=eventually(lambda: (s := at.state()) and s["running_tasks"] == 2 and s, "two are told of"),
            entries=eventually(lambda: len(e := at.entries()) == 2 and all(v["pid"] for v in e.values()) and e,
                               "their pids are told of"))
        at.first.alive = {uni_id: living(e["pid"]) for uni_id, e in at.first.entries.items()}
        at.log_then = eventually(lambda: "busy queues: 1, 2" in at.log() and at.log(), "both are busy")
        at.status_then = at.call("berth", "status").stdout
        at.let_go("c")
        machine.wait([at.ids["q2-1"]])
        at.b_then = at.state_of(at.ids["q1-2"])
        at.log_next = eventually(lambda: "busy queues: 1; idle queues: 2" in at.log() and at.log(), "one is idle")
        at.let_go("a")
        at.begun("b")
        at.ended_before_b = at.lines("ended")
        at.let_go("b")
        at.ended = machine.wait(at.ids.values())
        at.final = at.settled()
        yield at


@pytest.fixture(scope="module")
def retried(machine, tmp_path_factory):
    """A task that fails seven times and then succeeds, with short waits after each three retries."""
    with ending_everything(machine):
        at = Scheduler(machine, tmp_path_factory.mktemp("retried") / "project")
        at.config("retry_config:\n  max_retry_before_backoff: 3\n  backoff_duration: 0.6\n")
        at.write("command.txt", "echo {uni_id} >> marks\n[ $(wc -l < marks) -eq 8 ]\n1,20\n")
        at.job = at.run()["q1-1"]
        at.retries = retries_of(at, at.job["id"])
        at.final = at.settled()
        yield at


@pytest.fixture(scope="module")
def backing_off(machine, tmp_path_factory):
    """A task that always fails, with the defaults, once it is in its first long wait."""
    with ending_everything(machine):
        at = Scheduler(machine, tmp_path_factory.mktemp("backing") / "project")
        at.write("command.txt", "echo {uni_id} >> marks\nexit 3\n1,20\n")
        at.ids = at.submit()
        job = at.ids["q1-1"]
        at.attempts = eventually(
            lambda: (a := machine.show(job)["attempts"]) and len(a) == 4 and a[-1]["state"] == "failed" and a,
            "four attempts have failed")
        at.reason = eventually(lambda: machine.why(job), "it knows what it waits for")
        at.retries = retries_of(at, job)
        at.job = machine.show(job)["job"]
        at.told = eventually(
            lambda: (s := at.state()) and s["queues"]["1"]["processes"][0]["retry_count"] == 3
            and s["pending_tasks"] == 1 and s, "the state file tells of it")
        at.gpus = json.loads(at.call("berth", "gpus", "--json").stdout)
        at.usual = at.rules()
        at.call("berth", "set", "--batch", at.batch, "retry_config.max_retry_before_backoff=6")
        at.changed = at.rules()
        at.shown = at.call("berth", "show", job).stdout
        at.attempts_then = len(machine.show(job)["attempts"])
        yield at


# --- 概述 -----------------------------------------------------------------------------------------


@promise("001", "概述", "为了有效管理多个脚本对GPU资源的竞争使用，我们实现了一个基于唯一标识符（uni_id）的进程管理系统。")
def test_every_process_is_known_by_its_uni_id(pipeline):
    given = [mark for marks in pipeline.marks.values() for mark, _ in marks]
    assert len(given) == len(set(given)) == 4
    assert set(pipeline.entries()) == set(given)


@promise("001", "概述", "该系统允许外部监控脚本（如 `main.py`）跟踪正在运行的Python进程，并在适当的时机启动新的任务。")
def test_a_script_outside_can_follow_the_processes(queues):
    assert {e["state"] for e in queues.first.entries.values()} == {"running"}
    assert all(queues.first.alive.values())
    assert queues.ended_before_b == ["c", "a"], "the next one started when its turn had come"


# --- 代码结构（模块化版本） -------------------------------------------------------------------------


@promise("001", "代码结构（模块化版本）", "scripts/compete_gpu_retry/")
def test_the_directories_are_as_they_were(pipeline):
    """Nothing has to be moved, and berth adds nothing but logs/."""
    assert {j["state"] for j in pipeline.ended.values()} == {"succeeded"}
    here = pipeline.project / "scripts/compete_gpu_retry"
    assert {p.name for p in here.iterdir()} == {"config.yaml", "command_bk.txt", "logs"}
    assert pipeline.final["config_file"] == str(here / "command_bk.txt")
    assert {p.name for p in pipeline.project.iterdir()} == {"experiments", "scripts", "set", "task.sh"}


@promise("001", "代码结构（模块化版本）", "main.py                     # 主调度器")
def test_the_scheduler_needs_no_word_in_its_directory(scheduler):
    scheduler.write("command.txt", "echo ran >> ran\n1,20\n")
    said = scheduler.call("main_gpu").stdout
    assert "submitted command.txt: 1 job" in said and "1 of 1 succeeded" in said
    assert scheduler.lines("ran") == ["ran"]
    # Whoever reads its files when it has returned finds them true.
    assert [e["state"] for e in scheduler.entries().values()] == ["normal_exit"]
    assert scheduler.state()["state"] == "completed"
    assert "status: pending 0, running 0, completed 1, failed 0" in scheduler.log()


@promise("001", "代码结构（模块化版本）", "config.yaml                # 调度器配置文件")
def test_the_configuration_beside_is_taken(scheduler):
    scheduler.write("command.txt", "true\n1,20\n")
    assert "gpu_left" not in scheduler.check()["rules"]
    scheduler.config("gpu_left: 2\n")
    assert scheduler.check()["rules"]["gpu_left"] == "2"


@promise("001", "代码结构（模块化版本）", "command.txt                # 任务配置文件")
def test_the_tasks_are_in_command_txt(scheduler):
    scheduler.write("command.txt", STANDARD)
    assert {n: j["state"] for n, j in scheduler.run().items()} == {"q1-1": "succeeded", "q2-1": "succeeded"}


@promise("001", "代码结构（模块化版本）", "logs/                      # 日志目录（相对于脚本）")
def test_the_logs_are_beside_the_files(scheduler):
    scheduler.write("command.txt", "true\n1,20\n")
    assert not scheduler.logs.exists()
    scheduler.call("main_gpu", "--command-file", scheduler.dir / "command.txt", cwd="/")
    scheduler.settled()
    assert {p.name for p in scheduler.logs.iterdir()} >= {"compete_gpu.log", "uni_id.json", "state"}


@promise("001", "代码结构（模块化版本）", "compete_gpu*.log      # 调度器日志")
def test_the_scheduler_has_its_log(pipeline):
    assert re.search(r" - INFO - queue 1: job \d+ started on GPU \d: rm -rf ", pipeline.log())
    assert re.search(r" - WARNING - queue 1: job \d+ retried", pipeline.log())


@promise("001", "代码结构（模块化版本）", "uni_id.json           # 进程状态记录")
def test_the_state_of_processes_is_recorded(pipeline):
    states = sorted(e["state"] for e in pipeline.entries().values())
    assert states == ["abnormal_exit", "abnormal_exit", "normal_exit", "normal_exit"]


# --- 模块说明 -------------------------------------------------------------------------------------


@promise("001", "模块说明", "| `gpu_monitor.py` | GPU 显存检测、用户进程检测、GPU 列表探测 |")
def test_cards_memory_and_processes_are_seen(machine):
    with process_on(machine, 3, "5GiB") as held:
        cards = json.loads(machine.cli("gpus", "--json", check=0).stdout)
    assert [card["index"] for card in cards] == list(range(10))
    assert {card["memory_total"] for card in cards} == {24 * 2**30}
    assert cards[3]["memory_free"] == 19 * 2**30
    assert [p["pid"] for p in cards[3]["processes"]] == [held.pid]


@promise("001", "模块说明", "| `process_json.py` | uni_id.json 文件的读写、进程状态管理 |")
def test_what_a_script_writes_is_read_and_kept(pipeline):
    known = pipeline.entries()
    first, second, third = (known[mark] for mark, _ in pipeline.marks["car"])
    assert (first["state"], first["error_type"], first["retry_count"]) == ("abnormal_exit", "oom", 0)
    assert (second["state"], second["error_type"], second["retry_count"]) == ("abnormal_exit", "runtime_error", 1)
    assert (third["state"], third["retry_count"]) == ("normal_exit", 2)


@promise("001", "模块说明", "| `process_yaml.py` | YAML 配置文件管理，支持嵌套键访问 |")
def test_nested_keys_have_names_with_dots(scheduler):
    rules = scheduler.rules_of("retry_config:\n  max_retry_before_backoff: 7\n  backoff_duration: 90\n")
    assert rules["retry_config.max_retry_before_backoff"] == "7"
    assert rules["retry_config.backoff_duration"] == "90s"


@promise("001", "模块说明", "| `retry.py` | 重试配置、退避策略、任务状态检查 |")
def test_attempts_and_their_ends_can_be_looked_at(backing_off):
    assert backing_off.shown.count("exited with code 3") >= 4
    assert [a["failure_class"] for a in backing_off.attempts] == ["exit"] * 4


@promise("001", "模块说明", "| `parse_command_file.py` | 命令配置文件解析器 |")
def test_a_command_file_can_be_checked(scheduler):
    file = scheduler.write("command.txt", STANDARD)
    said = scheduler.call("berth", "check", file).stdout
    assert "q1-1" in said and "q2-1" in said and "20 GiB" in said and "2 jobs, 2 queues: ok" in said


@promise("001", "模块说明", "| `config.yaml` | 调度器配置文件，包含所有运行参数 |")
def test_one_file_has_all_parameters(scheduler):
    rules = scheduler.rules_of(CONFIG.replace("{work_dir}", "/data"))
    assert rules["sample_age_max"] == "5s" and rules["gpu_left"] == "1"
    assert rules["maximize_resource_utilization"] == "false" and "gpus" not in rules
    assert rules["retry_config.max_retry_before_backoff"] == "3"
    assert rules["retry_config.backoff_duration"] == "10m"
    assert scheduler.check()["jobs"][0]["cwd"] == "/data"


@promise("001", "模块说明", "| `command.txt` | 任务配置文件，便于管理和修改 |")
def test_a_changed_file_counts_when_it_is_run_again(scheduler):
    scheduler.write("command.txt", f"{scheduler.task('a')}\n1,4\n\n{scheduler.task('b')}\n1,4\n")
    ids = scheduler.submit()
    scheduler.begun("a")
    scheduler.write("command.txt", "echo edited >> edited\n1,4\n")
    scheduler.let_go("a", "b")
    scheduler.machine.wait(ids.values())
    assert set(scheduler.cards()) == {"a", "b"} and not scheduler.lines("edited"), "what is queued stays"
    scheduler.run()
    assert scheduler.lines("edited") == ["edited"]


@promise("001", "模块说明", "| `command_bk.txt` | 备用任务配置文件，支持优化格式 |")
def test_the_spare_file_has_the_optimised_form(pipeline):
    assert [p["commands"][0] for q in "12" for p in pipeline.final["queues"][q]["processes"]] == [
        "rm -rf {work_dir}/experiments/car196/knowledge_base",
        "rm -rf {work_dir}/experiments/flower102/knowledge_base"]
    assert pipeline.final["config_file"].endswith("/command_bk.txt")


# --- 路径配置 -------------------------------------------------------------------------------------


@promise("001", "路径配置", "所有路径都相对于脚本位置，便于部署：")
def test_paths_start_at_the_files_wherever_one_stands(scheduler, tmp_path):
    scheduler.write("command.txt", "pwd > where\n1,20\n")
    scheduler.call("main_gpu", "--command-file", scheduler.dir / "command.txt", cwd=tmp_path)
    assert scheduler.lines("where") == [str(scheduler.project)]
    assert {p.name for p in tmp_path.iterdir()} == {"project"}, "nothing was left where we stood"


@promise("001", "路径配置", "- `work_dir`: 脚本父目录，用于命令执行")
def test_commands_run_above_the_directory(scheduler):
    scheduler.write("command.txt", "pwd > where\n1,20\n")
    scheduler.run()
    assert scheduler.lines("where") == [str(scheduler.project)]


@promise("001", "路径配置", "- `log_dir`: `./logs`（相对于脚本），存放日志和进程状态文件")
def test_logs_and_state_are_in_one_directory(pipeline):
    found = {str(p.relative_to(pipeline.logs)) for p in pipeline.logs.rglob("*") if p.is_file()}
    assert {"compete_gpu.log", "uni_id.json"} <= found
    assert any(re.fullmatch(r"state/\d+\.json", name) for name in found)


@promise("001", "路径配置", "- `process_json_path`: `./logs/uni_id.json`，进程状态记录文件")
def test_uni_id_json_is_in_logs(scheduler):
    scheduler.write("command.txt", "echo {uni_id} > mark\n1,20\n")
    scheduler.run()
    scheduler.settled()
    assert list(json.loads((scheduler.dir / "logs" / "uni_id.json").read_text())) == scheduler.lines("mark")


@promise("001", "路径配置", "- `commands_path`: `./command.txt`，任务配置文件")
def test_command_txt_is_found_in_the_directory(scheduler):
    scheduler.write("command.txt", "echo here >> ran\n4,20\n")
    assert "submitted command.txt" in scheduler.call("main_gpu").stdout
    assert scheduler.lines("ran") == ["here"]


@promise("001", "路径配置", "- `config_path`: `./config.yaml`，YAML 配置文件")
def test_config_yaml_is_found_in_the_directory(scheduler):
    scheduler.write("command.txt", "pwd > where\n1,20\n")
    scheduler.config("work_dir: .\n")
    scheduler.call("main_gpu")
    assert (scheduler.dir / "where").read_text().split() == [str(scheduler.dir)]


@promise("001", "配置管理", "使用 YAML 文件管理所有配置参数，便于修改和维护：")
def test_the_configuration_is_yaml_that_can_be_changed(scheduler):
    assert scheduler.rules_of("gpu_left: 1  # 注释\n")["gpu_left"] == "1"
    assert scheduler.rules_of("{gpu_left: 3, check_time: 9}\n")["gpu_left"] == "3"


# --- config.yaml 格式 ------------------------------------------------------------------------------


@promise("001", "config.yaml 格式", "# 调度配置\ncheck_time: 5  # 调度间隔（秒）")
def test_check_time_is_how_old_a_look_at_the_cards_may_be(scheduler):
    assert scheduler.rules_of("check_time: 5\n")["sample_age_max"] == "5s"
    # A card that becomes free is seen within that time.
    with process_on(scheduler.machine, 0, "20GiB") as held:
        scheduler.config("check_time: 1\ncompete_gpus: [0]\n")
        scheduler.write("command.txt", "true\n1,20\n")
        ids = scheduler.submit()
        assert scheduler.rules()["sample_age_max"] == "1s"
        assert scheduler.state_of(ids["q1-1"]) == "queued"
        held.kill()
        assert scheduler.machine.wait_one(ids["q1-1"])["state"] == "succeeded"


@promise("001", "config.yaml 格式", "maximize_resource_utilization: false  # 极限利用资源模式")
def test_a_card_is_shared_only_to_the_limit(scheduler):
    text = f"{scheduler.task('a')}\n1,8\n\n{scheduler.task('b')}\n2,8\n"
    scheduler.write("command.txt", text)
    scheduler.config("compete_gpus: [4]\nmaximize_resource_utilization: true\n")
    ids = scheduler.submit()
    assert set(scheduler.begun("a", "b").values()) == {"4"}
    scheduler.end(ids)
    (scheduler.project / "begun").unlink()
    scheduler.config("compete_gpus: [4]\nmaximize_resource_utilization: false\n")
    ids = scheduler.submit()
    eventually(scheduler.cards, "one has begun")
    states = sorted(scheduler.state_of(i) for i in ids.values())
    assert states == ["queued", "running"] and len(scheduler.cards()) == 1


@promise("001", "config.yaml 格式",
         "# GPU 配置\ncompete_gpus: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]  # 手动指定的 GPU 列表")
def test_listed_cards_are_the_ones_to_compete_for(scheduler):
    cards, why = scheduler.used_cards("compete_gpus: [2, 5, 7]\nuse_all_gpus: false\n", 4)
    assert cards == [2, 5, 7] and len(why) == 1
    assert "not among the cards that the rule gpus allows" in why[0]


@promise("001", "config.yaml 格式", "use_all_gpus: true  # 是否自动探测所有 GPU")
def test_all_cards_are_found(scheduler):
    cards, why = scheduler.used_cards("compete_gpus: [2]\nuse_all_gpus: true\n", 10)
    assert cards == list(range(10)) and why == []


@promise("001", "config.yaml 格式", "gpu_left: 1  # 剩余几张卡给其他用户")
def test_a_card_is_left_to_other_users(scheduler):
    cards, why = scheduler.used_cards("compete_gpus: [0, 1, 2]\ngpu_left: 1\n", 3)
    assert cards == [0, 1]
    assert "GPU 2: left to others" in why[0] and "gpu_left=1" in why[0]


@promise("001", "config.yaml 格式",
         "# 重试配置\nretry_config:\n max_retry_before_backoff: 3  # 每 3 次重试后进入退避")
def test_after_three_retries_comes_a_wait(retried):
    waits = ["trying again in" in said for said in retried.retries]
    assert waits == [False, False, False, True, False, False, True]
    assert retried.job["state"] == "succeeded"


@promise("001", "config.yaml 格式", "backoff_duration: 600         # 退避时间 10 分钟")
def test_the_wait_is_as_long_as_configured(backing_off, scheduler):
    assert scheduler.rules_of("retry_config: {backoff_duration: 600}\n")["retry_config.backoff_duration"] == "10m"
    assert re.search(r"tried again in (9m|10m|10 m|9 m)", backing_off.reason), backing_off.reason


@promise("001", "config.yaml 格式",
         "# 工作目录配置\n# 支持以下格式：\n# - null: 自动设置为脚本父目录（默认）")
def test_no_work_directory_means_the_one_above(scheduler):
    scheduler.write("command.txt", "pwd > {work_dir}/where\n1,20\n")
    scheduler.config("work_dir: null\n")
    scheduler.run()
    assert scheduler.lines("where") == [str(scheduler.project)]


def work_dir(scheduler, value):
    scheduler.rules_of(f"work_dir: {value}\n")
    [job] = scheduler.check()["jobs"]
    assert job["cwd"] == job["work_dir"]
    return job["cwd"]


@promise("001", "config.yaml 格式", '# - "../": 相对于脚本的父目录')
def test_two_dots_are_the_directory_above(scheduler):
    assert work_dir(scheduler, '"../"') == str(scheduler.project)


@promise("001", "config.yaml 格式", '# - "/absolute/path": 绝对路径')
def test_an_absolute_path_is_itself(scheduler):
    assert work_dir(scheduler, '"/absolute/path"') == "/absolute/path"


@promise("001", "config.yaml 格式", '# - "relative/path": 相对于脚本的路径')
def test_a_relative_path_starts_at_the_files(scheduler):
    assert work_dir(scheduler, '"relative/path"') == str(scheduler.dir / "relative/path")


@promise("001", "config.yaml 格式", "work_dir: null  # 默认：脚本父目录")
def test_the_default_is_the_directory_above(scheduler):
    scheduler.write("command.txt", "true\n1,1\n")
    assert scheduler.check()["jobs"][0]["cwd"] == str(scheduler.project), "without any configuration"
    assert work_dir(scheduler, "null") == str(scheduler.project)


# --- GPU 预留配置详解 ------------------------------------------------------------------------------


@promise("001", "GPU 预留配置详解", "`gpu_left` 配置用于预留 GPU 给其他用户：")
def test_what_is_left_stays_free_though_tasks_wait(scheduler):
    cards, why = scheduler.used_cards("gpu_left: 9\n", 2)
    assert cards == [0] and len(why) == 1 and "left to others" in why[0]


@promise("001", "GPU 预留配置详解", "1. **配置方式**：\ngpu_left: 0   # 不预留，使用所有可用 GPU")
def test_nothing_is_left_with_zero(scheduler):
    assert scheduler.used_cards("gpu_left: 0\n", 10) == (list(range(10)), [])


@promise("001", "GPU 预留配置详解", "gpu_left: 1   # 预留 1 张 GPU（通常是最后一张）")
def test_one_left_is_the_last(scheduler):
    cards, why = scheduler.used_cards("compete_gpus: [6, 7, 8, 9]\ngpu_left: 1\n", 4)
    assert cards == [6, 7, 8] and "GPU 9: left to others" in why[0]


@promise("001", "GPU 预留配置详解", "gpu_left: 2   # 预留 2 张 GPU（通常是最后两张）")
def test_two_left_are_the_last_two(scheduler):
    cards, why = scheduler.used_cards("compete_gpus: [6, 7, 8, 9]\ngpu_left: 2\n", 3)
    assert cards == [6, 7] and "GPUs 8, 9: left to others" in why[0]


@promise("001", "GPU 预留配置详解",
         "2. **预留逻辑**：\n- 当 `use_all_gpus: true` 时，从检测到的所有 GPU 中预留最后 `gpu_left` 张")
def test_of_all_cards_the_last_are_left(scheduler):
    cards, _ = scheduler.used_cards("compete_gpus: [0, 1]\nuse_all_gpus: true\ngpu_left: 7\n", 4)
    assert cards == [0, 1, 2]


@promise("001", "GPU 预留配置详解",
         "- 当 `use_all_gpus: false` 时，从手动指定的 GPU 列表中预留最后 `gpu_left` 张")
def test_of_a_list_its_last_are_left(scheduler):
    cards, why = scheduler.used_cards("compete_gpus: [7, 5, 3]\nuse_all_gpus: false\ngpu_left: 1\n", 3)
    assert cards == [5, 7], "the list is taken as it is written"
    assert "GPU 3: left to others" in why[0]


@promise("001", "GPU 预留配置详解", "- 预留的 GPU 不会被调度器使用")
def test_cards_that_are_left_are_never_used(scheduler):
    # Not even when all others are taken by somebody else.
    with process_on(scheduler.machine, 0, "20GiB"):
        scheduler.config("check_time: 1\ncompete_gpus: [0, 1]\ngpu_left: 1\n")
        scheduler.write("command.txt", "true\n1,20\n")
        ids = scheduler.submit()
        why = eventually(lambda: scheduler.why(ids["q1-1"]), "it knows why it waits")
        assert scheduler.state_of(ids["q1-1"]) == "queued"
        assert "GPU 1: left to others" in why


@promise("001", "GPU 预留配置详解",
         "3. **示例**：\n# 检测到 10 张 GPU [0,1,2,3,4,5,6,7,8,9]，gpu_left: 1\n"
         "# 可用 GPU: [0,1,2,3,4,5,6,7,8]\n# 预留 GPU: [9]")
def test_of_ten_cards_the_tenth_is_left(scheduler):
    cards, why = scheduler.used_cards("use_all_gpus: true\ngpu_left: 1\n", 10)
    assert cards == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert len(why) == 1 and "GPU 9: left to others" in why[0]


# --- 工作目录配置详解 -------------------------------------------------------------------------------


@promise("001", "工作目录配置详解", "工作目录 `work_dir` 支持多种配置方式：")
def test_tasks_run_in_the_directory_that_was_configured(scheduler):
    (scheduler.dir / "work").mkdir()
    scheduler.config("work_dir: work\n")
    scheduler.write("command.txt", "pwd > where; echo {work_dir} >> where\n1,20\n")
    scheduler.run()
    assert (scheduler.dir / "work/where").read_text().split() == [str(scheduler.dir / "work")] * 2


@promise("001", "工作目录配置详解", "1. **默认配置（null）**：\nwork_dir: null\n自动设置为脚本父目录")
def test_null_is_the_directory_above(scheduler):
    assert work_dir(scheduler, "null") == str(scheduler.project)
    assert work_dir(scheduler, "~") == str(scheduler.project), "the other spelling of null"


@promise("001", "工作目录配置详解", '2. **相对路径**：\nwork_dir: "../"        # 脚本父目录')
def test_one_step_up(scheduler):
    assert work_dir(scheduler, '"../"') == work_dir(scheduler, '".."') == str(scheduler.project)


@promise("001", "工作目录配置详解", 'work_dir: "../../"     # 脚本祖父目录')
def test_two_steps_up(scheduler):
    assert work_dir(scheduler, '"../../"') == str(scheduler.project.parent)


@promise("001", "工作目录配置详解", 'work_dir: "work"       # 脚本同级的 work 目录')
def test_a_directory_beside_the_files(scheduler):
    assert work_dir(scheduler, '"work"') == str(scheduler.dir / "work")


@promise("001", "工作目录配置详解", "相对于脚本位置解析")
def test_relative_means_to_the_files_not_to_where_one_stands(scheduler, tmp_path):
    scheduler.rules_of("work_dir: work\n")
    said = scheduler.call("berth", "check", "--json", scheduler.dir / "command.txt", cwd=tmp_path).stdout
    assert json.loads(said)["jobs"][0]["cwd"] == str(scheduler.dir / "work")


@promise("001", "工作目录配置详解", '3. **绝对路径**：\nwork_dir: "/home/user/project"')
def test_an_absolute_work_directory(scheduler):
    assert work_dir(scheduler, '"/home/user/project"') == "/home/user/project"


@promise("001", "工作目录配置详解", 'work_dir: "/tmp/workspace"')
def test_another_absolute_work_directory(scheduler):
    assert work_dir(scheduler, '"/tmp/workspace"') == "/tmp/workspace"


@promise("001", "工作目录配置详解", "直接使用绝对路径")
def test_an_absolute_path_is_used_as_it_is(scheduler, tmp_path):
    (tmp_path / "工作").mkdir()
    scheduler.config(f'work_dir: "{tmp_path}/工作"\n')
    scheduler.write("command.txt", "pwd > where\n1,20\n")
    scheduler.run()
    assert (tmp_path / "工作/where").read_text("utf-8").split() == [f"{tmp_path}/工作"]


# --- process_yaml.py 模块 --------------------------------------------------------------------------


@promise("001", "process_yaml.py 模块", "负责加载和管理 YAML 配置文件：")
def test_a_configuration_can_be_given_by_name(scheduler):
    scheduler.write("command.txt", "true\n1,20\n")
    other = scheduler.write("elsewhere/mine.yaml", "gpu_left: 4\n")
    scheduler.config("gpu_left: 1\n")
    assert scheduler.check("command.txt", "--config-file", other)["rules"]["gpu_left"] == "4"
    assert "--config-file: cannot read 'none.yaml'" in scheduler.call(
        "berth", "check", "command.txt", "--config-file", "none.yaml", code=1).stderr
    # It need not name the command file, as that of the document does not.
    verbatim = scheduler.config(CONFIG.replace("{work_dir}", "null"))
    assert "1 of 1 succeeded" in scheduler.call("main_gpu", "--config-file", verbatim).stdout
    assert scheduler.check("config.yaml")["rules"]["gpu_left"] == "1", "it can be checked by itself"


@promise("001", "process_yaml.py 模块", "- 安全加载 YAML 文件")
def test_yaml_runs_nothing(scheduler, tmp_path):
    trap = tmp_path / "trap"
    scheduler.config(f'check_time: !!python/object/apply:os.system ["touch {trap}"]\n')
    scheduler.write("command.txt", "true\n1,20\n")
    said = scheduler.call("berth", "run", "command.txt", code=1).stderr
    assert "config.yaml:1:" in said and not trap.exists()


@promise("001", "process_yaml.py 模块", "- 支持嵌套键访问（如 `retry_config.max_retry_before_backoff`）")
def test_a_nested_key_is_named_by_its_path(backing_off):
    assert backing_off.usual["retry_config.max_retry_before_backoff"] == "3"
    assert backing_off.changed["retry_config.max_retry_before_backoff"] == "6"


@promise("001", "process_yaml.py 模块", "- 提供默认值支持")
def test_what_is_not_said_has_a_default(scheduler):
    rules = scheduler.rules_of("")
    assert rules["sample_age_max"] == "5s"
    assert rules["retry_config.max_retry_before_backoff"] == "3"
    assert rules["retry_config.backoff_duration"] == "10m"
    assert rules["maximize_resource_utilization"] == "false"


@promise("001", "process_yaml.py 模块", "- 内存中配置更新")
def test_rules_change_while_tasks_run_and_the_file_does_not(scheduler):
    file = scheduler.config("compete_gpus: [0, 1]\ngpu_left: 1\n")
    scheduler.write("command.txt", f"{scheduler.task('a')}\n1,20\n\n{scheduler.task('b')}\n2,20\n")
    scheduler.submit()
    eventually(scheduler.cards, "one has begun")
    scheduler.call("berth", "set", "--batch", scheduler.batch, "gpu_left=0")
    assert sorted(scheduler.begun("a", "b").values()) == ["0", "1"]
    assert file.read_text() == "compete_gpus: [0, 1]\ngpu_left: 1\n"


# --- 代码核心逻辑 -----------------------------------------------------------------------------------


@promise("001", "代码核心逻辑", "核心逻辑：**队列内串行，队列间并行，顺序分配**执行进程。")
def test_serial_inside_and_parallel_between(queues):
    assert set(queues.first.cards) == {"a", "c"}
    assert queues.lines("ended") == ["c", "a", "b"]


@promise("001", "代码核心逻辑", "- **队列内串行**：同一队列的任务严格按顺序执行，前一个任务完成后才能启动下一个")
def test_the_next_of_a_queue_starts_after_the_one_before(queues):
    assert queues.first.b == queues.b_then == "queued", "though cards are free"
    assert "a" in queues.ended_before_b
    a, b = (queues.machine.show(queues.ids[n])["attempts"][0] for n in ("q1-1", "q1-2"))
    assert b["id"] > a["id"]


@promise("001", "代码核心逻辑", "- **队列间并行**：不同队列的任务可以同时在不同 GPU 上执行")
def test_queues_run_on_different_cards(queues):
    assert len(set(queues.first.cards.values())) == 2


@promise("001", "代码核心逻辑",
         "- **顺序分配**：每次只分配一个任务，等待进程确认启动后（30秒延迟）再分配下一个，避免 GPU 进程未及时显示导致重复分配")
def test_no_card_is_given_twice_though_nobody_waits(scheduler):
    # The tasks use no GPU memory at all, so no look at the cards shows them.
    cards, why = scheduler.used_cards("maximize_resource_utilization: true\n", 12)
    assert cards == list(range(10)) and len(why) == 2
    assert all("no GPU has room" in text or "first in queue" in text for text in why), why


@promise("001", "代码核心逻辑",
         "- **重试机制**：进程发生异常后要进行重试，重试超上限（3次）后退避一段时间（10分钟）再进行下一次重试")
def test_a_failure_is_retried_three_times_before_the_wait(backing_off):
    assert len(backing_off.attempts) == 4
    assert all("trying again (" in said for said in backing_off.retries[:3])
    assert "trying again in 10" in backing_off.retries[3], backing_off.retries


@promise("001", "代码核心逻辑", "- **GPU 预留**：根据配置预留指定数量的 GPU 给其他用户使用")
def test_as_many_cards_are_left_as_configured(scheduler):
    cards, _ = scheduler.used_cards("gpu_left: 8\n", 3)
    assert cards == [0, 1]


@promise("001", "代码核心逻辑",
         "整体流程：**任务配置 → 队列分组 → GPU 预留处理 → 空闲队列头任务随机调度 → 逐个分配 GPU → 等待进程确认 → 状态监控**。")
def test_the_whole_way_of_a_task(pipeline):
    assert pipeline.final["total_tasks"] == pipeline.final["completed_tasks"] == 2
    assert set(pipeline.final["queues"]) == {"1", "2"}
    log = pipeline.log()
    for step in ("submitted: 2 jobs", "queue 1: job", "queue 2: job", "started on GPU", "ended normally", "status: "):
        assert step in log, step
    assert {card for marks in pipeline.marks.values() for _, card in marks} <= set("012345678"), "9 is left"


# --- 1. 任务与队列 ----------------------------------------------------------------------------------


@promise("001", "1. 任务与队列", "1. 所有待执行任务从 `command.txt` 文件中读取。")
def test_all_tasks_of_the_file_run(scheduler):
    scheduler.write("command.txt", "\n\n".join(f"echo {i} >> ran\n{i % 3},1" for i in range(9)))
    assert len(scheduler.run()) == 9
    assert sorted(scheduler.lines("ran")) == [str(i) for i in range(9)]


@promise("001", "1. 任务与队列",
         "2. 启动时脚本为每个任务生成唯一的 `uni_id`，并构造成 `Task` 对象，**暂不绑定具体 GPU**。")
def test_a_waiting_task_has_no_card_yet(queues):
    waiting = queues.first.state["queues"]["1"]["processes"][1]
    assert waiting["status"] == "pending" and waiting["gpus"] == []
    marks = list(queues.entries())
    assert len(marks) == len(set(marks)) == 3


# --- command.txt 格式说明 ---------------------------------------------------------------------------


@promise("001", "command.txt 格式说明", "# 注释行（以 # 开头）")
def test_comments_may_stand_anywhere(scheduler):
    text = "# 注释\n  # 缩进的注释\necho a\n# 中间的注释\necho b # 不是注释\n# x\n1,20\n# 结尾"
    assert scheduler.jobs_of(text) == [(["echo a", "echo b # 不是注释"], 1, 20, 1)]


@promise("001", "command.txt 格式说明", "# 空行分隔不同任务")
def test_blank_lines_separate_tasks(scheduler):
    found = scheduler.jobs_of("\n\ntrue\n1,20\n\n \t\n\ntrue\n2,20\r\n\r\ntrue\r\n3,20")
    assert [queue for _, queue, _, _ in found] == [1, 2, 3]


@promise("001", "command.txt 格式说明", "**标准格式**：\n# 注释行（以 # 开头）\n# 空行分隔不同任务\n# 任务1：队列1\n命令1\n命令2\n命令3\n队列ID,显存需求(GB)")
def test_the_standard_form_has_queue_and_memory_last(scheduler):
    [first, _] = scheduler.jobs_of(STANDARD)
    assert first == (["echo 命令1 >> done", "echo 命令2 >> done", "echo 命令3 >> done"], 1, 20, 1)
    scheduler.run()
    assert scheduler.lines("done") == ["命令1", "命令2", "命令3"]


@promise("001", "command.txt 格式说明", "# 任务2：队列2\n命令1\n命令2\n队列ID,显存需求(GB)")
def test_the_second_task_has_a_queue_of_its_own(scheduler):
    [_, second] = scheduler.jobs_of(STANDARD.replace("2,20", "2, 20.5"))
    assert second == (["true", "echo 命令2 >> done2"], 2, 20.5, 1)


@promise("001", "command.txt 格式说明",
         """**优化格式（command_bk.txt）**：
# 注释行（以 # 开头）
# 空行分隔不同任务
# 任务1：队列1
1 #队列ID
"rm -rf {work_dir}/experiments/car196/knowledge_base"
"bash {work_dir}/scripts/set_hyperparameters.sh --experience_number 8"
"bash {work_dir}/scripts/run_pipeline.sh car --uni_id {uni_id}"
20 #剩余显存""")
def test_the_optimised_form_runs_as_it_is_written(pipeline):
    assert not (pipeline.project / "experiments/car196/knowledge_base").exists()
    assert pipeline.lines("set").count("--experience_number 8") == 3, "each attempt runs all commands"
    assert len(pipeline.marks["car"]) == 3
    assert pipeline.final["queues"]["1"]["processes"][0]["memory_gb"] == 20


@promise("001", "command.txt 格式说明",
         """# 任务2：队列2
2
"rm -rf {work_dir}/experiments/flower102/knowledge_base"
"bash {work_dir}/scripts/set_hyperparameters.sh --experience_number 5"
"bash {work_dir}/scripts/run_pipeline.sh flower --uni_id {uni_id}"
20""")
def test_numbers_need_no_note(pipeline):
    assert not (pipeline.project / "experiments/flower102/knowledge_base").exists()
    assert pipeline.lines("set").count("--experience_number 5") == 1
    assert len(pipeline.marks["flower"]) == 1
    assert pipeline.final["queues"]["2"]["processes"][0]["memory_gb"] == 20


@promise("001", "command.txt 格式说明", "**支持的变量**：\n- `{work_dir}` - 工作目录（脚本父目录）")
def test_work_dir_is_put_in(scheduler):
    scheduler.write("command.txt", "1\n\"echo {work_dir}/x > '{work_dir}/put in'\"\n20\n")
    scheduler.run()
    assert scheduler.lines("put in") == [f"{scheduler.project}/x"]


@promise("001", "command.txt 格式说明", "- `{uni_id}` - 唯一标识符（自动生成）")
def test_uni_id_is_put_in_and_new_each_time(retried):
    marks = retried.lines("marks")
    assert len(marks) == 8 and len(set(marks)) == 8 and not any("{" in m for m in marks)
    assert set(retried.entries()) == set(marks)


@promise("001", "command.txt 格式说明", "**格式特点**：\n- 队列ID在第一行")
def test_the_queue_stands_first(scheduler):
    assert scheduler.jobs_of("7\ntrue\n20\n") == [(["true"], 7, 20, 1)]
    assert "the queue is missing" in scheduler.mistakes_of("true\n20\n")


@promise("001", "command.txt 格式说明", "- 命令行在中间，可以用引号包围")
def test_quotes_around_a_command_are_removed(scheduler):
    text = "1\n\"echo a\"\n'echo \"b\"'\necho \"c\" 'd'\n20\n"
    assert scheduler.jobs_of(text) == [(["echo a", 'echo "b"', "echo \"c\" 'd'"], 1, 20, 1)]
    said = scheduler.mistakes_of('1\n"a"b"c"\n20\n')
    assert "reads both ways" in said and '[a"b"c]' in said and '["a"b"c"]' in said, "both readings are shown"


@promise("001", "command.txt 格式说明", "- 显存需求在最后一行")
def test_the_memory_stands_last(scheduler):
    assert scheduler.jobs_of("1\ntrue\n12.5\n") == [(["true"], 1, 12.5, 1)]
    assert ":2:1: the memory is missing" in scheduler.mistakes_of("1\ntrue\n")


@promise("001", "command.txt 格式说明", "- 数字后可以跟注释（如 `1 #队列ID`）")
def test_a_note_may_follow_a_number(scheduler):
    for note in ("1 #队列ID", "1#队列ID", "1\t# 2", "1  #"):
        assert scheduler.jobs_of(f"{note}\ntrue\n20 #剩余显存\n") == [(["true"], 1, 20, 1)]


@promise("001", "command.txt 格式说明", "- 解析器会自动读取第一个数字作为值")
def test_the_first_number_is_the_value(scheduler):
    assert scheduler.jobs_of("3 #4 5\ntrue\n20 #24 GB\n") == [(["true"], 3, 20, 1)]
    assert scheduler.jobs_of("true\n3,20 #24\n") == [(["true"], 3, 20, 1)]
    for queue in ("3 队列ID", "3 queue 1"):
        for memory in ("20 GB", "20GB", "20 剩余显存", "20 GB 24"):
            assert scheduler.jobs_of(f"{queue}\ntrue\n{memory}\n") == [(["true"], 3, 20, 1)]
    said = scheduler.mistakes_of("3 make all\ntrue\n20\n")
    assert "as the number 3 with the note 'make all', and as the number 3 before the command 'make all'" in said


# --- parse_command_file.py 模块 ---------------------------------------------------------------------


@promise("001", "parse_command_file.py 模块", "负责解析命令配置文件，支持两种格式：")
def test_both_forms_may_stand_in_one_file(scheduler):
    assert scheduler.jobs_of("1\n\"a\"\n20\n\nb\n2,10\n") == [(["a"], 1, 20, 1), (["b"], 2, 10, 1)]
    said = scheduler.mistakes_of("1\na\n2,10\n")
    assert "reads both ways: as queue 1" in said and "and as queue 2 with 10 GiB" in said


@promise("001", "parse_command_file.py 模块", "- 解析注释和空行")
def test_comments_and_blank_lines_are_no_tasks(scheduler):
    assert "there is no task in this file" in scheduler.mistakes_of("# 只有注释\n\n\n# 和空行\n", "command.txt",
                                                                    "--dialect", "commands")
    assert len(scheduler.jobs_of("# a\n\n\n# b\ntrue\n1,1\n\n# c\n\n")) == 1


@promise("001", "parse_command_file.py 模块", "- 提取命令列表")
def test_commands_are_taken_in_order_and_the_first_failure_ends_the_attempt(scheduler):
    scheduler.config("retry_config: {max_retry_before_backoff: 0, backoff_duration: 600}\n")
    scheduler.write("command.txt", "echo 1 >> order\necho 2 >> order\n1,20\n\n"
                    "echo a >> failed\nfalse\necho b >> failed\n2,20\n")
    ids = scheduler.submit()
    scheduler.machine.wait([ids["q1-1"]])
    eventually(lambda: any(a["state"] == "failed" for a in scheduler.machine.show(ids["q2-1"])["attempts"]),
               "it has failed")
    scheduler.end(ids)
    assert scheduler.lines("order") == ["1", "2"]
    assert set(scheduler.lines("failed")) == {"a"}


@promise("001", "parse_command_file.py 模块", "- 智能解析队列ID和显存需求（支持数字后注释）")
def test_queue_and_memory_are_understood_with_notes(scheduler):
    assert scheduler.jobs_of("2 #汽车\ntrue\n20.5 #GiB\n\ntrue\n0,8 #x\n") == [
        (["true"], 2, 20.5, 1), (["true"], 0, 8, 1)]


@promise("001", "parse_command_file.py 模块", "- 错误处理和日志记录")
def test_mistakes_have_their_places_and_nothing_runs(scheduler):
    before = len(scheduler.machine.jobs())
    file = scheduler.write("command.txt", "1\npython a.py\n\npython b.py\n2，20\n\n3\n5\n20\n")
    said = scheduler.call("berth", "run", file, code=1).stderr
    assert f"{file}:2:1: the memory is missing" in said
    assert f"{file}:5:1: '2，20' is not a number here" in said
    assert f"{file}:7:1: this block has no command" in said, "a line of digits is never a command"
    assert "nothing was submitted" in said
    assert len(scheduler.machine.jobs()) == before


@promise("001", "parse_command_file.py 模块",
         "from utils import parse_command_file\n\ntasks = parse_command_file('command.txt')\n"
         "# 返回: List[(commands, queue_id, memory_gb)]")
def test_a_program_gets_the_tasks_as_data(scheduler):
    scheduler.write("command.txt", STANDARD)
    [first, second] = scheduler.check()["jobs"]
    assert first["run"] == ["echo 命令1 >> done", "echo 命令2 >> done", "echo 命令3 >> done"]
    assert re.fullmatch("command-[0-9a-f]{4}/1", first["queue"]) and first["gpu_memory"] == 20 * 2**30
    assert re.fullmatch("command-[0-9a-f]{4}/2", second["queue"]) and second["gpu_memory"] == 20 * 2**30


@promise("001", "parse_command_file.py 模块", "3. 根据队列 ID 将任务分组：\n- **同一队列内**：严格按顺序执行（队列内串行）")
def test_tasks_of_one_queue_run_in_the_order_of_the_file(scheduler):
    scheduler.write("command.txt", "\n\n".join(f"echo {i} >> order\n5,1" for i in range(6)))
    scheduler.run()
    assert scheduler.lines("order") == [str(i) for i in range(6)]


@promise("001", "parse_command_file.py 模块", "- **不同队列之间**：可同时调度（队列间并行）")
def test_each_queue_has_its_own_lane(queues):
    first, second, other = [queues.ended[queues.ids[n]]["queue"] for n in ("q1-1", "q1-2", "q2-1")]
    assert first == second and first.endswith("/1") and other == first[:-1] + "2"
    assert queues.first.state["running_tasks"] == 2
    assert first in queues.first.why, queues.first.why


# --- 2. GPU 分配与进程管理 --------------------------------------------------------------------------


@promise("001", "2. GPU 分配与进程管理", "4. **GPU 竞争范围配置**：\n- `use_all_gpus=True`：自动探测所有可用 GPU")
def test_true_is_understood_as_python_writes_it(scheduler):
    assert "gpus" not in scheduler.rules_of("use_all_gpus: True\ncompete_gpus: [1]\n")
    cards, _ = scheduler.used_cards("use_all_gpus: True\ncompete_gpus: [1]\n", 3)
    assert len(cards) == 3


@promise("001", "2. GPU 分配与进程管理", "- `use_all_gpus=False`：使用 `compete_gpus` 指定的 GPU 列表")
def test_false_takes_the_list(scheduler):
    cards, _ = scheduler.used_cards("use_all_gpus: False\ncompete_gpus: [1, 8, 77]\n", 3)
    assert cards == [1, 8], "a card that is not there does no harm"
    assert "compete_gpus" in scheduler.call(
        "berth", "check", scheduler.config("use_all_gpus: False\n").with_name("command.txt"), code=1).stderr


@promise("001", "2. GPU 分配与进程管理", "5. **GPU 预留处理**：\n- 根据 `gpu_left` 配置预留 GPU")
def test_cards_are_kept_back_by_gpu_left(scheduler):
    cards, _ = scheduler.used_cards("compete_gpus: [0, 1, 2, 3]\ngpu_left: 3\n", 2)
    assert cards == [0]


@promise("001", "2. GPU 分配与进程管理", "- 预留的 GPU 不会被调度器使用")
def test_who_needs_a_card_that_is_left_waits_and_knows_why(scheduler):
    cards, why = scheduler.used_cards("compete_gpus: [4]\ngpu_left: 1\n", 1)
    assert cards == [] and "the rules leave it no card: gpus=4, gpu_left=1" in why[0]


@promise("001", "2. GPU 分配与进程管理", "- 通常预留最后几张 GPU（编号较大的）")
def test_the_cards_with_the_highest_numbers_are_left(scheduler):
    cards, _ = scheduler.used_cards("gpu_left: 5\n", 6)
    assert cards == [0, 1, 2, 3, 4]


@promise("001", "2. GPU 分配与进程管理",
         "6. **GPU 可用性检查**（`find_available_gpu`）：\n- **显存检查**：确保有足够的可用显存（`required_memory`）")
def test_a_card_without_enough_free_memory_is_passed_over(scheduler):
    with process_on(scheduler.machine, 0, "10GiB"):
        scheduler.config("check_time: 1\ncompete_gpus: [0]\nmaximize_resource_utilization: true\n")
        scheduler.write("command.txt", "true\n1,20\n")
        ids = scheduler.submit("command.txt", "--rule", "foreign.policy=ignore")
        why = eventually(lambda: scheduler.why(ids["q1-1"]), "it knows why it waits")
        assert "14" in why and "20" in why, why
        scheduler.write("small.txt", "echo fits >> ran\n2,12\n")
        assert scheduler.run("small.txt", "--rule", "foreign.policy=ignore")["q2-1"]["state"] == "succeeded"
        assert scheduler.state_of(ids["q1-1"]) == "queued"
    assert scheduler.machine.wait_one(ids["q1-1"])["state"] == "succeeded"


@promise("001", "2. GPU 分配与进程管理",
         "- **用户进程检查**（非极限模式）：确保当前用户没有其他 Python 进程在该 GPU 上")
def test_a_card_with_a_process_of_ones_own_is_passed_over(scheduler):
    with process_on(scheduler.machine, 0, "100MiB"):
        scheduler.config("check_time: 1\ncompete_gpus: [0, 1]\n")
        scheduler.write("command.txt", f"{scheduler.task('a')}\n1,4\n\n{scheduler.task('b')}\n2,4\n")
        ids = scheduler.submit("command.txt", "--rule", "foreign.policy=ignore")
        eventually(scheduler.cards, "one has begun")
        assert list(scheduler.cards().values()) == ["1"]
        [waiting] = [i for i in ids.values() if scheduler.state_of(i) == "queued"]
        eventually(lambda: "GPU 0: " in scheduler.why(waiting), "it says that the card is in use")
    assert sorted(scheduler.begun("a", "b").values()) == ["0", "1"]


@promise("001", "2. GPU 分配与进程管理",
         "7. **任务执行**（`execute_task`）：\n- 设置 `CUDA_VISIBLE_DEVICES={gpu_id}` 环境变量")
def test_a_task_sees_the_index_of_its_card(scheduler):
    scheduler.config("compete_gpus: [6]\n")
    scheduler.write("command.txt", "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER > seen\n1,20\n")
    scheduler.run()
    assert scheduler.lines("seen") == ["6 PCI_BUS_ID"]


@promise("001", "2. GPU 分配与进程管理", "- 串行执行任务的所有命令")
def test_commands_of_a_task_run_one_after_the_other(scheduler):
    scheduler.write("command.txt",
                    "sleep 0.2; echo 1 >> order\necho 2 >> order\nexport X=3; echo $X >> order\n1,20\n")
    scheduler.run()
    assert scheduler.lines("order") == ["1", "2", "3"]


@promise("001", "2. GPU 分配与进程管理", '- 更新任务状态为 "running"')
def test_a_task_that_runs_is_running(queues):
    process = queues.first.state["queues"]["1"]["processes"][0]
    assert process["status"] == "running" and process["started_at"] and not process["finished_at"]
    assert queues.final["queues"]["1"]["processes"][0]["status"] == "completed"


@promise("001", "2. GPU 分配与进程管理", "- 记录 PID 到 `uni_id.json`")
def test_its_pid_is_in_uni_id_json(queues, retried):
    # Also of attempts that were over at once.
    for entry in (*queues.first.entries.values(), *retried.entries().values()):
        assert isinstance(entry["pid"], int) and entry["pid"] > 1


@promise("001", "2. GPU 分配与进程管理",
         "8. **进程启动确认**（`wait_for_process_start`）：\n- 等待最多 60 秒，直到 JSON 中出现有效的 PID")
def test_the_pid_is_there_soon(scheduler):
    scheduler.write("command.txt", f"{scheduler.task('a')}\n1,20\n")
    scheduler.submit()
    scheduler.begun("a")
    [entry] = eventually(lambda: [e for e in scheduler.entries().values() if e["pid"]], "its pid is there", 60)
    assert entry["state"] == "running" and living(entry["pid"])


@promise("001", "2. GPU 分配与进程管理", "- 通过 `psutil.pid_exists(pid)` 确认进程真实存在")
def test_the_process_of_that_pid_lives_as_long_as_the_task(queues):
    assert all(queues.first.alive.values())
    assert not any(living(e["pid"]) for e in queues.first.entries.values()), "they have ended since"


# --- 3. 进程状态与重试机制 --------------------------------------------------------------------------


@promise("001", "3. 进程状态与重试机制",
         """9. **进程状态跟踪**（`uni_id.json`）：
- 外部脚本（如 `run_pipeline.sh`）启动后会写入：
{
"uni_id": {
"pid": 12345,
"state": "running",
"retry_count": 0
}
}""")
def test_a_script_that_runs_on_in_the_background_writes_its_entry(scheduler):
    """The file does not say {uni_id}; the script has it from its environment, and the task lasts as long as it does."""
    scripts = scheduler.add_pipeline()
    (scripts / "run_pipeline.sh").write_text(f"""\
( exec > /dev/null 2>&1 < /dev/null
  STATE_FILE="$BERTH_STATE_FILE" /usr/bin/python3 - "$BERTH_UNI_ID" $BASHPID <<'END'
import fcntl, json, os, sys
path = os.environ["STATE_FILE"]
with open(path + ".lock", "a") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    known = json.load(open(path))
    known[sys.argv[1]] = {{"pid": int(sys.argv[2]), "state": "running", "retry_count": 0}}
    with open(path + ".mine", "w") as file:
        json.dump(known, file)
    os.rename(path + ".mine", path)
END
  {scheduler.task("a")} ) &
echo $! > pipeline.pid
""")
    scheduler.write("command.txt", "1\nbash {work_dir}/scripts/run_pipeline.sh\n20\n")
    ids = scheduler.submit()
    scheduler.begun("a")
    [pid] = scheduler.lines("pipeline.pid")
    [(uni_id, entry)] = eventually(scheduler.entries, "it is told of").items()
    assert re.fullmatch(r"\S+", uni_id)
    assert {k: entry[k] for k in ("pid", "state", "retry_count")} == {"pid": int(pid), "state": "running", "retry_count": 0}
    assert living(int(pid)) and scheduler.state_of(ids["q1-1"]) == "running"
    scheduler.let_go("a")
    ended = scheduler.machine.wait(ids.values())[ids["q1-1"]]
    assert (ended["state"], ended["message"]) == ("succeeded", None)
    assert scheduler.lines("ended") == ["a"], "it came to its end"
    scheduler.settled()
    assert scheduler.entries()[uni_id]["state"] == "normal_exit"


@promise("001", "3. 进程状态与重试机制", '- 进程正常退出时，外部脚本更新为 `state: "normal_exit"`')
def test_normal_exit_is_a_success(pipeline):
    [(mark, _)] = pipeline.marks["flower"]
    assert pipeline.entries()[mark]["state"] == "normal_exit"
    assert pipeline.ended["q2-1"]["state"] == "succeeded"


@promise("001", "3. 进程状态与重试机制", '- 进程异常退出时，外部脚本更新为 `state: "abnormal_exit"` 和 `error_type`')
def test_abnormal_exit_is_a_failure_of_that_type(pipeline):
    attempts = pipeline.machine.show(pipeline.ended["q1-1"]["id"])["attempts"]
    assert [a["state"] for a in attempts] == ["failed", "failed", "succeeded"], "though each exit code was 0"
    assert [a["failure_class"] for a in attempts] == ["gpu_oom", "exit", None]
    assert "abnormal_exit: runtime_error" in attempts[1]["message"]


@promise("001", "3. 进程状态与重试机制",
         '10. **重试机制**（`check_and_handle_finished_tasks`）：\n- 检测到 `abnormal_exit` 状态时：\n- 将任务状态重置为 "pending"')
def test_a_failed_task_is_pending_again(backing_off):
    assert backing_off.told["pending_tasks"] == 1 and backing_off.told["failed_tasks"] == 0
    assert backing_off.told["queues"]["1"]["processes"][0]["status"] == "pending"
    assert backing_off.job["state"] == "queued"


@promise("001", "3. 进程状态与重试机制", "- 增加 `retry_count`")
def test_the_retry_count_grows(retried):
    counts = [retried.entries()[mark]["retry_count"] for mark in retried.lines("marks")]
    assert counts == list(range(8))
    assert retried.final["queues"]["1"]["processes"][0]["retry_count"] == 7


@promise("001", "3. 进程状态与重试机制", "- 根据重试次数决定是否需要退避")
def test_the_number_of_retries_decides_about_the_wait(retried):
    for number, said in enumerate(retried.retries, 1):
        assert ("trying again in 0.6 s" in said) == (number in (4, 7)), (number, said)
        assert f"retry {number} of 100" in said


@promise("001", "3. 进程状态与重试机制", "- 生成新的 `uni_id` 用于重试")
def test_a_retry_has_a_new_uni_id(pipeline):
    marks = [mark for mark, _ in pipeline.marks["car"]]
    assert len(set(marks)) == 3


@promise("001", "3. 进程状态与重试机制", "- 退避策略：每 3 次重试后退避 10 分钟")
def test_the_documented_wait_is_the_usual_one(backing_off):
    rules = backing_off.usual
    assert rules["retry_config.max_retry_before_backoff"] == "3"
    assert rules["retry_config.backoff_duration"] == "10m"
    assert rules["retry_config.backoff"] == "steps"


# --- 4. 队列推进与状态监控 --------------------------------------------------------------------------


@promise("001", "4. 队列推进与状态监控",
         "11. **忙碌队列检测**（`get_busy_queues`）：\n- 通过 JSON 中 `state=running` 且进程确实存在的记录")
def test_a_queue_is_busy_while_its_process_lives(queues):
    busy = [q for q, told in queues.first.state["queues"].items() if told["running_tasks"]]
    assert sorted(busy) == ["1", "2"]
    assert len([u for u, e in queues.first.entries.items() if e["state"] == "running" and queues.first.alive[u]]) == 2


@promise("001", "4. 队列推进与状态监控", "- 返回当前正在执行任务的队列 ID 集合")
def test_the_ids_of_busy_queues_are_told(queues):
    assert set(queues.first.state["gpu_assignments"].values()) == {"1", "2"}
    assert "busy queues: 1, 2; idle queues: none" in queues.log_then
    assert "busy queues: 1; idle queues: 2" in queues.log_next


@promise("001", "4. 队列推进与状态监控", "12. **任务调度**（`run` 主循环）：\n- 获取所有空闲队列的头部任务")
def test_the_heads_of_idle_queues_are_what_may_start(queues):
    assert sorted(queues.first.cards) == ["a", "c"], "both heads, and not the second of queue 1"


def order_of_start(make_instance, tmp_path, name, *words):
    """In which order eight queues start that have one card between them."""
    berth = make_instance(gpus="sim:1x24GiB", name=name)
    berth.start()
    at = Scheduler(berth, tmp_path / f"project-{name}")
    at.write("command.txt", "\n\n".join(f"echo {i} >> order\n{i},20" for i in range(8)))
    assert len(at.run("command.txt", *words)) == 8
    return at.lines("order")


@promise("001", "4. 队列推进与状态监控", "- 随机打乱顺序（公平调度）")
def test_their_order_is_random_and_the_seed_fixes_it(make_instance, tmp_path):
    first = order_of_start(make_instance, tmp_path, "a", "--rule", "seed=7")
    again = order_of_start(make_instance, tmp_path, "b", "--rule", "seed=7")
    other = order_of_start(make_instance, tmp_path, "c", "--rule", "seed=8")
    assert sorted(first) == sorted(other) == [str(i) for i in range(8)]
    assert first == again
    assert first != other
    assert first != sorted(first)


@promise("001", "4. 队列推进与状态监控", "- 逐个分配到可用 GPU")
def test_each_gets_a_card_of_its_own(scheduler):
    cards, why = scheduler.used_cards("", 10)
    assert cards == list(range(10)) and not why


@promise("001", "4. 队列推进与状态监控", "- 每分配一个任务后等待 30 秒再分配下一个")
def test_tasks_start_at_once_where_a_claim_does_what_the_waiting_did(scheduler):
    scheduler.config("compete_gpus: [0, 1]\n")
    scheduler.write("command.txt", "\n\n".join(f"{scheduler.task(n)}\n{i},20" for i, n in enumerate("abc")))
    ids = scheduler.submit()
    eventually(lambda: len(scheduler.cards()) == 2, "two have begun", timeout=25)
    assert sorted(scheduler.cards().values()) == ["0", "1"]
    assert sorted(scheduler.state_of(i) for i in ids.values()) == ["queued", "running", "running"]


@promise("001", "4. 队列推进与状态监控", "13. **状态监控**（`print_status`）：\n- 显示各队列的忙碌/空闲状态")
def test_the_status_tells_which_queues_are_busy(queues):
    lines = [line for line in queues.log_then.splitlines() if "status: " in line]
    assert any(line.endswith("busy queues: 1, 2; idle queues: none") for line in lines)


@promise("001", "4. 队列推进与状态监控", "- 统计 pending/running/completed/failed 任务数量")
def test_the_status_counts_tasks(queues):
    assert "status: pending 1, running 2, completed 0, failed 0" in queues.log_then
    first = queues.first.state
    assert (first["pending_tasks"], first["running_tasks"], first["completed_tasks"], first["failed_tasks"]) == (
        1, 2, 0, 0)
    assert queues.final["completed_tasks"] == 3
    assert re.search(r"jobs: 2 running, 1 queued", queues.status_then)


# --- 重试机制详解 -----------------------------------------------------------------------------------


@promise("001", "重试触发条件", "1. **Python 进程异常退出**：\n- 外部脚本检测到非零退出码")
def test_an_exit_code_other_than_zero_is_a_failure(backing_off):
    assert [a["exit_code"] for a in backing_off.attempts] == [3] * 4


@promise("001", "重试触发条件", '- 在 `uni_id.json` 中设置 `state: "abnormal_exit"`')
def test_it_is_recorded_as_abnormal(backing_off):
    assert {e["state"] for e in backing_off.entries().values()} == {"abnormal_exit"}
    assert len(backing_off.entries()) == 4


@promise("001", "重试触发条件", '- 可选设置 `error_type`（如 "oom", "runtime_error"）')
def test_the_type_of_an_error_is_kept(pipeline):
    types_told = [pipeline.entries()[mark]["error_type"] for mark, _ in pipeline.marks["car"]]
    assert types_told[:2] == ["oom", "runtime_error"] and not types_told[2]


@promise("001", "重试触发条件", "2. **重试处理流程**：\n- 调度器检测到 `abnormal_exit` 状态")
def test_the_scheduler_notices_what_a_script_has_written(pipeline):
    assert re.search(r"queue 1: job \d+ retried: .*oom", pipeline.log()), pipeline.log()
    assert "abnormal_exit: runtime_error" in pipeline.log()


@promise("001", "重试触发条件", '- 将任务重置为 "pending" 状态')
def test_it_waits_again_under_the_same_id(backing_off):
    assert backing_off.told["queues"]["1"]["processes"][0]["job_id"] == backing_off.ids["q1-1"]
    assert backing_off.told["queues"]["1"]["current_task"] is None
    assert "exited with code 3" in backing_off.told["queues"]["1"]["last_error"]


@promise("001", "重试触发条件", "- 增加 `retry_count`")
def test_each_attempt_counts_one_more(backing_off):
    assert sorted(e["retry_count"] for e in backing_off.entries().values()) == [0, 1, 2, 3]


@promise("001", "重试触发条件", "- 根据重试次数决定是否退避")
def test_only_the_fourth_failure_brings_the_wait(backing_off):
    assert ["trying again in" in said for said in backing_off.retries] == [False, False, False, True]


@promise("001", "重试触发条件", "- 生成新的 `uni_id`")
def test_four_attempts_have_four_marks(backing_off):
    marks = backing_off.lines("marks")
    assert len(marks) == 4 and len(set(marks)) == 4 and set(marks) == set(backing_off.entries())


@promise("001", "重试触发条件", "3. **退避策略**：\n- 每 3 次重试后进入退避期")
def test_the_wait_comes_again_after_three_more(retried):
    assert [n for n, said in enumerate(retried.retries, 1) if "trying again in" in said] == [4, 7]


@promise("001", "重试触发条件", "- 退避时间：10 分钟")
def test_the_wait_takes_ten_minutes(backing_off):
    assert "trying again in 10" in backing_off.retries[3], backing_off.retries


@promise("001", "重试触发条件", "- 退避期间任务不会被调度")
def test_nothing_starts_during_the_wait(backing_off):
    assert all(gpu["state"] == "free" for gpu in backing_off.gpus), "though all cards are free"
    assert "tried again" in backing_off.reason
    assert backing_off.attempts_then == 4


@promise("001", "重试配置",
         "retry_config = RetryConfig(\n max_retry_before_backoff=3,  # 每 3 次重试后进入退避\n"
         " backoff_duration=600         # 退避时间 10 分钟\n)")
def test_both_numbers_can_be_set_and_these_are_the_defaults(scheduler):
    usual = scheduler.rules_of("")
    documented = scheduler.rules_of("retry_config:\n  max_retry_before_backoff: 3\n  backoff_duration: 600\n")
    assert usual == documented
    other = scheduler.rules_of("retry_config:\n  max_retry_before_backoff: 1\n  backoff_duration: 2\n")
    assert other["retry_config.max_retry_before_backoff"] == "1"
    assert other["retry_config.backoff_duration"] == "2s"


# --- 使用示例 -------------------------------------------------------------------------------------


EXAMPLE = """\
# 修改调度间隔
check_time: 10

# 修改 GPU 列表
compete_gpus: [0, 1, 2, 3]

# 预留 GPU 给其他用户
gpu_left: 2  # 预留最后 2 张 GPU

# 修改重试配置
retry_config:
  max_retry_before_backoff: 5
  backoff_duration: 1200  # 20 分钟

# 设置工作目录
work_dir: "/home/user/custom_workspace"  # 绝对路径
# work_dir: "../"                          # 相对路径
# work_dir: null                           # 默认（脚本父目录）
"""


@promise("001", "1. 配置调度器", "编辑 `config.yaml` 文件调整参数：")
def test_an_edited_configuration_counts_for_what_is_run_then(scheduler):
    scheduler.config("gpu_left: 0\n")
    scheduler.write("command.txt", f"{scheduler.task('a')}\n1,20\n")
    scheduler.submit()
    scheduler.config(EXAMPLE)
    assert scheduler.rules()["gpu_left"] == "0"
    assert scheduler.check()["rules"]["gpu_left"] == "2"


@promise("001", "1. 配置调度器", "# 修改调度间隔\ncheck_time: 10")
def test_the_example_looks_every_ten_seconds(scheduler):
    assert scheduler.rules_of(EXAMPLE)["sample_age_max"] == "10s"


@promise("001", "1. 配置调度器", "# 修改 GPU 列表\ncompete_gpus: [0, 1, 2, 3]")
def test_the_example_lists_four_cards(scheduler):
    assert scheduler.rules_of(EXAMPLE)["gpus"] == "0,1,2,3"


@promise("001", "1. 配置调度器", "# 预留 GPU 给其他用户\ngpu_left: 2  # 预留最后 2 张 GPU")
def test_the_example_leaves_the_last_two_of_them(scheduler):
    cards, _ = scheduler.used_cards("compete_gpus: [0, 1, 2, 3]\ngpu_left: 2\n", 4)
    assert cards == [0, 1]


@promise("001", "1. 配置调度器", "# 修改重试配置\nretry_config:\n max_retry_before_backoff: 5")
def test_the_example_retries_five_times(scheduler):
    assert scheduler.rules_of(EXAMPLE)["retry_config.max_retry_before_backoff"] == "5"


@promise("001", "1. 配置调度器", "backoff_duration: 1200  # 20 分钟")
def test_the_example_waits_twenty_minutes(scheduler):
    assert scheduler.rules_of(EXAMPLE)["retry_config.backoff_duration"] == "20m"


@promise("001", "1. 配置调度器", '# 设置工作目录\nwork_dir: "/home/user/custom_workspace"  # 绝对路径')
def test_the_example_has_an_absolute_work_directory(scheduler):
    scheduler.rules_of(EXAMPLE)
    assert scheduler.check()["jobs"][0]["cwd"] == "/home/user/custom_workspace"


@promise("001", "1. 配置调度器", '# work_dir: "../"                          # 相对路径')
def test_the_example_with_the_second_line_instead(scheduler):
    lines = [line for line in EXAMPLE.splitlines() if not line.startswith("work_dir:")]
    scheduler.rules_of("\n".join(lines).replace('# work_dir: "../"', 'work_dir: "../"'))
    assert scheduler.check()["jobs"][0]["cwd"] == str(scheduler.project)


@promise("001", "1. 配置调度器", "# work_dir: null                           # 默认（脚本父目录）")
def test_the_example_with_the_third_line_instead(scheduler):
    lines = [line for line in EXAMPLE.splitlines() if not line.startswith("work_dir:")]
    scheduler.rules_of("\n".join(lines).replace("# work_dir: null", "work_dir: null"))
    assert scheduler.check()["jobs"][0]["cwd"] == str(scheduler.project)


@promise("001", "2. 创建任务配置",
         """**使用优化格式（command_bk.txt）**：
# 汽车数据集任务
1 #队列1
"rm -rf {work_dir}/experiments/car196/knowledge_base"
"bash {work_dir}/scripts/set_hyperparameters.sh --experience_number 8"
"bash {work_dir}/scripts/run_pipeline.sh car --uni_id {uni_id}"
20 #显存需求""")
def test_the_example_of_the_cars(scheduler):
    text = OPTIMISED.replace("#队列ID", "#队列1").replace("#剩余显存", "#显存需求")
    [cars, _] = scheduler.jobs_of(text, "command_bk.txt")
    assert cars == (["rm -rf {work_dir}/experiments/car196/knowledge_base",
                     "bash {work_dir}/scripts/set_hyperparameters.sh --experience_number 8",
                     "bash {work_dir}/scripts/run_pipeline.sh car --uni_id {uni_id}"], 1, 20, 1)


@promise("001", "2. 创建任务配置",
         """# 花卉数据集任务
2 #队列2
"rm -rf {work_dir}/experiments/flower102/knowledge_base"
"bash {work_dir}/scripts/set_hyperparameters.sh --experience_number 5"
"bash {work_dir}/scripts/run_pipeline.sh flower --uni_id {uni_id}"
20 #显存需求""")
def test_the_example_of_the_flowers(scheduler):
    scheduler.add_pipeline()
    flowers = OPTIMISED.split("\n2\n")[1].rstrip()
    scheduler.write("command_bk.txt", f"# 花卉数据集任务\n2 #队列2\n{flowers} #显存需求\n")
    assert scheduler.run("command_bk.txt")["q2-1"]["state"] == "succeeded"
    assert scheduler.lines("set") == ["--experience_number 5"]


@promise("001", "3. 启动调度器",
         "cd /home/you/project/fgvr_test_new/scripts/compete_gpu_retry\nnohup python main.py > /dev/null 2>&1 &")
def test_it_goes_on_in_the_background(scheduler):
    scheduler.write("command.txt", f"{scheduler.task('a')}\n1,20\n")
    scheduler.shell(f"cd '{scheduler.dir}'\nnohup main_gpu > /dev/null 2>&1 &", cwd="/")
    scheduler.begun("a")
    scheduler.let_go("a")
    scheduler.settled()


@promise("001", "4. 查看日志", "tail -f logs/compete_gpu.log")
def test_the_log_can_be_followed(scheduler):
    scheduler.write("command.txt", f"{scheduler.task('a')}\n1,20\n")
    scheduler.submit()
    scheduler.begun("a")
    eventually(scheduler.log, "there is a log")
    tail = subprocess.Popen(["tail", "-f", "-n", "+1", "logs/compete_gpu.log"], cwd=scheduler.dir,
                            stdout=subprocess.PIPE, text=True)
    try:
        assert "submitted" in tail.stdout.readline()
        scheduler.let_go("a")
        for line in tail.stdout:
            if "ended normally" in line:
                break
    finally:
        tail.kill()
        tail.wait()


@promise("001", "5. 查看进程状态", "cat logs/uni_id.json | python -m json.tool")
def test_the_state_of_processes_is_json(pipeline):
    said = pipeline.shell("cat logs/uni_id.json | /usr/bin/python3 -m json.tool")
    assert json.loads(said) == pipeline.entries() and len(json.loads(said)) == 4


@promise("001", "6. 修改任务配置", "编辑 `command.txt` 或 `command_bk.txt` 文件，添加或修改任务块。")
def test_blocks_can_be_added_and_changed(scheduler):
    assert len(scheduler.jobs_of(OPTIMISED, "command_bk.txt")) == 2
    more = OPTIMISED.replace("number 8", "number 9") + "\n3\ntrue\n4\n"
    found = scheduler.jobs_of(more, "command_bk.txt")
    assert len(found) == 3 and found[0][0][1].endswith("--experience_number 9") and found[2][1:] == (3, 4, 1)


# --- 注意事项 -------------------------------------------------------------------------------------


@promise("001", "注意事项", "1. **路径独立性**：所有路径相对于脚本位置，便于部署到不同环境")
def test_the_directory_can_be_moved(scheduler, tmp_path):
    scheduler.write("command.txt", "pwd > where\n1,20\n")
    scheduler.config("work_dir: null\n")
    moved = tmp_path / "其他环境" / "scripts"
    moved.parent.mkdir()
    scheduler.dir.rename(moved)
    scheduler.dir = moved
    scheduler.run()
    scheduler.settled()
    assert (moved.parent / "where").read_text("utf-8").split() == [str(moved.parent)]


@promise("001", "注意事项", "2. **配置管理**：通过 `config.yaml` 统一管理配置，避免修改代码")
def test_no_task_need_be_changed_for_another_configuration(scheduler):
    scheduler.write("command.txt", STANDARD)
    scheduler.config(CONFIG.replace("{work_dir}", "null"))
    one = scheduler.check()
    scheduler.config(EXAMPLE)
    other = scheduler.check()
    assert [j["run"] for j in one["jobs"]] == [j["run"] for j in other["jobs"]]
    assert one["rules"] != other["rules"]


@promise("001", "注意事项", "3. **工作目录**：支持相对路径和绝对路径配置，灵活适应不同部署需求")
def test_work_directories_of_every_form(scheduler):
    assert [work_dir(scheduler, v) for v in ("null", "..", "../..", "work", "./work/", "/tmp/workspace/")] == [
        str(scheduler.project), str(scheduler.project), str(scheduler.project.parent),
        str(scheduler.dir / "work"), str(scheduler.dir / "work"), "/tmp/workspace"]


@promise("001", "注意事项", "4. **GPU 预留**：合理设置 `gpu_left` 避免影响其他用户，通常预留 1-2 张 GPU")
def test_what_is_left_is_free_for_others(scheduler):
    """A task that waits does not take it, though nobody is there, until it is no longer left."""
    scheduler.config("compete_gpus: [7, 8, 9]\ngpu_left: 1\n")
    names = "abcd"
    scheduler.write("command.txt", "\n\n".join(f"{scheduler.task(n)}\n{i},20" for i, n in enumerate(names)))
    ids = scheduler.submit()
    eventually(lambda: len(scheduler.cards()) == 2, "two have begun")
    assert sorted(scheduler.cards().values()) == ["7", "8"]
    waiting = [i for i in ids.values() if scheduler.state_of(i) == "queued"]
    assert len(waiting) == 2
    why = eventually(lambda: scheduler.why(waiting[0]), "why it waits")
    assert "gpu_left" in why, why
    [left] = [g for g in scheduler.machine.api("GET", "/api/gpus")["gpus"] if g["index"] == 9]
    assert left["memory_free"] == left["memory_total"] and not left["claims"]
    # When one ends, the next takes its card and not the one that is left.
    [first, second] = scheduler.cards()
    ended_on = scheduler.cards()[first]
    scheduler.let_go(first)
    eventually(lambda: len(scheduler.cards()) == 3, "the third has begun")
    [third] = set(scheduler.cards()) - {first, second}
    assert scheduler.cards()[third] == ended_on
    scheduler.call("berth", "set", "--batch", scheduler.batch, "gpu_left=0")
    eventually(lambda: len(scheduler.cards()) == 4, "the last has begun")
    [fourth] = set(scheduler.cards()) - {first, second, third}
    assert scheduler.cards()[fourth] == "9"


@promise("001", "注意事项",
         "5. **命令格式**：建议使用优化格式（command_bk.txt），队列ID在第一行，命令在中间，显存在最后一行")
def test_queue_commands_memory_in_this_order(scheduler):
    assert scheduler.jobs_of("9\na\nb\n11\n", "command_bk.txt") == [(["a", "b"], 9, 11, 1)]


@promise("001", "注意事项", "6. **日志管理**：日志文件会自动轮转，避免单个文件过大")
def test_the_log_rotates(scheduler):
    scheduler.logs.mkdir()
    (scheduler.logs / "compete_gpu.log").write_bytes(b"old\n" * (10 * 2**20 // 4 + 1))
    scheduler.write("command.txt", "true\n1,20\n")
    scheduler.run()
    eventually(lambda: "ended normally" in scheduler.log(), "the new log is written")
    assert (scheduler.logs / "compete_gpu.log").stat().st_size < 10000
    assert (scheduler.logs / "compete_gpu.log.1").stat().st_size >= 10 * 2**20


@promise("001", "注意事项", "7. **进程清理**：异常退出的进程需要手动清理或等待系统自动清理")
def test_what_a_failed_task_leaves_behind_is_ended(scheduler):
    scheduler.write("command.txt", "sleep 600 & echo $! > left; exit 1\n1,20\n")
    ids = scheduler.submit("command.txt", "--rule", "retry_config.exit=0")
    assert scheduler.machine.wait_one(ids["q1-1"])["state"] == "failed"
    [pid] = scheduler.lines("left")
    assert not living(int(pid))


@promise("001", "注意事项", "8. **GPU 资源**：确保任务预估的显存需求准确，避免 OOM 错误")
def test_who_runs_out_of_memory_gets_more(scheduler):
    simgpu = scheduler.machine.bin_dir / "berth-simgpu"
    scheduler.write("command.txt", f"{simgpu} train --memory 9GiB --time 0.1s\n1,4\n")
    with process_on(scheduler.machine, 0, "20GiB"):
        scheduler.config("check_time: 1\ncompete_gpus: [0, 1]\nmaximize_resource_utilization: true\n")
        job = scheduler.run("command.txt", "--rule", "foreign.policy=ignore", "--rule", "strategy=best_fit")["q1-1"]
    attempts = scheduler.machine.show(job["id"])["attempts"]
    assert [a["failure_class"] for a in attempts] == ["gpu_oom", None]
    assert "out of GPU memory" in attempts[0]["message"]
    assert attempts[0]["gpu_memory"] == 4 * 2**30 < attempts[1]["gpu_memory"]
    assert job["state"] == "succeeded"


@promise("001", "注意事项", "9. **队列设计**：合理设计队列数量和任务分配，避免资源浪费")
def test_more_queues_use_more_cards(scheduler):
    scheduler.write("command.txt", f"{scheduler.task('a')}\n1,20\n\n{scheduler.task('b')}\n1,20\n")
    ids = scheduler.submit()
    scheduler.begun("a")
    assert set(scheduler.cards()) == {"a"} and scheduler.state_of(ids["q1-2"]) == "queued"
    scheduler.end(ids)
    scheduler.write("command.txt", f"{scheduler.task('c')}\n1,20\n\n{scheduler.task('d')}\n2,20\n")
    scheduler.submit()
    scheduler.begun("c", "d")


@promise("001", "注意事项", "10. **YAML 语法**：编辑配置文件时注意 YAML 语法，特别是缩进和引号")
def test_mistakes_in_yaml_have_their_places(scheduler):
    scheduler.write("command.txt", "true\n1,20\n")
    scheduler.config('check_time: 5\nretry_config:\n    max_retry_before_backoff: 3\n  backoff_duration: 600\n')
    assert "config.yaml:4:" in scheduler.call("berth", "check", "command.txt", code=1).stderr
    scheduler.config('work_dir: "../\n')
    assert "config.yaml:" in scheduler.call("berth", "check", "command.txt", code=1).stderr
    scheduler.config("check_time: 5\ngpu_lft: 1\n")
    said = scheduler.call("berth", "check", "command.txt", code=1).stderr
    assert "config.yaml:2:1: unknown key 'gpu_lft'; did you mean 'gpu_left'?" in said


MODULE = "internal module"
TREE = "代码结构（模块化版本）"
YAML = "process_yaml.py 模块"
ELSEWHERE = [
    Elsewhere(TREE, "└── utils/", MODULE, "nothing to import: `berth` is one program, and `--json` speaks to scripts"),
    Elsewhere(TREE, "__init__.py", MODULE, "nothing to import: `berth` is one program, and `--json` speaks to scripts"),
    Elsewhere(TREE, "gpu_monitor.py         # GPU 状态监控", MODULE, "`berth gpus`, `berth gpus --json`, `berth top`"),
    Elsewhere(TREE, "process_json.py        # JSON 文件管理", MODULE,
              "`logs/uni_id.json`, written under a lock and replaced as a whole; `berth report` from inside a task"),
    Elsewhere(TREE, "process_yaml.py        # YAML 配置文件管理", MODULE,
              "`berth check` for what a configuration says, `berth set --batch ID` to change it"),
    Elsewhere(TREE, "retry.py               # 重试机制", MODULE, "the rules `retry_config.*`, see docs/guide/retries.md"),
    Elsewhere(TREE, "parse_command_file.py  # 命令配置文件解析器", MODULE, "`berth check FILE`, `berth check --json FILE`"),
    Elsewhere(YAML, "from utils import ProcessYAML\n\n# 加载配置\nconfig = ProcessYAML('config.yaml')", MODULE,
              "`berth check --json command.txt` reads the configuration beside it and prints the rules"),
    Elsewhere(YAML, "# 获取配置项\ncheck_time = config.get('check_time', 5)", MODULE,
              "`berth set --batch ID --json`: every rule with its value, default and where it comes from"),
    Elsewhere(YAML, "retry_count = config.get('retry_config.max_retry_before_backoff', 3)", MODULE,
              "`berth set --batch ID --json`: every rule with its value, default and where it comes from"),
    Elsewhere(YAML, "# 更新配置（内存中）\nconfig.update('new_key', 'new_value')", MODULE,
              "`berth set --batch ID KEY=VALUE`; a key nobody knows is refused with the nearest that is known"),
]
# Names of columns, and words before a list.
SILENT = ["| 模块 | 功能 |", "**主要功能**：", "**使用方式**："]
