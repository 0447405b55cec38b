#!/usr/bin/python3
"""Adds up the results of a test run and judges its skips.

    tally.py --skips tests/skips.txt RESULTS
    tally.py --self-test

RESULTS has one folder per stage, each with any of
    ctest.xml       of ctest --output-junit
    gtest/*.xml     of the programs, by GTEST_OUTPUT=xml:gtest/
    pytest.xml      of pytest --junitxml
    fuzz.xml        of tests/tools/fuzz.py --junit
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


def add_gtest(tally, stage, path):
    """Whether one of the cases failed."""
    bad = False
    for case in cases_of(path):
        outcome, detail = outcome_of(case)
        bad |= outcome == "failed"
        tally.add(stage, f"{case.get('classname')}.{case.get('name')}", outcome, detail)
    return bad


def add_stage(tally, folder):
    stage = folder.name
    known = len(tally.failed)
    if (folder / "ctest.xml").exists():
        for case in cases_of(folder / "ctest.xml"):
            name = case.get("name")
            outcome, detail = outcome_of(case)
            inner = folder / "gtest" / f"{name}.xml"
            if not inner.exists():
                tally.add(stage, name, outcome, detail)
                continue
            try:
                bad = add_gtest(tally, stage, inner)
            except ET.ParseError:
                tally.add(stage, name, "failed", "its results cannot be read; did it crash?")
                continue
            if outcome == "failed" and not bad:  # a crash, a leak, a timeout after the last case
                tally.add(stage, name, "failed", detail or "the program failed")
    for name in ("pytest.xml", "fuzz.xml"):
        for case in cases_of(folder / name) if (folder / name).exists() else ():
            outcome, detail = outcome_of(case)
            tally.add(stage, f"{case.get('classname')}.{case.get('name')}", outcome, detail)
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
        e2e = root / "e2e"
        e2e.mkdir()
        (e2e / "pytest.xml").write_text(
            '<testsuites><testsuite><testcase classname="tests.e2e.t" name="good"/>'
            '<testcase classname="tests.e2e.t" name="root"><skipped message="r"/></testcase>'
            '</testsuite></testsuites>')
        (stage / "failed").write_text("exit code 8")
        (root / "lint").mkdir()
        (root / "lint" / "failed").write_text("exit code 1")
        tally = tally_up(root, [("A.Gpu", "needs a card"), ("Z.*", "unused")])
        failed = [name for _, name, _ in tally.failed]
        assert tally.passed == 3, tally.passed
        assert sorted(failed) == ["A.Off", "A.Two", "crashed", "lint", "tests.e2e.t.root"], failed
        assert [name for _, name, _ in tally.skipped] == ["A.Gpu"]
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
    for stage, name, detail in tally.failed:
        print(f"FAILED   [{stage}] {name}" + (f": {detail}" if detail else ""))
    nothing = not (tally.passed or tally.failed or tally.skipped)
    if nothing:
        print("no test was run")
    print(f"{tally.passed} passed, {len(tally.failed)} failed, {len(tally.skipped)} skipped")
    return 1 if tally.failed or nothing else 0


if __name__ == "__main__":
    sys.exit(main())
