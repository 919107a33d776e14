"""The watch over the pages can fail: it notices what no page may do."""

import pytest

from tests.browser.looking import visit

NOISE = """() => {
    console.error('a word on the console');
    new Image().src = 'http://outside.invalid/picture.png';
    document.body.append(document.createElement('button'));
    setTimeout(() => { throw new Error('an exception') });
}"""


def test_errors_and_requests_to_the_outside_are_noticed(browser, link):
    with pytest.raises(AssertionError) as noticed, visit(browser, link) as looking:
        looking.open("runs").evaluate(NOISE)
        looking.page.wait_for_timeout(200)  # what the page does next, it does on its own
    told = str(noticed.value)
    assert "a word on the console" in told
    assert "an exception" in told
    assert "outside.invalid" in told


def test_a_button_without_a_name_is_noticed(looking):
    looking.open("runs").evaluate("() => document.querySelector('main').append("
                                  "document.createElement('button'))")  # fmt: skip
    assert [found.split(":")[0] for found in looking.barriers()] == ["button-name"]
