"""The input pipeline: starved steps, the stages as a graph, a queue over time."""

import re

from playwright.sync_api import expect

import strobe
from tests.browser.looking import Visit

# What is behind depends on how busy the machine is; the page has to say what the tables say.
TITLES = {
    "reading": "Reading", "transform": "Transform", "no core": "Waiting for CPU",
    "collate": "Collate", "transfer": "Transfer", "starting": "Loader start-up",
}  # fmt: skip


def test_starved_steps_are_counted_by_the_stage_that_was_behind(looking: Visit, runs):
    with strobe.open_run(runs / "demo") as run:
        query = "SELECT stage, steps FROM data_shortages"
        counted = {TITLES[stage]: steps for stage, steps in run.sql(query).fetchall()}
    page = looking.open("run/demo/pipeline")
    stages = page.get_by_role("figure", name=re.compile("by the stage")).get_by_role("listitem")
    expect(stages).to_have_count(len(counted))
    for stage, steps in counted.items():
        expect(stages.filter(has_text=stage)).to_contain_text(f"{steps} steps")
    rows = page.get_by_role("group", name="List of waiting steps").locator("tbody tr")
    expect(rows.first).to_contain_text(re.compile("|".join(counted)))


def test_the_stage_at_fault_is_marked_with_the_reason(looking: Visit, runs):
    with strobe.open_run(runs / "demo") as run:
        query = "SELECT stage, reason FROM data_pipeline WHERE is_at_fault"
        ((stage, reason),) = run.sql(query).fetchall()
    told = reason[0].upper() + reason[1:]
    page = looking.open("run/demo/pipeline?tab=pipeline")
    expect(page.locator(".graph-stage.is-at-fault")).to_contain_text(TITLES[stage])
    expect(page.locator("main")).to_contain_text(f"Bottleneck: {TITLES[stage]}. {told}")


def test_a_queue_is_shown_over_time_with_its_neighbours(looking: Visit):
    page = looking.open("run/fixed/pipeline?tab=pipeline")
    page.get_by_role("button", name=re.compile("loader 1 ready batches")).click()
    expect(page).to_have_url(re.compile("queue=loader"))
    page = looking.settled()
    expect(page.locator("main")).to_contain_text("Consumer")
    legend = page.get_by_role("figure", name="Queue length per step")
    expect(legend).to_contain_text("loader 1 ready batches")
    expect(legend).to_contain_text("loader 1 orders")


def test_branches_meet_in_the_stage_that_they_feed(looking: Visit):
    def told(route):
        answer = route.fetch()
        body = answer.json()
        names = [column["name"] for column in body["columns"]]
        rows = [("Reader_2", "Zip_1", 2), ("Reader_3", "Zip_1", 4), ("Zip_1", "training", 1),
                ("training", None, None)]  # fmt: skip
        known = [{"rank": 0, "loader": 1, "position": at, "stage": stage, "feeds": feeds,
                  "workers": workers, "is_at_fault": False}
                 for at, (stage, feeds, workers) in enumerate(rows)]  # fmt: skip
        body |= {"total": 4, "rows": [[row.get(name) for name in names] for row in known]}
        route.fulfill(response=answer, json=body)

    looking.page.route("**/table/data-pipeline*", told)
    page = looking.open("run/fixed/pipeline?tab=pipeline")
    branches = page.locator(".graph-branch")
    expect(branches).to_have_count(2)
    expect(branches.nth(0)).to_contain_text("Reader_2")
    expect(branches.nth(1)).to_contain_text("4 workersReader_3")
    expect(page.locator(".graph > .graph-part")).to_have_text(
        [re.compile("Zip_1"), re.compile("Training")]
    )


def test_a_trace_without_a_pipeline_says_so(looking: Visit):
    page = looking.open("run/gpu/pipeline?tab=pipeline")
    expect(page.locator("main")).to_contain_text("No input pipeline in this run")
