"""Command files and their configuration, run as their users run them."""

import json
import re
import shlex
import subprocess
import time

import pytest

from berthlib import PATIENCE, eventually

# What a task does: says that it has begun and on which card, then waits until it may end.
TASK = """\
echo "$1 $BERTH_GPU_INDICES" >> "$2/begun"
until [ -e "$2/go-$1" ]; do sleep 0.05; done
echo "$1" >> "$2/ended"
"""


class Project:
    """The directory above the scheduler's, with the scripts of the tasks."""

    def __init__(self, path, scheduler="scripts"):
        self.path = path
        self.scheduler = path / scheduler
        self.scheduler.mkdir(parents=True)
        (path / "task.sh").write_text(TASK)

    def write(self, name, text):
        file = self.scheduler / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return file

    def task(self, name):
        return f"bash task.sh {name} {shlex.quote(str(self.path))}"

    def lines(self, name):
        file = self.path / name
        return file.read_text().split("\n")[:-1] if file.exists() else []

    def cards(self):
        """The tasks that have begun: {name: card}."""
        return dict(line.split(" ") for line in self.lines("begun"))

    def begun(self, *names):
        eventually(lambda: set(names) <= set(self.cards()), f"{names} have begun")

    def let_go(self, *names):
        for name in names:
            (self.path / f"go-{name}").touch()


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")


def cards(make_instance, count):
    instance = make_instance(gpus=f"sim:{count}x24GiB")
    instance.start()
    return instance


def call(berth, program, *words, code=0, **run):
    done = subprocess.run(
        [str(berth.bin_dir / program), *map(str, words)], env=berth.environment(),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, **run)
    assert done.returncode == code, done
    return done


def submit(berth, file, *words):
    """The ids of its jobs by name."""
    done = berth.cli("run", "--detach", "--json", file, *words, check=0)
    first, last = json.loads(done.stdout)["ids"]
    return {berth.show(i)["job"]["name"]: i for i in range(first, last + 1)}


def states(berth, ids):
    return {name: berth.show(i)["job"]["state"] for name, i in ids.items()}


def test_queues_are_serial_inside_and_parallel_between(gpu_berth, project):
    file = project.write("command.txt", f"""\
# 任务1：队列1
1 #队列ID
"echo first >> order"
"{project.task('a')}"
20 #剩余显存

# standard
{project.task('c')}
2,20

1
{project.task('b')}
20
""")
    ids = submit(gpu_berth, file)
    assert set(ids) == {"q1-1", "q2-1", "q1-2"}
    project.begun("a", "c")
    assert project.lines("order") == ["first"], "commands run in order, in the work directory"
    assert states(gpu_berth, ids)["q1-2"] == "queued"
    assert sorted(project.cards().values()) == ["0", "1"]
    project.let_go("c")
    gpu_berth.wait([ids["q2-1"]])
    assert states(gpu_berth, ids)["q1-2"] == "queued", "a card is free, its queue is not"
    project.let_go("a", "b")
    ended = gpu_berth.wait(ids.values())
    assert {job["state"] for job in ended.values()} == {"succeeded"}
    assert project.lines("ended") == ["c", "a", "b"]
    job = gpu_berth.show(ids["q1-1"])["job"]
    assert re.fullmatch("command-[0-9a-f]{4}/1", job["queue"]) and job["retries"] == 100


def test_one_failed_command_ends_the_task(gpu_berth, project):
    file = project.write("command.txt", "false\ntouch reached\n1,20\n")
    project.write("config.yaml", "retry_config: {max_retry_before_backoff: 1}\n")
    ids = submit(gpu_berth, file)
    shown = eventually(
        lambda: (s := gpu_berth.show(ids["q1-1"])) and len(s["attempts"]) == 2 and
        s["attempts"][-1]["state"] == "failed" and s, "it failed, and failed again")
    assert shown["job"]["state"] == "queued", "it waits for its time"
    assert not (project.path / "reached").exists()


