#!/usr/bin/python3
"""Fails when src/ goes against the allowed direction of dependencies.

    check_includes.py [REPOSITORY]    check it
    check_includes.py --self-test     check the checker

Every folder of src/ must be in ALLOWED. An include, and a DEPENDS in CMake, may only name what the
folder's line names. ALLOWED itself must be free of circles, so the libraries can be linked.
"""

import pathlib
import re
import sys
import tempfile

# folder: what it may include. An entry with a slash allows that one header only.
ALLOWED = {
    "base": [],
    "board": ["base"],
    "core": ["base"],
    "engine": ["core", "base"],
    "jobspec": ["core", "base"],
    "dialects": ["jobspec", "core", "base"],
    "submit": ["dialects", "jobspec", "core", "base", "api/views.hpp"],
    "compete": ["dialects", "jobspec", "core", "base"],
    "results": ["base"],
    "ring": ["base"],
    "snapshot": ["base"],
    "gpu": ["core", "base"],
    "proc": ["core", "base"],
    # Static and tiny: formats without code behind them.
    "shim": [
        "base",
        "proc/control.hpp",
        "proc/launch_spec_view.hpp",
        "proc/proc_stat.hpp",
        "proc/record_line.hpp",
        "proc/uni_entry_view.hpp",
    ],
    "store": ["core", "base", "engine"],
    "simgpu": [],
    "api": ["core", "base"],
    "access": ["api", "base"],
    "console": ["access", "api", "base"],
    "daemon": ["access", "api", "board", "compete", "console", "core", "base", "dialects", "engine",
               "gpu", "jobspec", "proc", "results", "ring", "snapshot", "store", "submit"],
    "cli": ["api", "board", "dialects", "jobspec", "results", "snapshot", "submit", "core",
            "base"],
    "sim": ["core", "base", "engine"],
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
LIBRARY = re.compile(r"berth_library\(\s*(\w+)(.*?)\)", re.S)
SOURCES = {".cpp", ".hpp", ".c", ".h", ".cc", ".ipp"}


def find_circle(allowed):
    """The folders of a circle in `allowed`, or None."""
    state = {}

    def visit(folder, path):
        if state.get(folder) == "done":
            return None
        if folder in path:
            return path[path.index(folder):] + [folder]
        for entry in allowed.get(folder, []):
            circle = visit(entry.split("/")[0], path + [folder])
            if circle:
                return circle
        state[folder] = "done"
        return None

    for folder in allowed:
        circle = visit(folder, [])
        if circle:
            return circle
    return None


def check(root, allowed):
    """The list of complaints about the repository at `root`."""
    source = root / "src"
    complaints = []
    circle = find_circle(allowed)
    if circle:
        complaints.append("the allowed directions go round in a circle: " + " -> ".join(circle))
    for path in sorted(source.rglob("*")):
        where = path.relative_to(root)
        folder = path.relative_to(source).parts[0]
        if path.is_dir():
            if path.parent == source and folder not in allowed:
                complaints.append(
                    f"{where}: this folder is not in ALLOWED; say there what it may include")
            continue
        if folder not in allowed:
            continue
        if path.name == "CMakeLists.txt":
            complaints += check_cmake(where, path.read_text(), folder, allowed)
        elif path.suffix in SOURCES:
            complaints += check_file(where, path.read_text(errors="replace"), folder, source,
                                     allowed)
    return complaints


def check_file(where, text, folder, source, allowed):
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, name = match.groups()
        target = name.split("/")[0]
        ours = (source / name).exists() or target in allowed
        if quote == "<" and not ours:
            continue
        if "/" not in name or target not in allowed:
            yield f'{where}:{number}: "{name}" must be named from src/, as "folder/file.hpp"'
        elif target != folder and target not in allowed[folder] and name not in allowed[folder]:
            yield f'{where}:{number}: {folder}/ may not include "{name}"'


def check_cmake(where, text, folder, allowed):
    text = re.sub(r"#.*", "", text)
    for name, body in LIBRARY.findall(text):
        if name != folder:
            yield f"{where}: the library of {folder}/ is called {folder}, not {name}"
        depends = re.search(r"\bDEPENDS\b(.*?)(?:\b(?:LINK|SOURCES)\b|$)", body, re.S)
        for target in depends.group(1).split() if depends else []:
            if target not in allowed[folder]:
                yield f"{where}: {folder} may not depend on {target}"


def self_test():
    allowed = {"low": [], "high": ["low"], "thin": ["high/one.hpp"]}
    cases = [
        ("the right direction", {"high/a.cpp": '#include "low/a.hpp"\n#include <vector>\n'}, None),
        ("one's own folder", {"low/a.cpp": '  #  include "low/b.hpp"\n'}, None),
        ("the one header", {"thin/a.cpp": '#include "high/one.hpp"\n'}, None),
        ("a comment", {"low/a.cpp": '// #include "high/a.hpp"\n'}, None),
        ("the wrong direction", {"low/a.hpp": '\n#include "high/a.hpp"\n'},
         'src/low/a.hpp:2: low/ may not include "high/a.hpp"'),
        ("the wrong direction in brackets", {"low/a.hpp": "#include <high/a.hpp>\n"},
         "may not include"),
        ("another header", {"thin/a.cpp": '#include "high/two.hpp"\n'}, "may not include"),
        ("a nested file", {"low/sub/a.cpp": '#include "high/a.hpp"\n'}, "may not include"),
        ("a relative include", {"high/a.cpp": '#include "../low/a.hpp"\n'}, "named from src/"),
        ("a bare include", {"high/a.cpp": '#include "a.hpp"\n'}, "named from src/"),
        ("an unknown folder", {"new/a.cpp": ""}, "src/new: this folder is not in ALLOWED"),
        ("a good library",
         {"high/CMakeLists.txt": "berth_library(high SOURCES a.cpp DEPENDS low LINK fmt)"}, None),
        ("a wrong dependency",
         {"low/CMakeLists.txt": "berth_library(low SOURCES a.cpp\n DEPENDS high)"},
         "low may not depend on high"),
    ]
    for title, files, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / "src" / name).parent.mkdir(parents=True, exist_ok=True)
                (root / "src" / name).write_text(text)
            complaints = check(root, allowed)
            if expected is None:
                assert not complaints, f"{title}: {complaints}"
            else:
                assert len(complaints) == 1 and expected in complaints[0], f"{title}: {complaints}"
    assert find_circle({"a": ["b"], "b": ["c/x.hpp"], "c": ["a"]}) == ["a", "b", "c", "a"]
    assert find_circle({"a": ["a"]}) == ["a", "a"]
    assert find_circle(ALLOWED) is None
    print(f"{len(cases)} cases behave")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    if not (root / "src").is_dir():
        print(f"there is no src/ in {root}", file=sys.stderr)
        return 2
    complaints = check(root, ALLOWED)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
