#!/usr/bin/python3
"""Runs clang-tidy on the translation units that changed since they were last found clean.

    tidy.py BUILD_DIR [-j N] [--all]

A unit is known by the content of the .clang-tidy files above it, of itself and of every header of the project that it
includes; the names of clean ones are kept in BUILD_DIR/tidy-clean. Units that do not belong to the
project, and those whose source does not exist, are left out.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

# How many states of a function the analyzer follows. Left to itself (225,000) it takes two thirds of the time of a
# whole run, for a handful of large functions.
NODES = 15_000

INCLUDE = re.compile(rb'^\s*#\s*include\s*"([^"]+)"', re.M)


class Fingerprints:
    def __init__(self, root):
        self.root = root
        self.parsed = {}

    def rules(self, path):
        folders = [folder for folder in path.parents if folder.is_relative_to(self.root)]
        files = [folder / ".clang-tidy" for folder in reversed(folders)]
        return b"".join(file.read_bytes() for file in files if file.exists())

    def parse(self, path):
        if path not in self.parsed:
            content = path.read_bytes()
            headers = []
            for name in INCLUDE.findall(content):
                for folder in (self.root / "src", self.root, path.parent):
                    header = (folder / os.fsdecode(name)).resolve()
                    if header.is_file():
                        headers.append(header)
                        break
            self.parsed[path] = (hashlib.sha256(content).digest(), headers)
        return self.parsed[path]

    def of(self, path, command):
        seen, todo = set(), [path]
        while todo:
            here = todo.pop()
            if here not in seen:
                seen.add(here)
                todo += self.parse(here)[1]
        total = hashlib.sha256(self.rules(path) + command.encode())
        for here in sorted(seen):
            total.update(os.fsencode(here.relative_to(self.root)) + self.parse(here)[0])
        return total.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-j", type=int, default=os.cpu_count())
    parser.add_argument("--all", action="store_true", help="also those known to be clean")
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parents[2]
    database = options.build / "compile_commands.json"
    if not database.exists():
        sys.exit(f"{database} is missing; ./dev build makes it")
    prints = Fingerprints(root)
    units = {}
    for entry in json.loads(database.read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.is_file() and path.is_relative_to(root):
            # The flags matter, the names of outputs do not.
            flags = [w for w in shlex.split(entry["command"]) if w.startswith("-")]
            units.setdefault(path, " ".join(flags))
    memory = options.build / "tidy-clean"
    clean = set(memory.read_text().split()) if memory.exists() and not options.all else set()
    fingerprints = {path: prints.of(path, command) for path, command in units.items()}
    todo = sorted(path for path in units if fingerprints[path] not in clean)
    print(f"clang-tidy: {len(todo)} of {len(units)} files", flush=True)

    def run(path):
        result = subprocess.run(
            ["clang-tidy-19", "--quiet", "-p", str(options.build),
             "--extra-arg=-Wno-unknown-warning-option",
             *(f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={NODES}")),
             str(path)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        return path, result

    failures = 0
    clean &= set(fingerprints.values())
    memory.write_text("".join(f"{known}\n" for known in sorted(clean)))
    # As it goes: it takes long, and what was found clean shall outlive an interrupt.
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool, open(memory, "a") as known:
        for path, result in pool.map(run, todo):
            if result.returncode == 0:
                print(fingerprints[path], file=known, flush=True)
            else:
                failures += 1
                print(result.stdout.strip() or result.stderr.strip(), flush=True)
    if failures:
        print(f"clang-tidy: {failures} of {len(todo)} files have findings")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
