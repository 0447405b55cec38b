"""What the documents of five earlier schedulers promise, and which test shows it.

A test names what it shows:

    @promise("000", "4. GPU 阈值", "The sentence, or the lines of a code block, as they stand there")
    def test_...

Sentences that no test can show stand in a list `ELSEWHERE` of their test file, each with what a user has
instead: names of internal modules, pages of the console, what is different and why, and what is still open. Lines that promise nothing
(headings are known by themselves) stand in `SILENT`. `docs/coming-from/coverage.md` is written from all of
this; test_coverage.py holds it against the documents, where they are there to read.
"""

import dataclasses
import importlib
import pathlib
import re

import pytest

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parents[1]
SHARED = REPO.parent / "shared" / "seeds"

DOCUMENTS = {
    "000": ("000_7cb33507ba7a877b.txt", "FedWhat: experiments from a job file", "fedwhat.md"),
    "001": ("001_75ed22b06b57c7ae.txt", "compete_gpu_retry: queues, retries, backoff", "compete-gpu.md"),
    "002": ("002_a064a83e9285ba42.txt", "GPU resource manager of a cluster", "gpu-manager.md"),
    "003": ("003_6902d63921457d78.txt", "compete_gpu_retry 2.2: several cards and a console", "compete-gpu-2.md"),
    "004": ("004_8e1769aa168368d2.txt", "gpulimit: a server and its client", "gpulimit.md"),
}


@dataclasses.dataclass(frozen=True)
class Elsewhere:
    """A sentence that is shown by no test here."""

    heading: str
    sentence: str
    kind: str  # one of KINDS
    instead: str  # what a user has instead, or what is missing


KINDS = ("internal module", "API and console", "different", "open")


def promise(document, heading, sentence):
    """Marks a test: it shows this sentence of that document."""
    assert document in DOCUMENTS, document
    return pytest.mark.promise(document, heading, sentence)


def module_of(document):
    return importlib.import_module(f"test_{document}")


# People who are named in the documents need not be named here.
PEOPLE = {
    r"[\w.+-]+@[\w-]+(\.[\w-]+)+": "you@example.org",
    r"/users/\w+": "/users/you",
    r"/home/\w+": "/home/you",
    r"维护者：\w+": "维护者：you",
}


def squeeze(text):
    """One spelling for text that is broken, indented, quoted or ticked in different ways, whomever
    it names."""
    for pattern, instead in PEOPLE.items():
        text = re.sub(pattern, instead, text)
    return re.sub(r"[\s`*|>\"'“”]+", " ", text).strip()


@dataclasses.dataclass(frozen=True)
class Line:
    number: int
    heading: str
    text: str


def lines_of(document):
    """The lines of a document that say something, each with the heading it stands under."""
    heading, fenced = "", False
    for number, raw in enumerate((SHARED / DOCUMENTS[document][0]).read_text("utf-8").splitlines(), 1):
        if raw.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and re.match(r"#{1,6} ", raw):
            heading = raw.lstrip("#").strip()
        elif squeeze(raw) and not re.fullmatch(r"[\s|:+\-=─│├└┌┐┘┬┴┼]*", raw):
            yield Line(number, heading, squeeze(raw))
