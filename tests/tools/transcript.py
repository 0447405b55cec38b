#!/usr/bin/env python3
"""Plays the commands of a guide's ```console blocks and compares what they print.

  transcript.py GUIDE [--write]

A line that begins with "$ " is a command for bash, with "> " its continuation; what follows up to the
next command is its output. All blocks share one directory and one shell's variables. With --write the
guide gets the output of this run. What differs from run to run is compared by kind: times, durations,
pids, paths below the directory, and the space that fills columns.
"""
import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MARK = "__end_of_command__"

KINDS = [
    (re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?"), "<date>"),
    (re.compile(r"\b\d\d:\d\d(:\d\d)?\b"), "<clock>"),
    (re.compile(r"\b(just now|(\d+ ?(s|min|m|h|d)( \d+ ?(s|min))? ago))\b"), "<ago>"),
    (re.compile(r"\b\d+(\.\d+)? ?(ms|s|min|h)\b( ?\d+ ?s\b)?"), "<time>"),
    (re.compile(r"\bpid \d+"), "pid <n>"),
    (re.compile(r"\b\d+(\.\d+)? (KiB|MiB|MB|kB)\b"), "<size>"),
    (re.compile(r"\b\d+ %"), "<share>"),
    (re.compile(r"GPU-[0-9a-f-]{10,}"), "<uuid>"),
    (re.compile(r"[-─=]{3,}"), "---"),
    (re.compile(r"\s+"), " "),
]


def normal(line):
    for pattern, kind in KINDS:
        line = pattern.sub(kind, line)
    return line.strip()


def blocks(text):
    """[(start, end)] of the contents of ```console blocks."""
    return [(m.start(1), m.end(1)) for m in re.finditer(r"^```console\n(.*?)^```$", text, re.M | re.S)]


def commands(block):
    """[(command, its expected output)], both as lists of lines."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0].append(line[2:])
        elif found:
            found[-1][1].append(line)
    return found


class Shell:
    def __init__(self, directory, environment):
        self.directory = str(directory)
        self.process = subprocess.Popen(
            ["bash", "--norc"], cwd=directory, env=environment, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command):
        self.process.stdin.write(command + f"\necho {MARK}\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.rstrip("\n").endswith(MARK):
                rest = line.rstrip("\n")[: -len(MARK)]
                return lines + ([rest] if rest else [])
            lines.append(line.rstrip("\n").replace(self.directory, "~"))
        raise SystemExit("the shell ended in the middle of the guide")

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)


def play(guide, directory, environment):
    """(the text with this run's output, differences as text)."""
    text = guide.read_text(encoding="utf-8")
    shell = Shell(directory, environment)
    out, at, differences = [], 0, []
    for start, end in blocks(text):
        out.append(text[at:start])
        at = end
        for command, expected in commands(text[start:end]):
            got = shell.run("\n".join(command))
            out.append("$ " + "\n> ".join(command) + "\n" + "".join(line + "\n" for line in got))
            want = [normal(line) for line in expected]
            have = [normal(line) for line in got]
            if want != have:
                differences += [f"$ {command[0]}"]
                differences += difflib.unified_diff(want, have, "guide", "now", lineterm="", n=1)
    shell.close()
    out.append(text[at:])
    return "".join(out), "\n".join(differences)


def environment(build, directory):
    return {"PATH": f"{build}/bin:/usr/bin:/bin", "HOME": str(directory), "LANG": "C.UTF-8",
            "BERTH_DIR": f"{directory}/.berth", "BERTH_GPUS": "sim:2x24GiB", "COLUMNS": "100",
            "TERM": "dumb"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("guide", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    root = Path(__file__).resolve().parents[2]
    build = Path(os.environ.get("BERTH_BUILD") or root / "build").resolve()
    with tempfile.TemporaryDirectory(prefix="berth-guide-") as directory:
        env = environment(build, directory)
        try:
            text, differences = play(options.guide, directory, env)
        finally:
            subprocess.run([build / "bin/berth", "kill", "all"], env=env, capture_output=True)
            subprocess.run([build / "bin/berth", "stop"], env=env, capture_output=True)
    if options.write:
        options.guide.write_text(text, encoding="utf-8")
    elif differences:
        print(differences)
    return 1 if differences and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
