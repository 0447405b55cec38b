#!/usr/bin/python3
"""Adds up the results of a test run and judges its skips.

    tally.py --skips tests/skips.txt RESULTS
    tally.py --self-test

RESULTS has one folder per stage, each with any of
    ctest.xml       of ctest --output-junit
    gtest/*.xml     of the programs, by GTEST_OUTPUT=xml:gtest/
    pytest.xml      of pytest --junitxml
    fuzz.xml        of tests/tools/fuzz.py --junit
    console.xml     of vitest or Playwright
    again/          ctest.xml and gtest/ of the programs that failed, at their second try
    flaky           a line per test that passed at its second try
    failed          if the stage as a whole failed; counts when none of the above says why
Prints what failed and what was skipped. A skip that tests/skips.txt does not list counts as a
failure. The last line is "N passed, N failed, N skipped"; the exit code is 1 if anything failed.
"""

import fnmatch
import pathlib
import sys
import tempfile
import xml.etree.ElementTree as ET


class Tally:
    def __init__(self, rules):
        self.rules = rules
        self.passed = 0
        self.failed = []
        self.skipped = []
        self.flaky = []
        self.unused = {pattern for pattern, _ in rules}

    def add(self, stage, name, outcome, detail=""):
        if outcome == "passed":
            self.passed += 1
        elif outcome == "failed":
            self.failed.append((stage, name, detail))
        else:
            for pattern, reason in self.rules:
                if fnmatch.fnmatchcase(name, pattern):
                    self.unused.discard(pattern)
                    self.skipped.append((stage, name, reason))
                    return
            self.failed.append(
                (stage, name, f"skipped ({detail or 'no reason given'}), and tests/skips.txt does "
                 "not list it"))


def read_rules(path):
    rules = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, tab, reason = line.partition("\t")
        if not tab or not reason.strip():
            sys.exit(f"{path}:{number}: expected pattern<TAB>reason")
        rules.append((pattern.strip(), reason.strip()))
    return rules


def outcome_of(case):
    """passed, failed or skipped, and a line about it, of a <testcase>."""
    for tag in ("failure", "error"):
        found = case.find(tag)
        if found is not None:
            text = (found.get("message") or found.text or "").strip()
            return "failed", text.splitlines()[0][:200] if text else ""
    found = case.find("skipped")
    if found is not None or case.get("status") in ("notrun", "disabled"):
        text = (found.get("message") or "") if found is not None else "disabled"
        return "skipped", " ".join(text.split())[:200]
    return "passed", ""


def cases_of(path):
    return ET.parse(path).getroot().iter("testcase")


class CtestRun:
    """What one run of ctest has left: an outcome per program, and one per case in it."""

    def __init__(self, folder):
        self.programs = {}
        if not (folder / "ctest.xml").exists():
            return
        for program in cases_of(folder / "ctest.xml"):
            name = program.get("name")
            self.programs[name] = (outcome_of(program), self.read(folder / "gtest" / f"{name}.xml"))

    @staticmethod
    def read(path):
        """The cases of a program; None where it has none or did not come to write them."""
        if not path.exists():
            return None
        try:
            return [(f"{case.get('classname')}.{case.get('name')}", *outcome_of(case))
                    for case in cases_of(path)]
        except ET.ParseError:
            return None

    def failed_cases(self, name):
        return [case for case in self.programs[name][1] or () if case[1] == "failed"]

    def passed(self, name):
        return name in self.programs and self.programs[name][0][0] != "failed"


def add_ctest(tally, stage, folder):
    first, again = CtestRun(folder), CtestRun(folder / "again")
    for name, (whole, cases) in first.programs.items():
        # A second try excuses a case that failed; a crash or what a sanitizer found it does not.
        if first.failed_cases(name) and again.passed(name):
            tally.flaky += [(stage, f"{case}: {detail}")
                            for case, _, detail in first.failed_cases(name)]
            whole, cases = again.programs[name]
        for case in cases or ():
            tally.add(stage, *case)
        if cases is None:
            tally.add(stage, name, *whole)
        elif whole[0] == "failed" and not any(case[1] == "failed" for case in cases):
            # A crash, a leak, a timeout after the last case.
            tally.add(stage, name, "failed", whole[1] or "the program failed")


