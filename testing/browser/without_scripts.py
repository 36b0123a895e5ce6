"""Without JavaScript every page can be read, and its links and its search work."""

import re

from dashboard import check, expect, play, say, shows


def scenario(project, viewer):
    boast = project.run("fix", "Boast about the parser")
    blunder = project.run("fix", "Blunder over the contract", code=1)
    asking = project.run("ask", "Ship the release?", code=4)
    page = viewer.sign_in(java_script_enabled=False)
    shows(page, "Boast about the parser", "Blunder over the contract", "Ship the release?", "waiting")

    # From the list to the run, to its attempt, to a reply and back.
    page.get_by_role("link", name="Failed 1").click()
    expect(page.locator("[data-rows] tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Blunder over the contract").click()
    page.wait_for_url(f"**/runs/{blunder}")
    shows(page, "failed", "Attempts", "Workflow")
    expect(page.get_by_role("region", name="Diagram of the workflow")).to_be_visible()
    page.get_by_text("The same as a table").click()
    expect(page.get_by_role("rowheader", name="fix").last).to_be_visible()
    page.locator("[data-rows]").get_by_role("link", name="fix").click()
    shows(page, "Violations", "C0201", "awful")
    page.get_by_role("navigation", name="Replies").get_by_role("link", name="1").click()
    shows(page, "Reply 1 of 2")
    page.get_by_role("link", name="line 3", exact=True).first.click()
    expect(page.locator("#L3")).to_be_visible()
    page.get_by_role("searchbox", name="Find in the reply").fill("awful")
    page.get_by_role("button", name="Find").click()
    expect(page.locator(".found mark").first).to_be_visible()
    page.get_by_text("What the agent was asked").click()
    expect(page.locator("#prompt pre")).to_be_visible()
    page.get_by_role("link", name="Runs", exact=True).first.click()
    page.wait_for_url(re.compile("/$"))

    # A search and an order.
    page.get_by_role("searchbox", name="Search").fill(boast)
    page.get_by_role("combobox", name="Order").select_option("oldest first")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**sort=oldest*")
    expect(page.locator("[data-rows] tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Boast about the parser").click()
    page.get_by_role("link", name="All claims").click()
    shows(page, "refuted", "src/parser.rs", "claimed")

    # Answers need JavaScript: nobody may believe that an answer was given.
    page.get_by_role("link", name="Inbox").click()
    shows(page, "Ship the release?")
    viewer.screenshot(page, "without-scripts-inbox")
    expect(page.get_by_role("button", name="yes", exact=True)).to_be_disabled()
    shows(page, "This needs JavaScript. In a terminal:", f"counterfoil answer {asking}")
    viewer.go(page, f"/runs/{blunder}")
    page.get_by_text("Try again…").click()
    expect(page.get_by_role("button", name="Continue the run")).to_be_disabled()
    shows(page, f"counterfoil resume {blunder} --because")
    check(project.report(asking)["outcome"] == "waiting", "the question was answered")
    say("every page can be read without JavaScript")


play(scenario)
