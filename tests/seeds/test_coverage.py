"""docs/coming-from/coverage.md has every sentence of the documents, and is true."""

import os

import pytest

from promises import DOCUMENTS, KINDS, REPO, SHARED, lines_of, module_of, squeeze

PAGE = REPO / "docs" / "coming-from" / "coverage.md"


def marks_of(module):
    """(heading, sentence, test) in the order of the file."""
    for name, function in vars(module).items():
        if name.startswith("test_"):
            # Decorators are applied from the bottom up; the page has them as they are read.
            for mark in reversed(getattr(function, "pytestmark", [])):
                if mark.name == "promise":
                    yield mark.args[0], mark.args[1], mark.args[2], name


def cell(text):
    return " ".join(text.replace("|", "\\|").split())


def written():
    out = [
        "# What the documents promise, and what shows it\n",
        "One row for each sentence by which the document of an earlier scheduler promises something. Tests are in",
        "`tests/seeds`; they run the real programs on simulated GPUs. This page is written by",
        "`BERTH_BLESS=1 python3 -m pytest tests/seeds/test_coverage.py`.\n",
    ]
    for document, (_, title, page) in DOCUMENTS.items():
        module = module_of(document)
        out += [f"## {document}: [{title}]({page})\n", "| heading | sentence | shown by |", "|---|---|---|"]
        for _, heading, sentence, name in marks_of(module):
            out.append(f"| {cell(heading)} | {cell(sentence)} | `test_{document}.py::{name}` |")
        for row in module.ELSEWHERE:
            out.append(f"| {cell(row.heading)} | {cell(row.sentence)} | {row.kind}: {cell(row.instead)} |")
        out.append("")
    return "\n".join(out)


def test_the_page_is_what_the_tests_say():
    text = written()
    if os.environ.get("BERTH_BLESS") == "1":
        PAGE.write_text(text, "utf-8")
    assert PAGE.read_text("utf-8") == text, "bless it: BERTH_BLESS=1, then read the difference"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_no_test_shows_says_what_there_is_instead(document):
    for row in module_of(document).ELSEWHERE:
        assert row.kind in KINDS, row
        assert len(row.instead) > 10, row


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_sentence_stands_in_its_document_and_none_is_left_out(document):
    if not (SHARED / DOCUMENTS[document][0]).exists():
        pytest.skip("the documents are not here")
    module = module_of(document)
    lines = list(lines_of(document))
    whole = " ".join(line.text for line in lines)
    headings = {line.heading for line in lines}
    said = []
    for at, heading, sentence, name in marks_of(module):
        assert at == document, f"{name} belongs into test_{at}.py"
        said.append((name, heading, squeeze(sentence)))
    said += [(row.kind, row.heading, squeeze(row.sentence)) for row in module.ELSEWHERE]
    for name, heading, sentence in said:
        assert heading in headings, f"{name}: there is no heading '{heading}'"
        assert sentence in whole, f"{name}: the document does not say '{sentence}'"
    silent = [squeeze(text) for text in module.SILENT]
    missing = [
        f"{line.number}: {line.text}"
        for line in lines
        if line.text not in silent
        and not any(line.text in sentence or sentence in line.text for _, _, sentence in said)
    ]
    assert not missing, "nobody answers for these lines:\n" + "\n".join(missing)
    unused = [text for text in silent if not any(text == line.text for line in lines)]
    assert not unused, unused
