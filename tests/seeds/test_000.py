"""What document 000 promises: FedWhat's GPU-aware experiment scheduler."""

import json
import os
import re
import shutil

import pytest

from berthlib import Instance, PATIENCE, REPO, eventually
from fedwhat_project import Project, as_another_user, card, experiment, make_programs, started, strangers
from promises import Elsewhere, promise  # noqa: F401

EXAMPLE = REPO / "examples" / "fedwhat"
SCRIPT = "run_gpu_aware_experiments.sh"
MIB = 1024**2

OVERVIEW = "概述"
USE = "基本用法"
DIRECT = "直接使用Python调度器"
MONITOR = "查看实时日志"
BUSY = "调整参数应对高负载服务器"
FAILED = "Q3: 实验失败了会重试吗？"
VERSUS = "传统Bash脚本 vs GPU调度器"
STRATEGY = "自定义GPU选择策略"
SUMMARY = "总结"


def a_machine(base, gpus):
    instance = Instance(base, gpus=gpus)
    instance.start()
    instance.cli("set", "sample_age_max=500ms", check=0)  # for tests that wait for strangers to come and go
    yield instance
    instance.close()


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """Four cards of 16 GiB, shared by the tests of this file."""
    yield from a_machine(tmp_path_factory.mktemp("m"), "sim:4x16GiB")


@pytest.fixture(scope="module")
def small_machine(tmp_path_factory):
    yield from a_machine(tmp_path_factory.mktemp("s"), "sim:1x16GiB")


@pytest.fixture
def project(machine, tmp_path):
    """A project of the test's own on four cards."""
    made = Project(machine, tmp_path / "project")
    yield made
    made.end_all()


@pytest.fixture
def one_card(small_machine, tmp_path):
    """The same on a machine that has one."""
    made = Project(small_machine, tmp_path / "project")
    yield made
    made.end_all()


@pytest.fixture(scope="module")
def fedwhat(tmp_path_factory):
    """The folder of the document, put on a machine and run as the document says."""
    base = tmp_path_factory.mktemp("f")
    instance = Instance(base, gpus="sim:6x24GiB")
    instance.start()
    made = FedWhat(instance, base)
    yield made
    instance.close()


class FedWhat(Project):
    """examples/fedwhat, and what the runs of its experiments have said."""

    def __init__(self, berth, base):
        self.berth = berth
        self.folder = base / "FedWhat"
        self.programs = make_programs(berth, base / "bin")
        shutil.copytree(EXAMPLE, self.folder)
        self.said = {}
        for name, line in (
            ("direct multi_seed", "gpu_scheduler \\\n    --job-file jobs_multi_seed.yaml \\\n    --min-memory 8000 \\\n"
             "    --max-util 30 \\\n    --max-concurrent 4"),
            ("gamma", f"bash {SCRIPT} gamma"),
            ("all", f"bash {SCRIPT} all"),
        ):
            self.said[name] = self.shell(line, FEDWHAT_ROUND="0.01")
        self.jobs = berth.jobs()

    def jobs_of(self, pattern):
        return [j for j in self.jobs if re.match(pattern, j["name"])]


def rules_of(berth, job_id):
    """The rules of a job that waits, as its batch has them."""
    batch = next(j["batch"] for j in berth.jobs() if j["id"] == job_id)
    shown = json.loads(berth.cli("set", "--batch", batch, "--json", check=0).stdout)
    return {rule["key"]: rule["value"] for rule in shown["rules"]}


def runs_on(berth, job_id):
    return berth.wait_state(job_id, "running", "succeeded")["gpu_indices"]


# --- 概述, 核心机制 ----------------------------------------------------------------------------------


@promise("000", OVERVIEW, "✅ **动态检测GPU可用性** - 实时监控显存和利用率")
@promise("000", "1. GPU可用性检测", "使用 `nvidia-smi` 实时检查：")
def test_memory_and_utilisation_are_watched_as_they_change(project):
    berth = project.berth
    with strangers(berth, gpu1=("5GiB", 45)):
        seen = card(berth, 1)
        assert seen["memory_used"] >= 5 * 1024 * MIB
        shown = next(g for g in json.loads(berth.cli("gpus", "--json", check=0).stdout) if g["index"] == 1)
        assert shown["utilization"] == 45 and shown["memory_free"] == shown["memory_total"] - shown["memory_used"]
    eventually(lambda: card(berth, 1)["memory_used"] < 1024 * MIB, "that it is gone is seen as well")