def test_the_last_cards_are_left_to_others(gpu_berth, project):
    project.write("config.yaml", "gpu_left: 1\nuse_all_gpus: true\n")
    file = project.write(
        "command.txt", f"{project.task('a')}\n1,4\n\n{project.task('b')}\n2,4\n")
    ids = submit(gpu_berth, file)
    eventually(project.cards, "one has begun")
    [(first, card)] = project.cards().items()
    assert card == "0"
    [waiting] = [i for name, i in ids.items() if states(gpu_berth, ids)[name] == "queued"]
    eventually(lambda: "gpu_left" in gpu_berth.why(waiting), "it says what it waits for")
    project.let_go("a", "b")
    gpu_berth.wait(ids.values())
    assert set(project.cards().values()) == {"0"} and len(project.cards()) == 2


@pytest.mark.parametrize("config, allowed", [
    ("max_gpu: 2\n", 2),
    ("gpu_left: 4\nmin_gpu: 1\n", 1),
    ("gpu_left: 1\nmin_gpu: 1\nmax_gpu: 3\n", 3),
    ("compete_gpus: [1, 3]\nuse_all_gpus: false\n", 2),
])
def test_the_quota_follows_the_formula(make_instance, project, config, allowed):
    berth = cards(make_instance, 4)
    project.write("config.yaml", config)
    names = ["a", "b", "c", "d"]
    file = project.write(
        "command.txt", "\n\n".join(f"{project.task(n)}\n{i},4" for i, n in enumerate(names)))
    ids = submit(berth, file)
    eventually(lambda: len(project.cards()) == allowed, "as many as may have begun")
    waiting = [i for name, i in ids.items() if states(berth, ids)[name] == "queued"]
    assert len(waiting) == 4 - allowed
    for job in waiting:
        eventually(lambda job=job: berth.why(job), "it says why it waits")
    assert len(project.cards()) == allowed
    if "compete_gpus" in config:
        assert set(project.cards().values()) == {"1", "3"}
    project.let_go(*names)
    assert {job["state"] for job in berth.wait(ids.values()).values()} == {"succeeded"}


def test_a_retry_has_a_new_mark(gpu_berth, project):
    """Three failures, then success: four attempts, four marks."""
    project.write("config.yaml", "work_dir: work\nretry_config: {max_retry_before_backoff: 9}\n")
    (project.scheduler / "work").mkdir()
    file = project.write("command_bk.txt", """\
1 #队列1
"echo {uni_id} >> {work_dir}/marks"
"test $(wc -l < marks) -eq 4"
20 #显存需求
""")
    ids = submit(gpu_berth, file)
    [job] = gpu_berth.wait(ids.values()).values()
    assert job["state"] == "succeeded"
    marks = (project.scheduler / "work" / "marks").read_text().split()
    assert len(marks) == 4 and len(set(marks)) == 4
    assert not any("{" in mark for mark in marks)


def test_the_largest_of_several_gpus_goes_first(make_instance, project):
    berth = cards(make_instance, 3)
    file = project.write("command_gpus.txt", "\n\n".join(
        f"{queue}\n{project.task(name)}\n{gpus} #GPUs\n4"
        for queue, name, gpus in ((1, "a", 1), (2, "b", 2), (3, "c", 3))))
    ids = submit(berth, file)
    project.begun("c")
    assert project.cards() == {"c": "0,1,2"}
    project.let_go("c")
    project.begun("a", "b")
    project.let_go("a", "b")
    berth.wait(ids.values())


def test_editing_the_file_changes_nothing_that_is_queued(gpu_berth, project):
    file = project.write(
        "command.txt", f"{project.task('a')}\n1,4\n\n{project.task('b')}\n1,4\n")
    ids = submit(gpu_berth, file)
    project.begun("a")
    file.write_text("echo edited > edited\n1,4\n")
    project.let_go("a", "b")
    gpu_berth.wait(ids.values())
    assert set(project.cards()) == {"a", "b"}
    assert not (project.path / "edited").exists()
    again = submit(gpu_berth, file)
    gpu_berth.wait(again.values())
    assert (project.path / "edited").exists()


# --- mistakes -------------------------------------------------------------------------------------


def test_mistakes_have_places_and_nothing_is_submitted(berth, project):
    file = project.write("command.txt", "1\npython a.py\n\npython b.py\n2，20\n")
    project.write("config.yaml", "check_time: 5\ngpu_lft: 1\n")
    for command in ("check", "run"):
        said = berth.cli(command, file, check=1).stderr
        assert f"{file}:2:1: the memory is missing" in said
        assert f"{file}:5:1: '2，20' is not a number here" in said
        assert f"{project.scheduler}/config.yaml:2:1: unknown key 'gpu_lft'; did you mean" in said
        assert "2 | gpu_lft: 1" in said, "the line itself is shown"
    assert berth.jobs() == []


