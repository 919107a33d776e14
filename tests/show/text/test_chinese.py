"""Pages get the Chinese text of everything that an advice says."""

from strobe.advise import Advice
from strobe.advise.finding import Clear, Finding
from strobe.messages import CHINESE, in_language, message
from strobe.show.text.chinese import book


def test_a_book_has_all_that_the_page_shows():
    title, fix = message("excess-padding.title", length="64", used="16", share="30%"), "no message"
    clear = Clear(message("excess-padding.none"))
    advice = Advice(
        findings={"excess-padding": Finding(title, 0.1, 1.1, (fix,), ())}, clear={"gc-pause": clear}
    )
    found = book(advice)
    assert found[title] == in_language(title, CHINESE) and "30%" in found[title]
    assert found[clear.why] == in_language(clear.why, CHINESE)
    assert fix not in found and advice.verdict in found