@promise("000", OVERVIEW, "✅ **队列管理** - 自动排队等待空闲GPU")
@promise("000", "2. 智能队列", "自动等待GPU可用")
def test_experiments_wait_for_a_free_card_and_start_by_themselves(one_card):
    with strangers(one_card.berth, gpu0=("15GiB", 0)):
        jobs = one_card.submit("A", "B")
        reason = eventually(lambda: one_card.berth.why(jobs["A"]), "why it waits")
        assert "no GPU has room" in reason
        assert [j["state"] for j in one_card.berth.jobs("queued")] == ["queued", "queued"]
    assert {j["state"] for j in one_card.berth.wait(jobs.values()).values()} == {"succeeded"}


@promise("000", OVERVIEW, "✅ **避免冲突** - 不干扰其他用户的任务")
@promise("000", VERSUS, "GPU冲突 | ❌ 可能占用他人GPU | ✅ 自动检测避免冲突")
@promise("000", SUMMARY, "✅ 不干扰其他用户任务（检查利用率和显存）")
def test_cards_that_others_use_are_left_alone(project):
    berth = project.berth
    with strangers(berth, gpu0=("12GiB", 0), gpu2=("1GiB", 90), gpu3=("15GiB", 90)):
        project.write("A", "B", "C")
        project.run()
        assert [j["gpu_indices"] for j in berth.jobs()[-3:]] == [[1], [1], [1]]


@promise("000", OVERVIEW, "✅ **资源优化** - 最大化GPU利用率")
@promise("000", VERSUS, "资源利用 | ⚠️ 固定分配，可能浪费 | ✅ 动态分配，最大化利用")
@promise("000", SUMMARY, "✅ 最大化自己的实验吞吐（自动填充空闲GPU）")
def test_every_free_card_is_filled(project):
    names = ["A", "B", "C", "D"]
    project.hold(*names)
    jobs = project.submit(*names)
    cards = [runs_on(project.berth, job) for job in jobs.values()]
    assert sorted(cards) == [[0], [1], [2], [3]], "all at once, one on each"


@promise("000", "1. GPU可用性检测", "**显存占用**: 必须有≥8GB空闲显存")
def test_a_card_needs_8_gb_of_free_memory(one_card):
    with strangers(one_card.berth, gpu0=(f"{16 * 1024 - 7900}MiB", 0)):
        job = one_card.submit("A")["A"]
        assert "7.8 GiB needed" in eventually(lambda: one_card.berth.why(job), "why it waits")
    one_card.berth.wait([job])
    with strangers(one_card.berth, gpu0=(f"{16 * 1024 - 8100}MiB", 0)):
        job = one_card.submit("B")["B"]
        assert one_card.berth.wait([job])[job]["state"] == "succeeded"


@promise("000", "1. GPU可用性检测", "**GPU利用率**: 必须≤30%利用率")
def test_a_card_may_be_busy_up_to_30_percent(one_card):
    with strangers(one_card.berth, gpu0=("1GiB", 31)):
        job = one_card.submit("A")["A"]
        assert "31" in eventually(lambda: one_card.berth.why(job), "why it waits")
    one_card.berth.wait([job])
    with strangers(one_card.berth, gpu0=("1GiB", 30)):
        job = one_card.submit("B")["B"]
        assert one_card.berth.wait([job])[job]["state"] == "succeeded"


@promise("000", "2. 智能队列", "任务提交到队列")
def test_experiments_go_to_a_queue(one_card):
    with strangers(one_card.berth, gpu0=("15GiB", 0)):
        jobs = one_card.submit("A", "B", "C")
        listed = json.loads(one_card.berth.cli("ls", "--json", check=0).stdout)
        assert [(j["name"], j["state"]) for j in listed if j["id"] in jobs.values()] == [
            ("A", "queued"), ("B", "queued"), ("C", "queued")]


@promise("000", "2. 智能队列", "完成后释放GPU给下一个任务")
def test_a_card_goes_to_the_next_experiment_when_one_has_ended(one_card):
    one_card.hold("A")
    jobs = one_card.submit("A", "B")
    assert runs_on(one_card.berth, jobs["A"]) == [0]
    assert "taken by job" in eventually(lambda: one_card.berth.why(jobs["B"]), "B waits for A")
    one_card.let_go("A")
    ended = one_card.berth.wait(jobs.values())
    assert ended[jobs["B"]]["gpu_indices"] == [0]
    assert ended[jobs["B"]]["started_at"] >= ended[jobs["A"]]["ended_at"]