def test_a_block_that_reads_both_ways_is_refused_until_told(berth, project):
    file = project.write("tasks.txt", "1\npython a.py\n2\n20\n")
    said = berth.cli("check", file, check=1).stderr
    assert f"{file}:3:1: this block reads both ways" in said and "--mode multi" in said
    shown = json.loads(berth.cli("check", "--json", "--mode", "multi", file, check=0).stdout)
    assert shown["jobs"][0]["gpus"] == 2 and shown["jobs"][0]["gpu_memory"] == 20 * 1024**3
    said = berth.cli("check", "--mode", "single", file, check=1).stderr
    assert "a line of digits is never one" in said


def test_it_comes_from_standard_input_too(berth, project):
    with open(project.write("x", "1\npython a.py\n20\n"), encoding="utf-8") as text:
        shown = berth.cli("check", "--json", "-", stdin=text, check=0, cwd=project.scheduler)
    assert json.loads(shown.stdout)["jobs"][0]["cwd"] == str(project.path)


# --- under the names people call -------------------------------------------------------------------


@pytest.fixture
def layout(project):
    """command/ and config/ below the scheduler's directory."""
    for number, name in enumerate(("command_gpu", "command_gpu_1")):
        project.write(f"command/{name}.txt", f"# 队列ID\n{number}\necho {name} >> ran\n# GB\n2\n")
    project.write("command/command_gpus.txt", "1\necho $BERTH_GPU_INDICES >> ran\n2\n2\n")
    project.write("config/gpu_manage.yaml",
                  "gpu_command_file: command/command_gpu.txt\n"
                  "gpus_command_file: command/command_gpus.txt\nwork_dir: null\n")
    return project


def test_cards_that_are_not_there_are_told_of(gpu_berth, project):
    project.write("command.txt", "1\ntrue\n1\n")
    project.write("config.yaml", "compete_gpus: [0, 99]\nuse_all_gpus: false\n")
    done = call(gpu_berth, "main_gpu", "--command-file", "command.txt", cwd=project.scheduler)
    assert "the rule gpus names 99, which is not there" in done.stderr


def test_main_gpu_runs_a_command_file(gpu_berth, layout):
    done = call(gpu_berth, "main_gpu", "--command-file", "command/command_gpu.txt",
                cwd=layout.scheduler)
    assert "1 of 1 succeeded" in done.stdout
    assert layout.lines("ran") == ["command_gpu"]
    assert re.fullmatch("command_gpu-[0-9a-f]{4}/0", gpu_berth.jobs()[0]["queue"])


def test_main_gpus_runs_a_command_file(gpu_berth, layout):
    call(gpu_berth, "main_gpus", "--command-file", layout.scheduler / "command/command_gpus.txt",
         "--config-file", layout.scheduler / "config/gpu_manage.yaml")
    assert layout.lines("ran") == ["0,1"]


def test_the_configuration_names_the_command_file(gpu_berth, layout):
    call(gpu_berth, "main_gpu", "--config-file", "config/gpu_manage.yaml", cwd=layout.scheduler)
    call(gpu_berth, "main_gpu", "--config-file", "config/gpu_manage.yaml", "--config-index", "1",
         cwd=layout.scheduler)
    call(gpu_berth, "main_gpus", "--config-file", "config/gpu_manage.yaml", cwd=layout.scheduler)
    gpu_berth.cli("run", "--mode", "multi", layout.scheduler / "config/gpu_manage.yaml", check=0)
    assert layout.lines("ran") == ["command_gpu", "command_gpu_1", "0,1", "0,1"]


def test_without_a_file_it_says_what_to_give(berth):
    for program in ("main_gpu", "main_gpus"):
        said = call(berth, program, code=2).stderr
        assert "--command-file" in said and "--config-file" in said


# --- what a command leaves running


def stays_running(berth, ids, seconds=1):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert set(states(berth, ids).values()) == {"running"}
        time.sleep(0.05)


def test_what_a_command_puts_into_the_background_belongs_to_its_task(make_instance, project):
    berth = cards(make_instance, 1)
    file = project.write(
        "command.txt", f'nohup bash -c "{project.task("a")}" > /dev/null 2>&1 &\n1,4\n')
    ids = submit(berth, file)
    project.begun("a")
    stays_running(berth, ids)
    project.let_go("a")
    [ended] = berth.wait(ids.values()).values()
    assert (ended["state"], ended["message"]) == ("succeeded", None)
    assert project.lines("ended") == ["a"]


