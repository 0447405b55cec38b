"""What the guide shows is true: pictures, links, job files, commands."""

import json
import re
import shlex
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from berthlib import BUILD, REPO

GUIDE = REPO / "docs/guide"
PICTURES = GUIDE / "pictures"
PAGES = ["scheduling.md", "strategies.md"]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", (GUIDE / page).read_text(), re.M | re.S)


def anchors(text):
    """Of a page's headings, as they are linked to."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            for title in re.findall(r"^#+ (.*)$", text, re.M)}


def test_the_pictures_are_what_the_script_draws(tmp_path):
    subprocess.run([sys.executable, PICTURES / "draw.py", tmp_path], check=True)
    drawn = {file.name: file.read_bytes() for file in tmp_path.glob("*.svg")}
    kept = {file.name: file.read_bytes() for file in PICTURES.glob("*.svg")}
    assert drawn.keys() == kept.keys()
    assert [name for name in drawn if drawn[name] != kept[name]] == [], "run docs/guide/pictures/draw.py"


def test_every_picture_is_shown():
    shown = {name for page in PAGES for name in re.findall(r"\(pictures/(.*?)\)", (GUIDE / page).read_text())}
    assert shown == {file.name for file in PICTURES.glob("*.svg")}


def test_figures_of_the_bench_show_what_was_measured(tmp_path):
    shares = {f"{kind}_shares_{size}": [1, 2, 4, 8 if size == "small" else 16]
              for kind in ("submit", "start") for size in ("small", "large")}
    (tmp_path / "numbers.json").write_text(json.dumps({
        "ratios": {"berth": [90, 110, 100], "ceiling": [120], "bare": [1234]},
        "scale": {"jobs": 1_000_000, **shares},
        "load": {"calm": [1.5, 2.5, 3.5], "busy": [2, 3, 4]},
        "peers": [["xargs", "nothing", 1000.4, ""], ["pueue", "a file", None, "not here"], ["berth add", "all", 200, ""]]}))
    subprocess.run([sys.executable, REPO / "bench/plot.py", tmp_path / "numbers.json", tmp_path / "out"], check=True)
    words = {file.name: {part.text for part in ElementTree.parse(file).iter() if part.text}
             for file in (tmp_path / "out").glob("*.svg")}
    assert words.keys() == {"throughput.svg", "backlog.svg", "load.svg", "peers.svg"}
    assert {"berth", "100 jobs/s", "1,234 jobs/s, nothing is kept"} <= words["throughput.svg"]
    assert {"1,000,000 queued", "99.9 %", "20"} <= words["backlog.svg"]
    assert "beside the load" in words["load.svg"]
    assert {"xargs", "1,000 jobs/s", "berth add"} <= words["peers.svg"] and "pueue" not in words["peers.svg"]


@pytest.mark.parametrize("page", sorted(path.relative_to(REPO).as_posix() for path in
                                        [REPO / "README.md", *GUIDE.glob("*.md")]))
def test_links_lead_somewhere(page):
    path = REPO / page
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", path.read_text(), flags=re.S)):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text()), target


def test_no_page_has_a_gap_to_be_filled():
    for page in (REPO / "docs").rglob("*.md"):
        gap = re.search(r"^[A-Z]+(_[A-Z]+)+$", page.read_text(), re.M)
        assert not gap, f"{page}: {gap[0]}"


@pytest.mark.parametrize("page", PAGES)
def test_job_files_are_accepted(page, tmp_path):
    for index, text in enumerate(blocks(page, "yaml")):
        file = tmp_path / f"{index}.yaml"
        file.write_text(text)
        done = subprocess.run([BUILD / "bin/berth", "check", file], capture_output=True, text=True)
        assert done.returncode == 0, f"{text}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_understood(page, make_instance):
    berth = make_instance(gpus="sim:2x24GiB")
    berth.start()
    for line in "".join(blocks(page, "console")).splitlines():
        berth.cli("pause", "--instance", check=0)  # a job that waits can be changed
        berth.cli(*shlex.split(line.removeprefix("$ berth "), comments=True), check=0)


def test_inline_rules_exist(make_instance):
    """`key=value` in the text is what `berth set` takes."""
    berth = make_instance()
    berth.start()
    for page in PAGES:
        for rule in set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)?=[\w%]+)`", (GUIDE / page).read_text())):
            berth.cli("set", rule, check=0)
