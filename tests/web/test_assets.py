import os
import time

from strobe.web import assets
from strobe.web.assets import Assets


def test_what_is_in_the_folder_has_an_address_and_nothing_else(tmp_path):
    (tmp_path / "static" / "assets").mkdir(parents=True)
    (tmp_path / "static" / "index.html").write_text("<p>page")
    (tmp_path / "static" / "assets" / "app-1a2b.js").write_text("let a = 1;" * 500)
    (tmp_path / "secret.txt").write_text("secret")
    found = Assets(tmp_path / "static")
    assert found.get("").body == b"<p>page" and not found.get("").is_fixed
    script = found.get("assets/app-1a2b.js")
    assert script.is_fixed and script.media_type == "text/javascript; charset=utf-8"
    assert script.packed is not None and len(script.packed) < len(script.body)
    for address in ("../secret.txt", "/secret.txt", "assets", "assets/../../secret.txt", "x"):
        assert found.get(address) is None


def test_a_new_build_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(assets, "_LOOK_EVERY_S", -1)
    page = tmp_path / "index.html"
    page.write_text("old")
    found = Assets(tmp_path)
    before = found.get("").tag
    page.write_text("new")
    os.utime(page, (time.time() + 5, time.time() + 5))
    assert found.get("").body == b"new" and found.get("").tag != before


def test_a_checkout_without_pages_has_none(tmp_path):
    assert Assets(tmp_path / "nothing").get("") is None


def test_pages_are_kept_by_the_browser_by_name(client):
    page = client.ask("/")
    assert page.status == 200 and page.headers["content-type"].startswith("text/html")
    again = client.ask("/", headers={"If-None-Match": page.headers["etag"]})
    assert again.status == 304 and page.headers["cache-control"] == "private, no-cache"
