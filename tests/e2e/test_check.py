"""berth check: job files are judged without a daemon, and editors judge them alike."""

import json
import os
import pty
import re
import subprocess

import pytest

from berthlib import BIN, PATIENCE, REPO

GOLDEN = REPO / "tests" / "golden" / "jobfile"
SCHEMA = REPO / "docs" / "formats" / "jobfile.schema.json"
MANUAL = REPO / "docs" / "formats" / "jobfile.md"


@pytest.fixture
def check(tmp_path):
    """Runs `berth check` in an empty folder, and sees to it that no instance was made."""
    home = tmp_path / "home"
    here = tmp_path / "here"
    here.mkdir()

    def run(*words, files=None, stdin=b"", env=None):
        for name, text in (files or {}).items():
            (here / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        done = subprocess.run(
            [str(BIN / "berth"), "check", *map(str, words)],
            cwd=here,
            env={
                "PATH": os.environ.get("PATH", ""),
                "HOME": str(home),
                "BERTH_DIR": str(home / "b"),
                **{k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")},
                **(env or {}),
            },
            input=stdin,
            capture_output=True,
            timeout=4 * PATIENCE,
        )
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        assert not home.exists(), "it needs no daemon"
        return done

    run.dir = here
    return run


def sweep(lr=2, seed=3):
    return (
        "version: 1\nqueues: {night: 1}\njobs:\n  - name: train\n"
        f"    matrix: {{lr: {list(range(lr))}, seed: {list(range(seed))}}}\n"
        "    run: python train.py --lr {lr} --seed {seed}\n    gpu_memory: 8GiB\n"
        "  - {name: report, after: train, gpus: 0, queue: night, run: [[echo, all done]]}\n"
    )


@pytest.mark.smoke
def test_shows_the_jobs_it_would_make(check):
    done = check("sweep.yaml", files={"sweep.yaml": sweep()})
    assert done.returncode == 0 and done.stderr == "", done
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["NAME", "QUEUE", "GPUS", "MEMORY", "AFTER", "COMMAND"]
    assert re.fullmatch(
        r"train-0-0 +default +1 +8 GiB +python train.py --lr 0 --seed 0", lines[1]
    )
    assert re.fullmatch(
        r"report +night +0 +train-0-0, train-0-1, train-0-2, … \(6\) +echo 'all done'", lines[7]
    )
    assert lines[-1] == "7 jobs, 2 queues: ok"
    one = check("-", stdin=b"version: 1\njobs: [{run: 'true'}]")
    assert one.stdout.endswith("1 job, 1 queue: ok\n") and " whole " in one.stdout


def test_json_is_a_job_file_again(check):
    done = check("--json", "sweep.yaml", files={"sweep.yaml": sweep()})
    assert done.returncode == 0 and done.stderr == "", done
    told = json.loads(done.stdout)
    assert (told["version"], told["name"], told["queues"]) == (1, "sweep", {"night": 1})
    assert [job["name"] for job in told["jobs"]][-2:] == ["train-1-2", "report"]
    train, report = told["jobs"][0], told["jobs"][-1]
    assert train["run"] == "python train.py --lr 0 --seed 0"
    assert train["gpus"] == 1 and train["gpu_memory"] == 8 << 30
    assert train["cwd"] == str(check.dir) and train["grace"] == 10 and train["env"] == {}
    assert report["run"] == [["echo", "all done"]] and len(report["after"]) == 6
    again = check("--json", "-", stdin=done.stdout.encode())
    assert again.stdout == done.stdout
    both = check("--json", "sweep.yaml", "two.yaml", files={"two.yaml": sweep(1, 1)})
    jobs = json.loads(both.stdout)["jobs"]
    assert [job["file"] for job in jobs] == ["sweep.yaml"] * 7 + ["two.yaml"] * 2


def test_tells_all_mistakes_of_all_files(check):
    files = {
        "a.yaml": "version: 1\njobs:\n  - {run: x, gpu_mem: 8GiB}\n  - {run: x, time: soon}\n",
        "good.yaml": sweep(),
        "z.yaml": "version: 1\njobs:\n  - {run: x, after: nobody}\n",
    }
    done = check("z.yaml", "good.yaml", "missing.yaml", "a.yaml", files=files)
    assert done.returncode == 1 and done.stdout == "", done
    places = re.findall(r"^(\S+\.yaml:\d+:\d+|berth: .*'missing.yaml')", done.stderr, re.M)
    assert places[0] == "z.yaml:3:21" and "missing" in places[1], places
    assert places[2:] == ["a.yaml:3:14", "a.yaml:4:20"], places
    assert "did you mean 'gpu_memory'?" in done.stderr
    assert "  4 |   - {run: x, time: soon}\n    |                    ^\n" in done.stderr
    assert done.stderr.endswith("berth: 4 mistakes in 3 of 4 files\n"), done.stderr
    assert check("--json", "a.yaml").stdout == ""


def test_counts_mistakes_beyond_fifty(check):
    many = "version: 1\njobs:\n" + "".join(f"  - {{run: x, wrong{i}: 1}}\n" for i in range(70))
    done = check("many.yaml", files={"many.yaml": many})
    assert done.returncode == 1
    assert len(re.findall(r"^many.yaml:", done.stderr, re.M)) == 50
    assert "\n… and 20 more\n" in done.stderr
    assert done.stderr.endswith("berth: 'many.yaml' has 70 mistakes\n")


def test_what_is_no_job_file_at_all(check):
    (check.dir / "folder").mkdir()
    with open(check.dir / "huge.yaml", "wb") as file:
        file.truncate((128 << 20) + 1)
    for words, says in [
        (["folder"], "'folder' is a directory; name a job file in it"),
        (["none.yaml"], "cannot read the job file 'none.yaml': No such file"),
        (["huge.yaml"], "huge.yaml:1:1: this file is larger than 128 MiB; split it"),
        (["-", "-"], "standard input can be read only once"),
        (["-"], "standard input:1:1: "),
    ]:
        done = check(*words)
        assert done.returncode == 1 and done.stdout == "" and says in done.stderr, done
    for words in [[], ["--schema", "x.yaml"], ["--nonsense"]]:
        done = check(*words)
        assert done.returncode == 2 and "try: berth check --help" in done.stderr, done
    assert "berth check sweep.yaml" in check("--help").stdout


def test_nothing_in_a_file_reaches_the_terminal_raw(check):
    text = b'version: 1\n"\\e[31mred\\x9b": 1\njobs: [{run: "x \\e]0;t\\a", name: "a\xc2\x9b\xff"}]\n'
    done = check("f.yaml", files={"f.yaml": text})
    assert done.returncode == 1 and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stderr)
    done = check("g.yaml", files={"g.yaml": 'version: 1\njobs: [{run: "x \\e]0;t\\a"}]\n'})
    assert done.returncode == 0 and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stdout)