def rules_in_force(project, *edits):
    """The rules of the jobs that the script starts, after lines of it were edited."""
    text = (EXAMPLE / SCRIPT).read_text()
    for name, value in edits:
        text, count = re.subn(rf"^{name}=\S+", f"{name}={value}", text, flags=re.MULTILINE)
        assert count == 1, f"{name} is at the top of the script"
    (project.folder / SCRIPT).write_text(text)
    project.write("A", "B", "C", "D", "E", file="jobs_gamma_sensitivity.yaml")
    project.hold("A", "B", "C", "D", "E")
    script = project.start("bash", SCRIPT, "gamma")
    last = eventually(lambda: next((j["id"] for j in project.berth.jobs("queued") if j["name"] == "E"), None),
                      "its last job waits")
    rules = rules_of(project.berth, last)
    limit = min(int(rules["max_concurrent"]), 4)
    eventually(lambda: len(project.berth.jobs("running")) == limit, f"{limit} run")
    waiting = eventually(lambda: "jobs of its batch" in (why := project.berth.why(last)) and why, "why the others wait")
    project.end_all()
    script.communicate(timeout=PATIENCE)
    return rules, waiting


@promise("000", "3. 参数调优", "MIN_MEMORY = 8000 # 最小空闲显存(MB) - 根据实验需求调整")
@promise("000", "3. 参数调优", "MAX_UTIL = 30 # 最大GPU利用率(%) - 更保守可设为20%")
@promise("000", "3. 参数调优", "MAX_CONCURRENT = 4 # 最大并发任务数 - 根据服务器GPU数量调整")
def test_the_three_parameters_and_their_usual_values(project):
    rules, waiting = rules_in_force(project)
    assert rules["min_free_memory"] == "8000MiB"
    assert rules["max_utilization"] == "30"
    assert rules["max_concurrent"] == "4" and "4 jobs of its batch run already" in waiting


# --- 使用方法 -----------------------------------------------------------------------------------------


@promise("000", USE, "# 1. 上传所有文件到服务器 cd FedWhat/")
def test_the_folder_is_all_that_is_needed(fedwhat):
    """It was copied, and nothing else: its experiments have run there."""
    assert {j["state"] for j in fedwhat.jobs} == {"succeeded"}
    assert {j["cwd"] for j in fedwhat.jobs} == {str(fedwhat.folder)}


@promise("000", USE, "# 2. 给脚本执行权限 chmod +x run_gpu_aware_experiments.sh")
def test_the_script_can_be_made_executable(fedwhat):
    said = fedwhat.shell(f"chmod +x {SCRIPT} && ./{SCRIPT} lambda_max")
    assert "6 of 6 have succeeded before" in said and "multi_seed" not in said


@promise("000", USE, "# 3. 运行实验 bash run_gpu_aware_experiments.sh all # 运行所有实验")
def test_all_runs_all_experiments(fedwhat):
    """What had been run before it was left out, the rest was run."""
    said = fedwhat.said["all"]
    assert "jobs_multi_seed.yaml: 24 of 24 have succeeded before" in said
    assert "jobs_gamma_sensitivity.yaml: 6 of 6 have succeeded before" in said
    assert said.endswith("6 of 6 succeeded\n") and len(fedwhat.jobs_of("lambda_max_")) == 6
    assert len(fedwhat.jobs) == 36


@promise("000", USE, "bash run_gpu_aware_experiments.sh multi_seed # 只运行多种子实验")
def test_multi_seed_runs_those_alone(fedwhat):
    """They have run before: without their logs they run again."""
    others = {log: log.stat().st_mtime_ns for log in fedwhat.folder.glob("logs/*_sensitivity/*.log")}
    for log in (fedwhat.folder / "logs" / "multi_seed").glob("*.log"):
        log.unlink()
    said = fedwhat.shell(f"bash {SCRIPT} multi_seed", FEDWHAT_ROUND="0.01")
    assert "24 of 24 succeeded" in said and len(started(said)) == 24
    assert {name.rpartition("_seed")[2] for name in started(said)} == {"42", "123", "2024"}
    assert len(finished_logs(fedwhat, "multi_seed")) == 24
    assert len(others) == 12 and others == {log: log.stat().st_mtime_ns for log in others}, "no other has run"


@promise("000", USE, "bash run_gpu_aware_experiments.sh gamma # 只运行gamma敏感性")
def test_gamma_runs_those_alone(fedwhat):
    said = fedwhat.said["gamma"]
    assert said.endswith("6 of 6 succeeded\n")
    assert started(said) == [f"gamma_{g}" for g in ("0", "1e-5", "1e-4", "1e-3", "1e-2", "1e-1")]


