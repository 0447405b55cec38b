#!/usr/bin/env python3
"""Draws the pictures of the guide beside itself.

  draw.py [FOLDER]

Run it after a change here or of the tables in strategies.md; a test compares the files with what it draws.
"""

import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))

import canvas  # noqa: E402
import ordering  # noqa: E402, F401
import placing  # noqa: E402, F401
from canvas import BLUE, FAINT, FREE, INK, ORANGE, TEAL, WHITE, Canvas  # noqa: E402

GUIDE = Path(__file__).resolve().parent.parent


def table(page, name):
    """The rows of a table that guide_test writes."""
    text = (GUIDE / page).read_text()
    block = re.search(rf"<!-- {name}: .*?-->\n(.*?)<!-- end", text, re.S).group(1)
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in block.strip().splitlines()]
    return rows[2:]


def strategy(name, taken):
    """Four cards before, and after three jobs of 6 GiB."""
    c = Canvas(720, 178, f"{name}: four cards before and after three jobs")
    cards = [(what, int(free.split()[0]), busy) for _, what, free, busy in table("strategies.md", "cards")]
    width, unit = 70, 4
    for side, after in ((24, False), (392, True)):
        c.text(side, 26, "after three jobs of 6 GiB: A, B, C" if after else "before", 13, FAINT)
        for index, (what, free, busy) in enumerate(cards):
            left, bottom = side + index * (width + 8), 134
            c.rect(left, bottom - 24 * unit, width, 24 * unit, FREE)
            used = 24 - free
            own = "yours" in what
            c.rect(left, bottom - used * unit, width, used * unit, BLUE if own else ORANGE)
            if used * unit > 20:
                c.text(left + width / 2, bottom - used * unit / 2 + 4, "yours" if own else "other", 11, WHITE, "middle")
            level = used
            for letter, card in zip("ABC", taken) if after else ():
                if card == index:
                    level += 6
                    c.rect(left, bottom - level * unit, width, 6 * unit, TEAL, WHITE)
                    c.text(left + width / 2, bottom - level * unit + 17, letter, 13, WHITE, "middle", "bold")
            c.rect(left, bottom - 24 * unit, width, 24 * unit, "none", INK)
            c.text(left + width / 2, bottom + 16, f"GPU {index}", 11, INK, "middle")
            if not after:
                c.text(left + width / 2, bottom + 31, f"busy {busy}", 11, FAINT, "middle")
    c.arrow(348, 86, 380, 86, INK, 2)
    return c.svg()


def draw_all():
    """{file name: its text}"""
    drawn = {name: draw() for name, draw in canvas.PICTURES.items()}
    for name, *cards in table("strategies.md", "choices"):
        drawn[f"strategy-{name}.svg"] = strategy(name, [int(card.split()[1]) for card in cards])
    return drawn


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name, text in draw_all().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
