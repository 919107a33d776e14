"""Texts for people are checked for words that are not plain English."""

from scripts import prose


def test_a_word_that_is_not_plain_is_named_with_its_place_and_a_better_one():
    texts = iter([(3, "The options are told anew."), (4, "Nothing is wrong here.")])
    path = prose.ROOT / "docs" / "start.md"
    assert list(prose.problems(path, texts)) == [
        "docs/start.md:3: instead of 'told' write: reported, shown, printed",
        "docs/start.md:3: instead of 'anew' write: again",
    ]


def test_code_is_left_out(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("Use `told`.\n```sh\nstrobe told\n```\nEnd.\n", encoding="utf-8")
    assert list(prose.sentences(page)) == [(1, "Use ."), (5, "End.")]


def test_the_catalogue_is_read_in_english():
    path = prose.CATALOGUE / "verdict.toml"
    assert all(text.isascii() or "×" in text for _, text in prose.messages(path))