@promise("000", DIRECT, """# 运行多种子实验
python gpu_scheduler.py \\
    --job-file jobs_multi_seed.yaml \\
    --min-memory 8000 \\
    --max-util 30 \\
    --max-concurrent 4""")
def test_the_scheduler_runs_a_job_file(fedwhat):
    said = fedwhat.said["direct multi_seed"]
    assert said.endswith("24 of 24 succeeded\n")
    spans = [(j["started_at"], j["ended_at"]) for j in fedwhat.jobs_of("cifar")]
    for moment, _ in spans:
        assert sum(begin <= moment < end for begin, end in spans) <= 4, "four at once are the most"


@promise("000", DIRECT, """# 运行gamma敏感性分析
python gpu_scheduler.py \\
    --job-file jobs_gamma_sensitivity.yaml \\
    --min-memory 8000 \\
    --max-util 30""")
def test_without_a_limit_of_its_own_four_run_at_once(project):
    names = ["A", "B", "C", "D", "E"]
    project.hold(*names)
    jobs = project.submit(*names, words=("--min-memory 9000", "--max-util 25"))
    rules = rules_of(project.berth, jobs["E"])
    assert (rules["min_free_memory"], rules["max_utilization"], rules["max_concurrent"]) == ("9000MiB", "25", "4")
    eventually(lambda: len(project.berth.jobs("running")) == 4, "four run")
    eventually(lambda: "4 jobs of its batch run already" in project.berth.why(jobs["E"]), "the fifth waits for that")


# --- 工作流程示意 --------------------------------------------------------------------------------------


@promise("000", "工作流程示意", """[Job Queue]               [GPU Monitor]              [GPU Pool]
   ├─ Job1                     │                      GPU0: Free (16GB)
   ├─ Job2          ──────────►│◄────────────────     GPU1: Busy (2GB)
   ├─ Job3                     │                      GPU2: Free (12GB)
   └─ Job4                     │                      GPU3: Busy (0.5GB)
                               ▼
                      [Find available GPU]
                       (Free memory ≥ 8GB
                        Utilization ≤ 30%)
                               ▼
                        Job1 → GPU0 ✓
                        Job2 → Wait...
                        Job3 → GPU2 ✓
                        Job4 → Wait...""")
def test_two_of_four_find_a_card_and_two_wait(project):
    """The picture: 16 and 12 GiB free will do, 2 and 0.5 will not. They are given in the order of the file."""
    berth = project.berth
    with strangers(berth, gpu1=("14GiB", 0), gpu2=("4GiB", 0), gpu3=("15872MiB", 0)):
        project.hold("Job1", "Job2", "Job3", "Job4")
        jobs = project.submit("Job1", "Job2", "Job3", "Job4")
        assert runs_on(berth, jobs["Job1"]) == [0]
        assert runs_on(berth, jobs["Job2"]) == [2]
        for name in ("Job3", "Job4"):
            reason = eventually(lambda: berth.why(jobs[name]), f"why {name} waits")
            assert "GPU 1: 2 GiB free" in reason and "GPU 3: 512 MiB free" in reason
        project.let_go("Job2")
        assert runs_on(berth, jobs["Job3"]) == [2]
        project.let_go("Job1", "Job3", "Job4")
        berth.wait(jobs.values())


# --- 实验配置文件 --------------------------------------------------------------------------------------

MULTI = "1. Multi-Seed Experiments (`jobs_multi_seed.yaml`)"
GAMMA = "2. Gamma Sensitivity (`jobs_gamma_sensitivity.yaml`)"
LAMBDA = "3. Lambda_max Sensitivity (`jobs_lambda_max_sensitivity.yaml`)"


@promise("000", MULTI, "24个任务 (2 datasets × 4 algorithms × 3 seeds)")
def test_multi_seed_is_two_datasets_by_four_algorithms_by_three_seeds(fedwhat):
    params = [j["params"] for j in fedwhat.jobs_of("cifar")]
    axes = [{p[key] for p in params} for key in ("config", "algorithm", "seed")]
    assert [len(axis) for axis in axes] == [2, 4, 3]
    assert len({(p["config"], p["algorithm"], p["seed"]) for p in params}) == len(params) == 24


@promise("000", MULTI, "自动管理seed参数")
def test_every_experiment_gets_its_seed(fedwhat):
    for job in fedwhat.jobs_of("cifar"):
        seed = job["params"]["seed"]
        assert f"--seed {seed}" in job["command"]
        log = fedwhat.folder / "logs" / "multi_seed" / f"{job['name']}.log"
        assert f"with seed={seed} " in log.read_text()


