#!/usr/bin/env python3
"""Draws the figures of a run of the bench: plot.py NUMBERS.json FOLDER"""
import json
import math
import statistics
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "docs/guide/pictures"))

from canvas import BLUE, FAINT, GRID, INK, ORANGE, TEAL, Canvas  # noqa: E402
from scale import SHARES, percentile  # noqa: E402

WIDTH = 720


def round_up(value):
    """The next number that divides well: 1, 2, 3, 4, 6, 8, 10, 20, …"""
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 3, 4, 6, 8, 10) if value <= step * power)


def bars(title, rows, unit, note):
    """Horizontal bars: (name, value, colour, what stands behind it)."""
    c = Canvas(WIDTH, 76 + 34 * len(rows), title)
    c.text(24, 28, title, 15, INK, weight="bold")
    top = max(value for _, value, _, _ in rows)
    for number, (name, value, colour, words) in enumerate(rows):
        y = 46 + 34 * number
        c.text(190, y + 16, name, 13, INK, "end")
        c.rect(200, y, max(2, 330 * value / top), 22, colour, radius=3)
        c.text(208 + max(2, 330 * value / top), y + 16, f"{value:,.0f} {unit}{words}", 12)
    c.text(24, c.height - 14, note, 12, FAINT)
    return c.svg()


def axes(c, left, top, width, height, most, labels):
    """A frame with milliseconds upwards; labels: [(place from 0 to 1, words)]."""
    for step in range(5):
        y = top + height - height * step / 4
        c.line(left, y, left + width, y, GRID)
        c.text(left - 8, y + 4, f"{most * step / 4:g}", 11, FAINT, "end")
    for place, words in labels:
        c.text(left + width * place, top + height + 18, words, 11, FAINT, "middle")


def backlog(scale, jobs):
    """Milliseconds of submits and starts at the usual shares, with few and with many jobs queued."""
    title = f"What takes how long with 1,000 and with {jobs:,} jobs queued (ms)"
    c = Canvas(WIDTH, 300, title)
    c.text(24, 28, title, 15, INK, weight="bold")
    for side, (kind, words) in enumerate([("submit", "submit a job, durably"),
                                          ("start", "from one start of a serial queue to the next")]):
        left, top, width, height = 60 + 345 * side, 74, 275, 150
        both = [scale[f"{kind}_shares_{size}"] for size in ("small", "large")]
        most = round_up(max(map(max, both)))
        c.text(left, 56, words, 13)
        places = [(0.08 + 0.28 * number, f"{share * 100:g} %") for number, share in enumerate(SHARES)]
        axes(c, left, top, width, height, most, places)
        for values, colour in zip(both, (BLUE, TEAL)):
            points = [(left + width * place, top + height - height * value / most)
                      for (place, _), value in zip(places, values)]
            c.path(points, colour)
            for x, y in points:
                c.rect(x - 3, y - 3, 6, 6, colour, radius=3)
    c.legend(60, 276, [(BLUE, "1,000 queued"), (TEAL, f"{jobs:,} queued")], 150)
    c.text(380, 276, "share of them that take at most so long", 12, FAINT)
    return c.svg()


def delays(load):
    """How many jobs have started after how long, alone and beside the load."""
    title = "Start of a job, alone and beside 1,000 pages a second and 200 live streams"
    c = Canvas(WIDTH, 300, title)
    c.text(24, 28, title, 15, INK, weight="bold")
    left, top, width, height = 60, 52, 630, 172
    most = round_up(max(percentile(load[name], 0.99) for name in ("calm", "busy")))
    for step in range(5):
        y = top + height - height * step / 4
        c.line(left, y, left + width, y, GRID)
        c.text(left - 8, y + 4, f"{25 * step} %", 11, FAINT, "end")
        c.text(left + width * step / 4, top + height + 18, f"{most * step / 4:g} ms", 11, FAINT, "middle")
    for name, colour in (("calm", BLUE), ("busy", ORANGE)):
        ordered = sorted(load[name])
        points = [(left, top + height)]
        for number in range(1, 201):
            value = percentile(ordered, number / 200)
            if value > most:
                break
            points.append((left + width * value / most, top + height - height * number / 200))
        c.path(points, colour)
    c.legend(60, 276, [(BLUE, "alone"), (ORANGE, "beside the load")], 90)
    c.text(320, 276, "share of the jobs that have started after so long", 12, FAINT)
    return c.svg()


def draw(numbers):
    """{file name: its text}, of whichever parts were measured."""
    drawn = {}
    if ratios := numbers.get("ratios"):
        rate = {name: statistics.median(values) for name, values in ratios.items()}
        drawn["throughput.svg"] = bars(
            "Jobs that do nothing, two at a time, each durable",
            [("the shim alone", rate["bare"], FAINT, ", nothing is kept"),
             ("with one commit each", rate["ceiling"], FAINT, ", no more can be had"),
             ("berth", rate["berth"], TEAL, "")],
            "jobs/s", "Medians of rounds that take turns. The first two have no queue, no decision and no API.")
    if scale := numbers.get("scale"):
        drawn["backlog.svg"] = backlog(scale, scale["jobs"])
    if load := numbers.get("load"):
        drawn["load.svg"] = delays(load)
    if peers := numbers.get("peers"):
        drawn["peers.svg"] = bars(
            "The same jobs from the shell, two at a time",
            [(name, rate, TEAL if name.startswith("berth") else FAINT, "")
             for name, _, rate, _ in peers if rate],
            "jobs/s", "xargs, parallel and task-spooler keep nothing on disk; the table tells what each keeps.")
    return drawn


def write(numbers, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in draw(numbers).items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
