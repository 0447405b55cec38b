"""What docs/failures.md promises, and what a user is shown: the two sides of test_edge_cases.py."""

import json
import re
import typing

from berthlib import REPO

PAGE = REPO / "docs" / "failures.md"


class Seen(typing.NamedTuple):
    state: str
    failure_class: str | None
    message: str | None


def rows_of(text):
    """The rows of the page's case tables: {slug: Seen}, the message still with its placeholders."""
    rows, in_table = {}, False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if not cells:
            in_table = False
        elif cells[0] == "case":
            assert cells == ["case", "what happened", "state", "class", "message", "what to do"]
            in_table = True
        elif in_table and not set(cells[0]) <= set("-: "):
            assert len(cells) == 6, f"not six cells: {line}"
            slug, _, state, failure_class, message, _ = cells
            assert slug not in rows, f"{slug} stands twice in {PAGE.name}"
            nothing = lambda cell: None if cell == "–" else cell.strip("`")
            rows[slug] = Seen(state, nothing(failure_class), nothing(message))
    return rows


ROWS = rows_of(PAGE.read_text())
CASES = {}


def case(slug):
    def enter(function):
        assert slug not in CASES
        CASES[slug] = function
        return function

    return enter


def pattern(message):
    """`<…>` stands for anything, the rest for itself."""
    return ".+".join(re.escape(part) for part in re.split(r"<[^<>]*>", message))


def fits(seen, row):
    if (seen.state, seen.failure_class) != (row.state, row.failure_class):
        return False
    if row.message is None or seen.message is None:
        return row.message == seen.message
    return re.fullmatch(pattern(row.message), seen.message) is not None


class World:
    """What a case gets: instances, a directory, and what the user would be shown."""

    def __init__(self, make_instance, directory):
        self.make_instance = make_instance
        self.directory = directory
        self._berth = None

    @property
    def berth(self):
        if self._berth is None:
            self._berth = self.make_instance()
            self._berth.start()
        return self._berth

    def run(self, *words, **fields):
        """Submits one job, waits for its end, and looks."""
        return self.look(self.berth.submit_one(*words, **fields))

    def look(self, job_id, berth=None):
        berth = berth or self.berth
        berth.wait_one(job_id)
        return shown(berth, job_id)

    def file(self, name, text, mode=0o644):
        path = self.directory / name
        path.write_text(text)
        path.chmod(mode)
        return path


def shown(berth, job_id):
    """What `berth show` prints about a job; its JSON must agree."""
    facts = {}
    for line in berth.cli("show", job_id, check=0).stdout.split("\n\n")[0].splitlines():
        facts.setdefault(line[:12].strip(), line[13:])
    state, _, message = facts["state"].partition(": ")
    told = json.loads(berth.cli("show", job_id, "--json", check=0).stdout)["job"]
    assert (told["state"], told["failure_class"]) == (state, facts.get("failure"))
    assert (told["message"] or "") == message
    return Seen(state, facts.get("failure"), message or None)


def refused(done):
    """What a command says that did not submit anything."""
    assert done.returncode == 1 and done.stdout == "", done
    assert done.stderr.startswith("berth: "), done
    return Seen("refused", None, done.stderr.removeprefix("berth: ").strip())