def finished_logs(fedwhat, folder):
    return [p for p in (fedwhat.folder / "logs" / folder).glob("*.log") if "round 8/8" in p.read_text()]


@promise("000", MULTI, "结果保存到 `logs/multi_seed/`")
def test_multi_seed_results_are_saved(fedwhat):
    assert len(finished_logs(fedwhat, "multi_seed")) == 24


@promise("000", GAMMA, "6个任务 (γ ∈ {0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1})")
def test_gamma_has_six_values(fedwhat):
    commands = [j["command"] for j in fedwhat.jobs_of("gamma_")]
    assert [re.search(r"--gamma (\S+)", c)[1] for c in commands] == ["0", "1e-5", "1e-4", "1e-3", "1e-2", "1e-1"]


@promise("000", GAMMA, "固定 λ_max=50")
def test_lambda_max_stays_at_50(fedwhat):
    assert {j["params"]["lambda_max"] for j in fedwhat.jobs_of("gamma_")} == {"50"}
    assert all("lambda_max=50.0" in p.read_text() for p in finished_logs(fedwhat, "gamma_sensitivity"))


@promise("000", GAMMA, "结果保存到 `logs/gamma_sensitivity/`")
def test_gamma_results_are_saved(fedwhat):
    assert len(finished_logs(fedwhat, "gamma_sensitivity")) == 6


@promise("000", LAMBDA, "6个任务 (λ_max ∈ {20, 30, 50, 75, 100, 150})")
def test_lambda_max_has_six_values(fedwhat):
    commands = [j["command"] for j in fedwhat.jobs_of("lambda_max_")]
    assert [re.search(r"--lambda_max (\S+)", c)[1] for c in commands] == ["20", "30", "50", "75", "100", "150"]


@promise("000", LAMBDA, "固定 γ=0.001")
def test_gamma_stays_at_0_001(fedwhat):
    assert {j["params"]["gamma"] for j in fedwhat.jobs_of("lambda_max_")} == {"0.001"}
    assert all("gamma=0.001 " in p.read_text() for p in finished_logs(fedwhat, "lambda_max_sensitivity"))


@promise("000", LAMBDA, "结果保存到 `logs/lambda_max_sensitivity/`")
def test_lambda_max_results_are_saved(fedwhat):
    assert len(finished_logs(fedwhat, "lambda_max_sensitivity")) == 6


# --- 监控和调试 ----------------------------------------------------------------------------------------


@promise("000", MONITOR, "# 查看调度器日志 tail -f logs/multi_seed/*.log")
def test_logs_are_written_while_an_experiment_runs(project):
    project.hold("A")
    job = project.submit("A")["A"]
    eventually(lambda: project.log("A"), "the log is there")
    tail = project.start("tail", "-n", "+1", "-f", "logs/A.log")
    try:
        while "words" not in (line := tail.stdout.readline()):
            assert line, "tail has ended"
        assert project.berth.show(job)["job"]["state"] == "running"
        project.let_go("A")
        assert tail.stdout.readline() == "A is done\n", "it was followed to the end, in the same file"
    finally:
        tail.kill()
        tail.communicate()


@promise("000", MONITOR, "# 查看GPU状态 watch -n 5 nvidia-smi")
def test_the_cards_can_be_watched(project, terminal):
    with strangers(project.berth, gpu3=("5GiB", 45)):
        shown = terminal(project.berth, "gpus", "--watch=5")
        shown.expect(r"every 5\.0 s")
        shown.expect(r"  3  Simulated GPU.* 5 GiB / 16 GiB .* 45 %")
    shown.expect(r"  3  Simulated GPU.* 0 B / 16 GiB .* 0 %")  # by itself, at one of the next looks


@promise("000", MONITOR, "# 查看正在运行的Python进程 ps aux | grep test.py")
def test_running_experiments_are_ordinary_processes(project):
    project.hold("A", "B")
    jobs = project.submit("A", experiment("B", seed=7))
    for job in jobs.values():
        project.berth.wait_started(job)
    for words in ("--algo A", "--algo B --seed 7"):
        line = f"python test.py --cfp configs/x.yaml {words} "
        eventually(lambda: line in project.berth.processes().values(), f"what ps shows as well: {line}")


@pytest.fixture(scope="module")
def careful(machine, tmp_path_factory):
    """What holds after the script was edited for a busy server."""
    project = Project(machine, tmp_path_factory.mktemp("c") / "project")
    return rules_in_force(project, ("MIN_MEMORY", 12000), ("MAX_UTIL", 20), ("MAX_CONCURRENT", 2))