def test_warns_about_commands_that_choose_their_gpus(check):
    own = "version: 1\njobs: [{{run: CUDA_VISIBLE_DEVICES=1 python x.py, gpus: {}}}]\n"
    done = check("own.yaml", files={"own.yaml": own.format(1)})
    assert done.returncode == 0 and done.stdout.endswith("1 job, 1 queue: ok\n")
    assert re.fullmatch(
        r"berth: warning: own.yaml:2:14: this sets CUDA_VISIBLE_DEVICES itself, .*\n", done.stderr
    )
    assert check("own.yaml", files={"own.yaml": own.format(0)}).stderr == ""


def test_the_table_fits_the_terminal(check):
    long = "version: 1\njobs:\n  - {name: %s, run: %s}\n" % ("n" * 100, "word " * 50)
    (check.dir / "long.yaml").write_text(long)
    parent, child = pty.openpty()
    done = subprocess.Popen(
        [str(BIN / "berth"), "check", "long.yaml"],
        cwd=check.dir,
        env={"COLUMNS": "60", "TERM": "xterm", "NO_COLOR": "1", "HOME": "/"},
        stdout=child,
    )
    os.close(child)
    shown = b""
    while True:
        try:
            piece = os.read(parent, 65536)
        except OSError:  # how a terminal says that nobody writes to it any longer
            break
        if not piece:
            break
        shown += piece
    os.close(parent)
    assert done.wait(PATIENCE) == 0
    lines = shown.decode().split("\r\n")
    assert len(lines) == 4 and "…" in lines[1], lines
    assert max(map(len, lines)) == 60, lines


def test_a_million_jobs_are_checked_lean_and_fast(check):
    numbers = ", ".join(map(str, range(1000)))
    (check.dir / "large.yaml").write_text(
        f"version: 1\njobs:\n  - matrix: {{lr: [{numbers}], seed: [{numbers}]}}\n"
        "    run: python train.py --lr {lr} --seed {seed} --out runs/{lr}/{seed}\n"
    )
    with open(check.dir / "out", "wb") as out:
        pid = os.posix_spawn(
            BIN / "berth",
            ["berth", "check", str(check.dir / "large.yaml")],
            {"HOME": "/", "PATH": ""},
            file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)],
        )
        _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    lines = (check.dir / "out").read_text().splitlines()
    assert lines[-2] == "… and 999000 more; --json lists all of them"
    assert lines[-1] == "1000000 jobs, 1 queue: ok" and len(lines) == 1003
    assert usage.ru_maxrss < 1_500_000, "kilobytes"
    # Far from what it takes: an unoptimised program on a busy machine must pass.
    assert usage.ru_utime < 2 * PATIENCE


