#!/usr/bin/python3
"""Runs the fuzz targets of a build.

    fuzz.py BUILD [--seconds N | --runs N | --same] [--jobs N] [--junit FILE] [NAME…]

Each target runs for 30 s (--seconds) or for so many executions (--runs), from the seeds in
tests/fuzz/corpus/NAME and from what earlier runs found, kept in BUILD/corpus/NAME, with the words of
tests/fuzz/NAME.dict. With --same it tries the same inputs every time: a number of them that takes
some twenty seconds, from the seeds alone. An input that breaks something is kept in BUILD/crashes,
and how to see it again is printed. Ends with 1 if anything broke.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET

REPO = pathlib.Path(__file__).resolve().parents[2]
FUZZ = REPO / "tests" / "fuzz"
LENGTH_MAX = {"units": 64, "job_file": 2048, "launch": 1024, "http": 2048,
              "fedwhat": 2048, "gpu_manager": 2048}
LENGTH_MAX_OTHER = 1024
# How many inputs --same tries.
SAME_RUNS = {"script": 15_000, "http": 20_000, "job_file": 30_000, "fedwhat": 40_000, "command_config": 40_000,
             "commands": 40_000, "gpu_manager": 60_000, "results": 60_000, "launch": 1_000_000, "units": 1_000_000}
SAME_RUNS_OTHER = 100_000
INPUT_SECONDS_MAX = 20  # one input that takes longer has found something, too


class Outcome:
    def __init__(self, name):
        self.name = name
        self.seconds = 0.0
        self.executions = 0
        self.coverage = "?"
        self.failure = ""  # one line; empty: nothing broke
        self.detail = ""

    def line(self):
        speed = self.executions / self.seconds if self.seconds else 0
        state = f"FAILED: {self.failure}" if self.failure else "ok"
        return (f"{self.name:<10} {self.executions:>11,} executions {speed:>9,.0f}/s "
                f"{self.coverage:>6} edges {self.seconds:>7.1f} s  {state}")


def how_long(name, options):
    if options.same:
        return [f"-runs={SAME_RUNS.get(name, SAME_RUNS_OTHER)}", "-seed=1"]
    return [f"-runs={options.runs}" if options.runs else f"-max_total_time={options.seconds}"]


def command_of(build, name, grown, options):
    """The program and its arguments; the first corpus is the one that grows."""
    crashes = build / "crashes"
    for folder in (grown, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    words = [
        str(build / "tests" / f"fuzz_{name}"),
        str(grown),
        *([str(FUZZ / "corpus" / name)] if (FUZZ / "corpus" / name).is_dir() else []),
        f"-artifact_prefix={crashes}/{name}-",
        f"-max_len={LENGTH_MAX.get(name, LENGTH_MAX_OTHER)}",
        f"-timeout={INPUT_SECONDS_MAX}",
        "-rss_limit_mb=2048",
        "-print_final_stats=1",
        "-verbosity=1",
    ]
    if (FUZZ / f"{name}.dict").exists():
        words.append(f"-dict={FUZZ / name}.dict")
    return words + how_long(name, options)


def judge(outcome, build, code, log):
    text = log.read_text(errors="replace")
    found = re.search(r"stat::number_of_executed_units: (\d+)", text)
    outcome.executions = int(found[1]) if found else 0
    found = re.findall(r"\bcov: (\d+)", text)
    outcome.coverage = found[-1] if found else "?"
    if code == 0 and outcome.executions > 0:
        return
    why = re.search(r"^(berth: invariant broken.*|SUMMARY: .*|.*runtime error: .*)$", text, re.M)
    outcome.failure = why[1].strip() if why else f"ended with code {code}"
    kept = re.findall(r"Test unit written to (\S+)", text)
    outcome.detail = "\n".join(text.splitlines()[-60:])
    if kept:
        outcome.detail += (f"\n\nTo see it again:\n  {build}/tests/fuzz_{outcome.name} {kept[-1]}\n"
                           "Once repaired, the input becomes a unit test, or a file in "
                           f"tests/fuzz/corpus/{outcome.name}.")


def run(build, name, options):
    outcome = Outcome(name)
    log = build / "logs" / f"{name}.log"
    log.parent.mkdir(exist_ok=True)
    patience = None if options.runs or options.same else options.seconds + 20 * INPUT_SECONDS_MAX
    begin = time.monotonic()
    with open(log, "wb") as out, tempfile.TemporaryDirectory() as nothing_yet:
        grown = pathlib.Path(nothing_yet) if options.same else build / "corpus" / name
        program = subprocess.Popen(command_of(build, name, grown, options), stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=subprocess.STDOUT)
        try:
            code = program.wait(patience)
        except BaseException as error:  # an interrupt too may leave nothing behind
            program.kill()
            program.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            code = "none: it did not end"
    outcome.seconds = time.monotonic() - begin
    judge(outcome, build, code, log)
    return outcome


def write_junit(path, outcomes):
    suite = ET.Element("testsuite", name="fuzz", tests=str(len(outcomes)))
    for outcome in outcomes:
        case = ET.SubElement(suite, "testcase", classname="fuzz", name=outcome.name,
                             time=f"{outcome.seconds:.1f}")
        if outcome.failure:
            # What a log of broken input may hold, XML may not.
            detail = re.sub(r"[^\t\n\x20-\x7e]", "?", outcome.detail)
            ET.SubElement(case, "failure", message=outcome.failure).text = detail
        else:
            ET.SubElement(case, "system-out").text = outcome.line()
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def main():
    parser = argparse.ArgumentParser(description="Runs the fuzz targets of a build.")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=int, default=30)
    length.add_argument("--runs", type=int, default=0)
    length.add_argument("--same", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--junit", type=pathlib.Path)
    options = parser.parse_intermixed_args()
    build = options.build.resolve()
    known = sorted(path.name.removesuffix("_fuzz.cpp") for path in FUZZ.glob("*_fuzz.cpp"))
    names = options.names or known
    if strange := sorted(set(names) - set(known)):
        parser.error(f"there is no target {', '.join(strange)}; there are {', '.join(known)}")
    outcomes = []
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for done in concurrent.futures.as_completed(
                [pool.submit(run, build, name, options) for name in names]):
            outcomes.append(done.result())
            print(outcomes[-1].line(), flush=True)
            if outcomes[-1].failure:
                print(outcomes[-1].detail, flush=True)
    if options.junit:
        write_junit(options.junit, sorted(outcomes, key=lambda outcome: outcome.name))
    return 1 if any(outcome.failure for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