def test_a_task_that_waits_for_its_background_can_be_killed(make_instance, project):
    berth = cards(make_instance, 1)
    ids = submit(berth, project.write("command.txt", f"{project.task('a')} &\n1,4\n"))
    project.begun("a")
    berth.kill_jobs(list(ids.values()), grace_ms=0)
    assert berth.wait_one(ids["q1-1"])["state"] == "killed"
    assert not project.lines("ended")


def test_what_a_failed_task_leaves_running_is_ended(make_instance, project):
    berth = cards(make_instance, 1)
    ids = submit(berth, project.write(
        "command.txt", f"{project.task('a')} & until [ -e begun ]; do sleep 0.02; done; [ -e again ] "
        "|| { touch again; exit 3; }; touch go-a\n1,4\n"))
    assert berth.wait_one(ids["q1-1"])["state"] == "succeeded"
    assert len(project.lines("begun")) == 2 and project.lines("ended") == ["a"], "the first one was ended"


# Tells of a process in uni_id.json, under the mark that is in the environment.
TELL = """\
import fcntl, json, os, sys
path = os.environ["BERTH_STATE_FILE"]
with open(path + ".lock", "a") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    known = json.load(open(path)) if os.path.exists(path) else {}
    known.setdefault(os.environ["BERTH_UNI_ID"], {}).update(json.loads(sys.argv[1]))
    with open(path + ".mine", "w") as file:
        json.dump(known, file)
    os.rename(path + ".mine", path)
"""


def test_a_pipeline_that_only_its_entry_tells_of_lasts(make_instance, project):
    """Nothing in the file speaks of uni_id: the pipeline knows it from its environment."""
    berth = cards(make_instance, 1)
    (project.path / "tell.py").write_text(TELL)
    (project.path / "pipe.sh").write_text(
        '( /usr/bin/python3 tell.py "{\\"pid\\": $BASHPID, \\"state\\": \\"running\\"}"\n'
        f"  {project.task('a')}\n"
        "  /usr/bin/python3 tell.py '{\"state\": \"normal_exit\"}' ) > /dev/null 2>&1 < /dev/null &\n")
    ids = submit(berth, project.write("command.txt", "1\nbash {work_dir}/pipe.sh\n4\n"))
    project.begun("a")
    stays_running(berth, ids)
    project.let_go("a")
    ended = berth.wait_one(ids["q1-1"])
    assert (ended["state"], ended["message"]) == ("succeeded", None)
    assert project.lines("ended") == ["a"]


@pytest.fixture
def server(tmp_path):
    """A process that has nothing to do with berth, as a server that was started long ago."""
    held = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield held
    held.kill()
    held.wait()


def test_a_task_lasts_as_long_as_the_process_it_names(make_instance, project, server):
    berth = cards(make_instance, 1)
    (project.path / "tell.py").write_text(TELL)
    ids = submit(berth, project.write(
        "command.txt",
        f"/usr/bin/python3 tell.py '{{\"pid\": {server.pid}, \"state\": \"running\"}}'\ntouch over\n1,4\n"))
    eventually((project.path / "over").exists, "the last command has run")
    stays_running(berth, ids)
    berth.kill9()  # the daemon, which comes back
    berth.start()
    stays_running(berth, ids)
    server.kill()
    assert berth.wait_one(ids["q1-1"])["state"] == "succeeded"
    [entry] = json.loads((project.scheduler / "logs/uni_id.json").read_text()).values()
    assert entry["pid"] == server.pid


def test_killing_a_task_ends_the_process_it_names(make_instance, project, server):
    berth = cards(make_instance, 1)
    (project.path / "tell.py").write_text(TELL)
    ids = submit(berth, project.write(
        "command.txt", f"/usr/bin/python3 tell.py '{{\"pid\": {server.pid}}}'\ntouch over\n1,4\n"))
    eventually((project.path / "over").exists, "the last command has run")
    berth.kill_jobs(list(ids.values()))
    assert berth.wait_one(ids["q1-1"])["state"] == "killed"
    assert server.wait(PATIENCE) == -15
