"""The average step, single steps, the curves and what follows a chosen range."""

import re

from playwright.sync_api import expect

import strobe


def average(seen):
    return seen.locator("section[aria-label='Average step']")


def test_the_parts_of_the_average_step_add_up_to_scale(looking):
    seen = looking.open("run/demo/steps")
    track = average(seen).locator(".step-bar-track")
    whole = track.bounding_box()["width"]
    widths = [piece.bounding_box()["width"] for piece in track.locator(".step-piece").all()]
    assert abs(sum(widths) - whole) < 2
    shares = average(seen).locator("tbody tr").first.inner_text().split("\t")
    told = float(shares[4].rstrip("%")) / 100
    assert abs(widths[0] / whole - told) < 0.006  # the table rounds to a percent


def test_a_chosen_range_is_followed_by_all(looking, runs):
    with strobe.open_run(runs / "demo") as run:
        ((counted,),) = run.sql("SELECT steps FROM step_statistics WHERE part = 'step'").fetchall()
    seen = looking.open("run/demo/steps")
    expect(average(seen)).to_contain_text(f"mean of {counted} steps")
    seen.get_by_label("Last step").fill("4")
    seen.get_by_label("Last step").press("Enter")
    expect(average(seen)).to_contain_text(re.compile("mean of [34] steps"))
    expect(seen.locator("section[aria-label='All steps']")).to_contain_text("4 rows")
    assert looking.view == "run/demo/steps?steps=1%3A4"
    again = looking.open(looking.view)
    expect(average(again)).to_contain_text(re.compile("mean of [34] steps"))
    again.get_by_role("button", name="All steps").click()
    expect(average(again)).to_contain_text(f"mean of {counted} steps")


def test_dragging_over_the_curves_chooses_a_range(looking):
    seen = looking.open("run/demo/steps")
    plot = seen.locator(".u-over").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    middle = box["y"] + box["height"] / 2
    seen.mouse.move(box["x"] + box["width"] * 0.25, middle)
    seen.mouse.down()
    seen.mouse.move(box["x"] + box["width"] * 0.5, middle, steps=4)
    seen.mouse.up()
    expect(seen.get_by_role("button", name="All steps")).to_be_enabled()
    first, last = (int(n) for n in looking.view.split("steps=")[1].split("%3A"))
    assert (first, last) == (16, 30) or abs(first - 16) + abs(last - 30) <= 2
    looking.settled()


def test_a_single_step_is_shown_and_walked_through(looking):
    seen = looking.open("run/demo/steps?step=7")
    one = seen.locator("section[aria-label='Step 7']")
    expect(one.locator("tbody tr").first).to_contain_text("gap")
    seen.keyboard.press(".")
    expect(seen.locator("section[aria-label='Step 8']")).to_contain_text("backward")
    link = seen.get_by_role("link", name="Show on timeline")
    assert "t0=" in link.get_attribute("href")
    looking.settled()


def test_the_wait_for_data_stands_below_the_gap_and_the_way_back_leaves_the_step(looking):
    seen = looking.open("run/demo/steps")
    seen.locator("section[aria-label='All steps'] tbody tr").nth(2).click()
    one = seen.locator("section[aria-label='Step 3']")
    expect(one.locator("tbody tr").nth(1)).to_contain_text("including data wait")
    looking.settled()
    seen.go_back()
    expect(one).to_have_count(0)
    expect(average(seen)).to_be_visible()


def with_a_long_first_step(route):
    answer = route.fetch()
    body = answer.json()
    names = [column["name"] for column in body["columns"]]
    if body.get("rows"):
        for name in ("dur_ns", "longest_ns", "forward_ns"):
            body["rows"][0][names.index(name)] = 10**10
    route.fulfill(response=answer, json=body)


def test_long_steps_do_not_flatten_the_others(looking):
    looking.page.route("**/table/step-history*", with_a_long_first_step)
    seen = looking.open("run/demo/steps")
    curves = seen.locator("section[aria-label='Step time over the run']")
    expect(curves.get_by_role("button", name="Typical")).to_have_attribute("aria-pressed", "true")
    axis = curves.locator("canvas").evaluate("canvas => canvas.toDataURL()")
    curves.get_by_role("button", name="Full range").click()
    assert curves.locator("canvas").evaluate("canvas => canvas.toDataURL()") != axis
    curves.get_by_role("button", name="Log").click()
    expect(curves.get_by_role("button", name="Log")).to_have_attribute("aria-pressed", "true")
    assert looking.view.endswith("scale=log")
    assert looking.barriers() == []


def test_a_step_that_is_not_there(looking):
    seen = looking.open("run/demo/steps?step=900")
    expect(seen.locator("main")).to_contain_text("There is no step 900.")


def test_the_operators_at_the_edges_are_named(looking):
    seen = looking.open("run/demo/steps")
    edges = seen.locator("section[aria-label='First forward and last backward operator']")
    expect(edges).to_contain_text("aten::conv2d")
    expect(edges).to_contain_text("Net.features.0")


def test_ranks_are_chosen(looking):
    seen = looking.open("run/two-ranks/steps")
    seen.get_by_role("combobox", name="Rank").select_option("1")
    looking.settled()
    assert "rank=1" in looking.view
    expect(average(seen)).to_contain_text("mean of")