@promise("000", BUSY, "如果服务器非常繁忙，可以修改 `run_gpu_aware_experiments.sh`: MIN_MEMORY=12000 # 提高到12GB (更保守)")
def test_a_busy_server_wants_more_free_memory(careful):
    assert careful[0]["min_free_memory"] == "12000MiB"


@promise("000", BUSY, "MAX_UTIL=20 # 降低到20% (避免与其他任务冲突)")
def test_a_busy_server_wants_idler_cards(careful):
    assert careful[0]["max_utilization"] == "20"


@promise("000", BUSY, "MAX_CONCURRENT=2 # 减少并发数")
def test_a_busy_server_wants_fewer_at_once(careful):
    """No more than two did run."""
    assert careful[0]["max_concurrent"] == "2" and "2 jobs of its batch run already" in careful[1]


# --- 常见问题 ------------------------------------------------------------------------------------------

Q1 = "Q1: 所有GPU都被占用怎么办？"


@promise("000", Q1, "**A**: 调度器会自动等待，每60秒检查一次。")
def test_a_card_that_becomes_free_is_noticed_well_within_a_minute(one_card):
    with strangers(one_card.berth, gpu0=("15GiB", 0)):
        job = one_card.submit("A")["A"]
        eventually(lambda: one_card.berth.why(job), "it waits")
        rules = json.loads(one_card.berth.cli("set", "--json", check=0).stdout)["rules"]
        usual = next(rule["default"] for rule in rules if rule["key"] == "sample_age_max")
        assert usual == "5s", "no look at the cards is older"
    assert one_card.berth.wait([job], timeout=60)[job]["state"] == "succeeded"


@promise("000", Q1, "默认最长等待1小时，如需延长：")
def test_an_experiment_waits_for_an_hour_by_default(one_card):
    with strangers(one_card.berth, gpu0=("15GiB", 0)):
        assert rules_of(one_card.berth, one_card.submit("A")["A"])["max_wait"] == "1h"


@promise("000", Q1, """修改 `gpu_scheduler.py`:
def wait_for_available_gpu(..., max_wait_time: int = 7200):  # 延长到2小时""")
def test_the_wait_can_be_made_longer_or_shorter(one_card):
    with strangers(one_card.berth, gpu0=("15GiB", 0)):
        assert rules_of(one_card.berth, one_card.submit("A", words=("--max-wait 7200",))["A"])["max_wait"] == "2h"
        job = one_card.submit("B", words=("--max-wait 1s",))["B"]
        ended = one_card.berth.wait([job])[job]
        assert ended["state"] == "cancelled" and "max_wait" in ended["message"]


@promise("000", "Q2: 如何优先运行某些实验？", "**A**: 修改 `.yaml` 文件中任务的顺序，队列按从上到下的顺序执行。")
def test_the_order_of_the_file_is_the_order_of_execution(one_card):
    for order in (["C", "A", "B"], ["B", "C", "A"]):
        one_card.write(*order)
        assert started(one_card.run("--redo")) == order


@promise("000", FAILED, "**A**: 当前版本不会自动重试。如果需要重试，可以：")
def test_nothing_is_tried_again_by_itself(project):
    project.fail("A")
    project.write("A")
    said = project.run(check=1)
    assert started(said) == ["A"] and said.endswith("0 of 1 succeeded\n")
    job = project.berth.jobs()[-1]
    assert (job["state"], job["attempts"], job["failure_class"]) == ("failed", 1, "exit")


@promise("000", FAILED, "检查日志找出失败原因")
def test_the_log_says_why_it_failed(project):
    project.fail("A")
    project.write("A")
    project.run(check=1)
    assert project.log("A").endswith("the loss of A is not a number\n")


@promise("000", FAILED, "删除对应的日志文件")
def test_an_experiment_whose_log_was_deleted_runs_again(project):
    project.write("A", "B")
    project.run()
    (project.folder / "logs" / "A.log").unlink()
    assert started(project.run()) == ["A"]
    assert "A is done" in project.log("A")


@promise("000", FAILED, "重新运行调度器（会跳过已完成的实验）")
def test_a_second_run_leaves_out_what_is_done(project):
    project.fail("B")
    project.write("A", "B", "C")
    project.run(check=1)
    (project.folder / "fail-B").unlink()
    again = project.run()
    assert "2 of 3 have succeeded before and are left out" in again
    assert started(again) == ["B"], "what failed runs again"
    third = project.run()
    assert "nothing is left to run" in third and started(third) == []
    (project.folder / "configs" / "x.yaml").write_text("dataset: other\n")
    assert started(project.run()) == ["A", "B", "C"], "another config makes them other experiments"


