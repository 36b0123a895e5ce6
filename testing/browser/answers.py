"""A person answers questions in the inbox, and is told when an answer cannot be taken."""

from dashboard import check, expect, followed, play, say, shows

REFUSED = r"status of 4(04|10|12|22)"


def outcome(project, run):
    return next(one["outcome"] for one in project.listed() if one["run"] == run)


def scenario(project, viewer):
    run = project.run("ask", "Ship the release?", code=4)
    viewer.sign_in()
    inbox = viewer.open("/inbox")
    followed(inbox)
    # A page that no change reaches: its connection for changes is refused.
    stale = viewer.page(viewer.context(), expected=f"{REFUSED}|ERR_FAILED")
    stale.route("**/live/**", lambda route: route.abort())
    viewer.go(stale, "/inbox")
    shows(stale, "Ship the release?")
    check(inbox.title().startswith("Inbox (1)"), f"the title is {inbox.title()}")

    # A choice. The run is answered then: nothing drives it.
    inbox.get_by_role("button", name="yes", exact=True).click()
    shows(inbox, "It was answered, and waits to be resumed.")
    expect(inbox.get_by_role("button", name="Resume")).to_be_visible()
    # The message stays, whatever the page shows by now, until it is closed.
    shows(inbox, "it goes on when it is resumed", where="#toast")
    expect(inbox.locator("#toast a")).to_have_attribute("href", f"/runs/{run}")
    inbox.wait_for_timeout(7000)
    expect(inbox.locator("#toast")).to_be_visible()
    inbox.get_by_role("button", name="Close the message").click()
    expect(inbox.locator("#toast")).to_be_hidden()
    check(outcome(project, run) == "answered", f"the run is {outcome(project, run)}")
    viewer.check(inbox.title().startswith("Inbox ·"), f"nothing is asked, but the title is still '{inbox.title()}'")
    answer = [event for event in project.events(run) if event["kind"] == "answered"]
    check(len(answer) == 1 and "yes" in str(answer[0]), f"the answer is {answer}")

    # The same question from a page that is out of date.
    button = stale.get_by_role("button", name="no", exact=True)
    button.click()
    shows(stale, "is not open any more", "somebody may have answered it", where="form .result")
    expect(button).to_be_enabled()
    check(len([event for event in project.events(run) if event["kind"] == "answered"]) == 1, "the second answer was recorded")
    viewer.screenshot(stale, "answers-stale")
    say("a choice is recorded once; a page that is out of date says so")

    # The run goes on from its page, until it asks again.
    listed = viewer.open("/?view=needs-me")
    shows(listed, "It was answered, and waits to be resumed.")
    expect(listed.get_by_role("button", name="Resume")).to_be_visible()
    page = viewer.open(f"/runs/{run}")
    followed(page)
    shows(page, "answered")
    page.get_by_role("button", name="Resume").click()
    shows(page, "the run went on, and waits for an answer", where="#toast")
    shows(inbox, "What is it called?")
    shows(page, "What is it called?", "waiting")

    # A free text, with all that a text may have. An empty one is not sent.
    text = "Counterfoil “2”\nwith <b>two</b> lines & more"
    inbox.get_by_role("button", name="Answer").click()
    check(outcome(project, run) == "waiting", "an empty answer was taken")
    inbox.get_by_role("textbox", name="Answer").fill(text)
    inbox.get_by_role("button", name="Answer").click()
    shows(inbox, "It was answered, and waits to be resumed.")
    inbox.get_by_role("button", name="Close the message").click()
    answers = [str(event) for event in project.events(run) if event["kind"] == "answered"]
    check("with <b>two</b> lines & more" in answers[-1], f"the answer is {answers[-1]}")

    # An answer that has to match a pattern, on the page of the run.
    project.counterfoil("resume", run, code=4)
    shows(page, "Which version?", "It has to match [0-9]+[.][0-9]+")
    wrong = viewer.page(viewer.context(), expected=REFUSED)
    viewer.go(wrong, f"/runs/{run}")
    box = wrong.get_by_role("textbox", name="Answer")
    box.fill("two")
    wrong.get_by_role("button", name="Answer").click()
    shows(wrong, "[0-9]+[.][0-9]+", where="form .result")
    expect(box).to_have_value("two")
    check(outcome(project, run) == "waiting", "a wrong answer was taken")
    viewer.screenshot(wrong, "answers-refused")
    say("a wrong answer:", wrong.locator("form .result").inner_text())
    box.fill("2.0")
    wrong.get_by_role("button", name="Answer").click()
    shows(page, "answered")
    project.counterfoil("resume", run)
    shows(page, "✓ done")

    # Beside a question: what was claimed, and what was changed. The difference comes when it is opened.
    run = project.run("ship", "Boast about the parser", code=4)
    shows(inbox, "Is that right?", "refuted", "src/parser.rs")
    changes = inbox.locator("details.changes")
    expect(changes.locator(".fragment")).to_have_count(0)
    changes.locator("summary").first.click()
    expect(changes.locator(".fragment")).to_contain_text("notes.txt")
    changes.locator(".fragment details.diff summary").first.click()
    expect(changes.locator(".diff .added").first).to_contain_text("boasted")
    # What was loaded stays when the inbox changes.
    project.run("ask", "Ship a third one?", code=4)
    shows(inbox, "Ship a third one?")
    expect(changes.locator(".fragment")).to_contain_text("notes.txt")
    viewer.screenshot(inbox, "answers-changes")
    viewer.go(page, f"/runs/{run}/attempts/fix%231")
    shows(page, "+boasted", "This agent has no events that tell of tool calls.")

    # Cancelling asks first.
    run = project.run("ask", "Ship another one?", code=4)
    viewer.go(page, f"/runs/{run}")
    followed(page)
    asked = []
    viewer.answer_dialogs(page, asked)
    page.get_by_role("button", name="Cancel").click()
    shows(page, "cancelled")
    check(len(asked) == 1 and "Cancel this run?" in asked[0], f"it was asked {asked}")


play(scenario)
