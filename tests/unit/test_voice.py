"""What users read keeps to the vocabulary."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from tests.support.documents.voice import ROOT, VOCABULARY, findings, texts, vocabulary

WORDS = vocabulary(VOCABULARY.read_text())
VOICE = (ROOT / "docs" / "contribute" / "voice.md").read_text()


def test_what_users_read_keeps_to_the_vocabulary() -> None:
    found = [f"{place}: {each}" for place, text in texts() for each in findings(text, WORDS)]

    assert found == []


def test_documents_errors_help_and_the_contract_are_all_read() -> None:
    lengths: dict[str, int] = defaultdict(int)
    for place, text in texts():
        lengths[re.split(r"[/.]", place)[0]] += len(text)

    assert lengths.keys() >= {"README", "CHANGELOG", "docs", "openapi", "cli", "core", "service"}
    assert min(lengths.values()) > 0


@pytest.mark.parametrize("phrase", WORDS)
def test_a_phrase_of_the_vocabulary_is_found_over_the_end_of_a_line(phrase: str) -> None:
    text = f"The file, {phrase.replace(' ', chr(10))}, and more."

    assert any(repr(phrase) in each for each in findings(text, WORDS))


def test_what_is_code_or_an_address_is_not_held_against_the_vocabulary() -> None:
    text = "`would go` and [a page](would-go.md#would-go), https://example.com/would-go"

    assert list(findings(text, {"would go": "x", "would-go": "x"})) == []


def test_the_page_about_the_voice_has_thirty_pairs_or_more() -> None:
    pairs = VOICE.partition("| before | after |\n|---|---|\n")[2].splitlines()

    assert len(pairs) >= 30