@promise("000", "Q4: 如何修改seed参数的传递方式？",
         "**A**: 如果 `test.py` 需要从config读取seed而不是命令行参数，需要修改 `gpu_scheduler.py` 的 `run_experiment()` "
         "函数，在运行前修改config文件。")
def test_a_seed_goes_to_the_command_line_or_into_a_copy_of_the_config(project):
    project.write(experiment("A", seed=42))
    project.run()
    assert "['--cfp', 'configs/x.yaml', '--algo', 'A', '--seed', '42']" in project.log("A")
    project.run("--redo", "--seed-in-config")
    assert re.search(r"\['--cfp', 'configs/temp/x_seed42_\w+.yaml', '--algo', 'A'\] config", project.log("A"))
    assert "'seed:', '42'" in project.log("A")
    assert (project.folder / "configs" / "x.yaml").read_text() == "dataset: cifar10 # small\nseed: 0\n"


# --- 性能评估 ------------------------------------------------------------------------------------------


@promise("000", VERSUS, "容错性 | ❌ 一个失败全部中断 | ✅ 独立任务，单个失败不影响")
@promise("000", SUMMARY, "✅ 容错和可扩展（任务独立，配置文件驱动）")
def test_one_failure_does_not_stop_the_others(one_card):
    one_card.fail("A")
    one_card.write("A", "B", "C")
    said = one_card.run(check=1)
    assert started(said) == ["A", "B", "C"] and said.endswith("2 of 3 succeeded\n")


@promise("000", VERSUS, "监控 | ⚠️ 需手动检查 | ✅ 自动记录状态日志")
def test_the_scheduler_keeps_a_log_of_states(fedwhat):
    log = (fedwhat.folder / "logs" / "scheduler_jobs_gamma_sensitivity.log").read_text()
    assert log.count("started on GPU") == 6 and log.count("ended normally") == 6
    assert "status: pending 0, running 0, completed 6, failed 0" in log


@promise("000", VERSUS, "扩展性 | ❌ 难以修改 | ✅ 配置文件驱动，易扩展")
def test_another_experiment_is_another_entry_of_the_file(project):
    project.write("A", "B")
    project.run()
    project.write("A", "B", experiment("C", algorithm="FedNew", lr=0.1, nesterov=True))
    assert started(project.run()) == ["C"]
    assert "'FedNew', '--lr', '0.1', '--nesterov']" in project.log("C")


# --- 文件清单 ------------------------------------------------------------------------------------------


@promise("000", "文件清单", """FedWhat/
├── gpu_scheduler.py                    # 核心调度器
├── run_gpu_aware_experiments.sh        # Bash包装脚本
├── jobs_multi_seed.yaml                # 多种子实验配置
├── jobs_gamma_sensitivity.yaml         # Gamma敏感性配置
├── jobs_lambda_max_sensitivity.yaml    # Lambda_max敏感性配置""")
def test_the_files_are_there_and_are_what_they_are_called(fedwhat):
    """The scheduler is a program that is installed, not a file among them."""
    assert (fedwhat.folder / SCRIPT).exists()
    assert (fedwhat.berth.bin_dir / "gpu_scheduler").resolve().name == "berth"
    for name, count in (("multi_seed", 24), ("gamma_sensitivity", 6), ("lambda_max_sensitivity", 6)):
        shown = json.loads(fedwhat.shell(f"berth check --json jobs_{name}.yaml"))
        assert shown["files"]["dialect"] == "fedwhat" and len(shown["jobs"]) == count
    assert "only for files" in fedwhat.shell(f"gpu_scheduler --job-file {SCRIPT} --mode single", check=None)


@promise("000", "文件清单", "└── scripts/ └── aggregate_multi_seed_results.py # 结果聚合脚本")
def test_results_are_aggregated_over_seeds(fedwhat):
    said = fedwhat.shell("python scripts/aggregate_multi_seed_results.py")
    rows = [line.split() for line in said.splitlines() if "±" in line and "mean" not in line]
    assert len(rows) == 8, said
    logs = finished_logs(fedwhat, "multi_seed")
    best = [max(map(float, re.findall(r"accuracy=(\S+)", p.read_text()))) for p in logs
            if p.name.startswith("cifar10_FedAvg_")]
    row = next(r for r in rows if r[:2] == ["FedAvg", "configs/cifar10.yaml"])
    mean = float(row[row.index("±") - 1])
    assert len(best) == 3 and abs(mean - sum(best) / 3) < 1e-4, "mean of the three seeds"
    assert "latex" not in said and "\\begin{tabular}" in fedwhat.shell(
        "python scripts/aggregate_multi_seed_results.py --format latex")