# --- the manual and the schema --------------------------------------------------------------------


def manual_examples():
    return re.findall(r"^```yaml\n(.*?)^```$", MANUAL.read_text(), re.M | re.S)


def test_every_example_of_the_manual_is_accepted(check):
    examples = manual_examples()
    assert len(examples) >= 5
    (check.dir / "experiments").mkdir()  # where one of them runs
    for text in examples:
        done = check("-", stdin=text.encode())
        assert done.returncode == 0 and done.stderr == "", f"{text}\n{done.stderr}"
    # What is said of sizes and durations in tables and texts.
    sizes, durations = (
        MANUAL.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
        for title in ("Sizes", "Durations")
    )
    good = re.findall(r"`(\d[^`]*)`", sizes)
    assert len(good) >= 4
    times = re.findall(r"`([\dP][^`]*)`", durations)
    times.remove("01:30")
    assert len(times) >= 15
    jobs = [f"  - {{run: x, gpu_memory: '{size}'}}\n" for size in good]
    jobs += [f"  - {{run: x, time: '{time}'}}\n" for time in times]
    done = check("-", stdin=("version: 1\njobs:\n" + "".join(jobs)).encode())
    assert done.returncode == 0, done.stderr


def test_the_schema_is_printed(check):
    done = check("--schema")
    assert done.returncode == 0 and done.stdout == SCHEMA.read_text()


def test_examples_tell_editors_where_the_schema_is():
    for file in sorted((REPO / "examples").glob("*.yaml")):
        told = re.match(r"# yaml-language-server: \$schema=(\S+)\n", file.read_text())
        assert told and (file.parent / told[1]).resolve() == SCHEMA, file


def test_schema_and_parser_agree(check):
    jsonschema = pytest.importorskip("jsonschema")
    yaml = pytest.importorskip("yaml")

    class Loader(yaml.SafeLoader):
        """YAML 1.2 as editors read it: no dates, no base 60, no yes and no."""

    Loader.yaml_implicit_resolvers = {}
    for tag, pattern, first in [
        ("bool", r"true|false|True|False|TRUE|FALSE", "tTfF"),
        ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
        ("int", r"[-+]?[0-9]+", "-+0123456789"),
        ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ]:
        Loader.add_implicit_resolver(
            f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(first)
        )
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)

    def mistakes(text):
        return [error.message for error in validator.iter_errors(yaml.load(text, Loader))]

    accepted = [file.read_text() for file in (REPO / "examples").glob("*.yaml")]
    accepted += manual_examples()
    for folder in sorted(GOLDEN.iterdir()):
        # PyYAML takes no tab before a value, though YAML has it.
        if (folder / "expected.json").exists() and folder.name != "tabs_in_values":
            accepted.append((folder / "input.yaml").read_bytes().decode(errors="replace"))
    assert len(accepted) >= 20
    for text in accepted:
        assert mistakes(text) == [], text

    refused = [
        "jobs: [{run: x}]",
        "version: 1",
        "version: 2\njobs: [{run: x}]",
        "version: 1\njobs: []",
        "version: 1\njobs: [{name: x}]",
        "version: 1\njobs: [{run: x, gpu_mem: 8GiB}]",
        "version: 1\njobs: [{run: x, gpu_memory: lots}]",
        "version: 1\njobs: [{run: x, gpu_memory: 8GB/s}]",
        "version: 1\njobs: [{run: x, time: '01:30'}]",
        "version: 1\njobs: [{run: x, gpus: many}]",
        "version: 1\njobs: [{run: x, retries: -1}]",
        "version: 1\njobs: [{run: x, linger: maybe}]",
        "version: 1\njobs: [{run: x, env: [A=1]}]",
        "version: 1\njobs: [{run: x, matrix: {}}]",
        "version: 1\njobs: [{run: x, matrix: {a: 1}}]",
        "version: 1\nrules: {max_conc: 1}\njobs: [{run: x}]",
        "version: 1\nqueues: {'a b': 1}\njobs: [{run: x}]",
        "version: 1\nqueues: {q: {limits: 1}}\njobs: [{run: x}]",
    ]
    for text in refused:
        assert mistakes(text) != [], text
        assert check("-", stdin=text.encode()).returncode == 1, text

    # Every key has a description for the editor to show.
    def keys(node):
        for name, value in node.get("properties", {}).items():
            yield name, value
        for value in node.get("$defs", {}).values():
            yield from keys(value)

    found = [(name, value) for name, value in keys(schema) if name != "include"]
    assert len(found) == len(schema["properties"]) + sum(
        len(schema["$defs"][part]["properties"]) for part in ("job", "own_rules", "rules", "files")
    )
    assert all(value.get("description") for _, value in found)
