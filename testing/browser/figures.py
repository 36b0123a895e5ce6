"""The pages about all runs: figures that lead to their attempts, claims that lead to themselves, and the playground, which
checks a text while it is typed."""

from dashboard import check, expect, look, play, say, shows, wait_until

DEFINITION = "contract: acme/check\nversion: 1\nfields: { ok: boolean, level: low | high }\n"


def counted(viewer, page, path):
    """Opens a page about all runs once all of them are counted."""
    def is_counted():
        viewer.go(page, path)
        return "were read so far" not in page.locator("body").inner_text()
    wait_until("all runs are counted", is_counted)


def scenario(project, viewer):
    viewer.sign_in()
    page = viewer.open("/health")
    look(viewer, page, "health-empty", "No figures yet")
    viewer.go(page, "/claims")
    look(viewer, page, "all-claims-empty", "No claims yet")

    project.run("fix", "Write the notes")
    boast = project.run("fix", "Boast about the parser")
    project.run("fix", "Blunder over the contract", code=1)

    # Figures, by each property, and the attempts behind a cell.
    for by in ["field", "agent", "model", "version"]:
        counted(viewer, page, f"/health?by={by}")
        look(viewer, page, f"health-{by}", "Refuted claims", "Violating replies")
    counted(viewer, page, "/health")
    row = page.locator("[data-rows] tbody tr").first
    all_attempts = row.locator("td[data-label=Attempts] a").first
    count = int(all_attempts.inner_text())
    check(count == 3, f"{count} attempts")
    all_attempts.click()
    page.wait_for_url("**/health/attempts?*")
    expect(page.locator("[data-rows] tbody tr")).to_have_count(count)
    look(viewer, page, "health-attempts", "Attempts", "wrong result")
    page.get_by_role("navigation", name="Which attempts").get_by_role("link", name="Violations").click()
    expect(page.locator("[data-rows] tbody tr")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/attempts/fix%231")
    shows(page, "Violations", "C0201")
    say("a cell of the figures leads to its attempts")

    # Claims of all runs. One leads to itself, open and in sight.
    counted(viewer, page, "/claims")
    look(viewer, page, "all-claims", "files_changed")
    page.locator("[data-rows] tbody tr").get_by_role("link").first.click()
    page.wait_for_url("**/claims?*")
    look(viewer, page, "claim-entries", "refuted", "src/parser.rs")
    page.locator("[data-rows] tbody tr", has_text="refuted").first.locator("td[data-label=Attempt] a").first.click()
    page.wait_for_url(f"**/runs/{boast}/attempts/**#claim-*")
    claim = page.locator("details.claim:target")
    expect(claim).to_have_attribute("open", "")
    box = claim.bounding_box()
    viewer.check(0 <= box["y"] < 900, f"the claim is not in the window: {box}")
    say("a claim of all runs leads to itself")

    # The playground. What is typed is checked without a click.
    viewer.go(page, "/playground")
    look(viewer, page, "playground-empty", "Playground")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("textbox", name="Definition").fill(DEFINITION)
    text = page.get_by_role("textbox", name="Text of the agent")
    text.focus()
    page.keyboard.type("Here it is: {")
    expect(page.locator("#checked .outcome")).to_be_visible()
    page.keyboard.type('"ok": true, "level": "low"}')
    shows(page, "accepted", "Candidates", "decides", where="#checked")
    expect(text).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.type(' or rather {"ok": 1, "level": "none"}')
    shows(page, "rejected", "Violations", "by itself, it would be accepted", where="#checked")
    expect(page.locator("#checked mark").first).to_be_visible()
    look(viewer, page, "playground", "before the one that decides")
    say("the playground checks what is typed")


play(scenario)