# --- 进阶配置 ------------------------------------------------------------------------------------------


def chosen(project, strategy, count):
    """The cards that experiments get under a strategy, in the order in which they start."""
    names = [f"E{i}" for i in range(count)]
    project.hold(*names)
    jobs = project.submit(*names, words=(f"--rule strategy={strategy}",))
    return [runs_on(project.berth, job)[0] for job in jobs.values()]


@promise("000", STRATEGY, "修改 `find_available_gpu()` 函数可以实现： - 优先选择显存最多的GPU")
@promise("000", STRATEGY, """示例（优先选择显存最多）:
def find_available_gpu(min_free_memory_mb: int = 8000, max_utilization: int = 30):
    gpu_info = get_gpu_memory_usage()
    # Sort by free memory (descending)
    valid_gpus = [
        gpu for gpu in gpu_info
        if (gpu['memory_total'] - gpu['memory_used']) >= min_free_memory_mb
        and gpu['utilization'] <= max_utilization
    ]
    if not valid_gpus:
        return -1
    # Return GPU with most free memory
    best_gpu = max(valid_gpus, key=lambda g: g['memory_total'] - g['memory_used'])
    return best_gpu['gpu_id']""")
def test_the_card_with_the_most_free_memory_first(project):
    with strangers(project.berth, gpu0=("4GiB", 0), gpu1=("1GiB", 90), gpu2=("2GiB", 0), gpu3=("3GiB", 0)):
        assert chosen(project, "most_free", 3) == [2, 3, 0]


@promise("000", STRATEGY, "优先选择利用率最低的GPU")
def test_the_card_with_the_least_load_first(project):
    with strangers(project.berth, gpu0=("1GiB", 20), gpu1=("1GiB", 15), gpu2=("1GiB", 25), gpu3=("4GiB", 5)):
        assert chosen(project, "least_utilized", 3) == [3, 1, 0]


@promise("000", STRATEGY, "轮询策略避免总是选择GPU0")
def test_one_card_after_the_other(project):
    cards = []
    for name in ("A", "B", "C"):
        eventually(lambda: all(g["state"] == "free" for g in project.berth.api("GET", "/api/gpus")["gpus"]),
                   "all cards are free")
        project.write(name)
        project.run("--rule strategy=round_robin")
        cards += project.berth.jobs()[-1]["gpu_indices"]
    assert [(card - cards[0]) % 4 for card in cards] == [0, 1, 2], "each has its turn"


# --- 总结 ----------------------------------------------------------------------------------------------


@promise("000", SUMMARY, "适合在**多用户共享服务器**上运行大规模实验。")
def test_a_large_file_runs_on_what_other_users_leave(project):
    """A thousand experiments, and other people at work on three of the four cards: the first runs on the fourth, the
    next one where somebody leaves, all the rest wait, in order."""
    berth = project.berth
    before, user = as_another_user()
    names = [f"E{i}" for i in range(1000)]
    project.hold("E0", "E1")
    with strangers(berth, before, gpu0=("15GiB", 0), gpu2=("15GiB", 0)) as held:
        with strangers(berth, before, gpu1=("12GiB", 90)):
            seen = {gpu: card(berth, gpu)["processes"] for gpu in (0, 1, 2)}
            if user is not None:
                owners = {os.stat(f"/proc/{p['pid']}").st_uid for ps in seen.values() for p in ps}
                assert owners == {user} != {os.geteuid()}
            jobs = project.submit(*names)
            assert list(jobs) == names
            assert runs_on(berth, jobs["E0"]) == [3]
            reason = eventually(lambda: berth.why(jobs["E1"]), "why it waits")
            assert "GPU" in reason and not card(berth, 1)["claims"]
            status = json.loads(berth.cli("status", "--json", check=0).stdout)
            assert (status["counts"]["running"], status["counts"]["queued"]) == (1, 999)
        assert runs_on(berth, jobs["E1"]) == [1]
        assert all(process.poll() is None for process in held.values()), "nobody was disturbed"
        assert not card(berth, 0)["claims"] and not card(berth, 2)["claims"]


ELSEWHERE = []
SILENT = [
    # They only lead to what follows.
    "这个智能调度系统专为**共享GPU服务器**设计，能够：",
    "这个GPU调度系统通过**动态资源检测**和**智能队列管理**，确保：",
    # The head of a table.
    "| 方面 | 传统Bash | GPU调度器 |",
]