def add_stage(tally, folder):
    stage = folder.name
    known = len(tally.failed)
    add_ctest(tally, stage, folder)
    for name in ("pytest.xml", "fuzz.xml", "console.xml"):
        for case in cases_of(folder / name) if (folder / name).exists() else ():
            outcome, detail = outcome_of(case)
            tally.add(stage, f"{case.get('classname')}.{case.get('name')}", outcome, detail)
    if (folder / "flaky").exists():
        tally.flaky += [(stage, line) for line in (folder / "flaky").read_text().splitlines()]
    if (folder / "failed").exists() and len(tally.failed) == known:
        tally.add(stage, stage, "failed", (folder / "failed").read_text().strip())


def tally_up(results, rules):
    tally = Tally(rules)
    for folder in sorted(p for p in results.iterdir() if p.is_dir()):
        add_stage(tally, folder)
    return tally


def self_test():
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        stage = root / "release"
        (stage / "gtest").mkdir(parents=True)
        (stage / "ctest.xml").write_text(
            '<testsuite><testcase name="a_test" status="run"/>'
            '<testcase name="crashed" status="fail"><failure message="SEGV"/></testcase>'
            '<testcase name="script" status="run"/></testsuite>')
        (stage / "gtest" / "a_test.xml").write_text(
            '<testsuites><testsuite>'
            '<testcase name="One" classname="A" status="run" result="completed"/>'
            '<testcase name="Two" classname="A" status="run"><failure message="x"/></testcase>'
            '<testcase name="Off" classname="A" status="notrun" result="suppressed"/>'
            '<testcase name="Gpu" classname="A" status="run" result="skipped">'
            '<skipped message="no GPU"/></testcase></testsuite></testsuites>')
        (stage / "gtest" / "crashed.xml").write_text("<testsuites>")
        asan = root / "asan"
        for folder, race in ((asan, True), (asan / "again", False)):
            (folder / "gtest").mkdir(parents=True)
            (folder / "ctest.xml").write_text(
                '<testsuite><testcase name="late" status="' + ("fail" if race else "run") + '">' +
                ('<failure message="x"/>' if race else "") + '</testcase>' +
                '<testcase name="raced">' + ('<failure message="race"/>' if race else "") +
                '</testcase></testsuite>')
            (folder / "gtest" / "late.xml").write_text(
                '<testsuites><testcase name="Late" classname="B">' +
                ('<failure message="too late"/>' if race else "") + '</testcase></testsuites>')
            (folder / "gtest" / "raced.xml").write_text(
                '<testsuites><testcase name="Race" classname="B"/></testsuites>')
        e2e = root / "e2e"
        e2e.mkdir()
        (e2e / "pytest.xml").write_text(
            '<testsuites><testsuite><testcase classname="tests.e2e.t" name="good"/>'
            '<testcase classname="tests.e2e.t" name="root"><skipped message="r"/></testcase>'
            '</testsuite></testsuites>')
        (e2e / "flaky").write_text("t.py::good: too slow\n")
        (stage / "failed").write_text("exit code 8")
        (root / "lint").mkdir()
        (root / "lint" / "failed").write_text("exit code 1")
        tally = tally_up(root, [("A.Gpu", "needs a card"), ("Z.*", "unused")])
        failed = [name for _, name, _ in tally.failed]
        assert tally.passed == 5, tally.passed
        assert sorted(failed) == [
            "A.Off", "A.Two", "crashed", "lint", "raced", "tests.e2e.t.root"], failed
        assert [name for _, name, _ in tally.skipped] == ["A.Gpu"]
        assert tally.flaky == [("asan", "B.Late: too late"), ("e2e", "t.py::good: too slow")]
        assert tally.unused == {"Z.*"}
    print("the tally adds up")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    if len(sys.argv) != 4 or sys.argv[1] != "--skips":
        print(__doc__, file=sys.stderr)
        return 2
    tally = tally_up(pathlib.Path(sys.argv[3]), read_rules(pathlib.Path(sys.argv[2])))
    for stage, name, reason in tally.skipped:
        print(f"skipped  [{stage}] {name}: {reason}")
    for stage, line in tally.flaky:
        print(f"flaky    [{stage}] {line}")
    for stage, name, detail in tally.failed:
        print(f"FAILED   [{stage}] {name}" + (f": {detail}" if detail else ""))
    nothing = not (tally.passed or tally.failed or tally.skipped)
    if nothing:
        print("no test was run")
    print(f"{tally.passed} passed, {len(tally.failed)} failed, {len(tally.skipped)} skipped")
    return 1 if tally.failed or nothing else 0


if __name__ == "__main__":
    sys.exit(main())
