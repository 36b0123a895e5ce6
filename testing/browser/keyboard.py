"""Everything can be done with keys, and an update of the page takes nothing away from who is using it."""

import re

from dashboard import expect, followed, play, say, shows


def focused(page):
    return page.evaluate("document.activeElement.getAttribute('href') ?? document.activeElement.id ?? ''")


def selected(page):
    return page.evaluate("[...document.querySelectorAll('[data-rows] tr.at')].map(row => row.dataset.href)")


def scenario(project, viewer):
    ids = [project.run("fix", "Write the notes"), project.run("fix", "Blunder over the contract", code=1)]
    ids.append(project.run("fix", "Boast about the parser"))
    first, second, third = [f"/runs/{run}" for run in reversed(ids)]
    page = viewer.sign_in()
    followed(page)

    # Rows.
    for key, expected in [
        ("j", first),
        ("j", second),
        ("j", third),
        ("j", third),
        ("k", second),
        ("k", first),
        ("k", first),
        ("j", second),
    ]:
        page.keyboard.press(key)
        viewer.check(selected(page) == [expected], f"after '{key}', {selected(page)} is selected and not {expected}")
        viewer.check(focused(page) == expected, f"after '{key}', {focused(page)} has the focus and not {expected}")

    # A new run comes above the row, and other runs change: the row stays selected, and keeps the focus.
    project.run("fix", "Write more notes")
    expect(page.locator("[data-rows] tbody tr")).to_have_count(4)
    shows(page, "Write more notes")
    viewer.check(selected(page) == [second], f"after an update, {selected(page)} is selected and not {second}")
    viewer.check(focused(page) == second, f"after an update, {focused(page)} has the focus and not {second}")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/*")
    viewer.check(page.url.endswith(second), f"Enter opened {page.url} and not {second}")
    viewer.go(page, second)
    say("j, k and Enter; the row stays when another run comes")

    # From the run to its attempt and through the violations.
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/attempts/fix%231")
    violating = page.url
    violations = page.locator(".violation")
    expect(violations.first).to_be_visible()
    count = violations.count()
    viewer.check(count >= 3, f"{count} violations")
    for key, number in [("]", 1), ("]", 2), ("[", 1), ("[", count), ("]", 1)]:
        page.keyboard.press(key)
        viewer.check(focused(page) == f"violation-{number}", f"after '{key}', {focused(page)} has the focus and not violation {number}")
    box = violations.first.bounding_box()
    viewer.check(0 <= box["y"] < 900, f"the violation is not in the window: {box}")
    say(f"[ and ] through {count} violations")

    # From a reply without violations to one that was rejected.
    repaired = project.run("fix", "Stumble once")
    viewer.go(page, f"/runs/{repaired}/attempts/fix%231")
    followed(page)
    expect(page.locator(".violation")).to_have_count(0)
    page.keyboard.press("]")
    shows(page, "no later one was rejected", where="#toast")
    page.keyboard.press("[")
    page.wait_for_url("**reply=1#violation-1")
    viewer.check(focused(page) == "violation-1", f"{focused(page)} has the focus in the rejected reply")
    page.go_back()
    page.goto(violating)

    # A search in the reply opens its text, and shows what it finds.
    address = page.url
    text = page.locator("details#text")
    viewer.check(text.get_attribute("open") is None, "the text is open although there are violations")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Find in the reply")).to_be_focused()
    page.keyboard.type("awful")
    page.keyboard.press("Enter")
    page.wait_for_url("**find=awful*")
    expect(page.locator(".found mark").first).to_be_visible()
    page.locator(".found a").first.click()
    page.wait_for_url("**at=*#L*")
    expect(page.locator("#text li:target mark")).to_be_visible()
    viewer.screenshot(page, "keyboard-found")
    page.goto(address)
    followed(page)
    page.keyboard.press("]")

    # The list of keys.
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    viewer.check(focused(page) == "violation-1", f"after the dialog, {focused(page)} has the focus")

    # To other pages; a `g` alone does nothing.
    page.keyboard.press("g")
    page.keyboard.press("i")
    page.wait_for_url("**/inbox")
    page.keyboard.press("i")
    page.keyboard.press("g")
    page.keyboard.press("r")
    page.wait_for_url(re.compile("/$"))

    # A search. In it, keys are letters; what is typed survives an update, and Enter searches.
    followed(page)
    page.keyboard.press("/")
    search = page.get_by_role("searchbox", name="Search")
    expect(search).to_be_focused()
    page.keyboard.type("fjk?g")
    project.run("fix", "Boast again")
    shows(page, "Boast again")
    expect(search).to_have_value("fjk?g")
    expect(search).to_be_focused()
    viewer.check(not selected(page), "keys in the search moved the selection")
    search.fill("ask")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=ask*")
    shows(page, "No run matches")
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    viewer.check(focused(page) == "", "Escape did not leave the search")
    say("?, /, Escape, g i and g r")

    # What is typed into an answer survives, with the focus and the place of the cursor.
    asked = project.run("ask", "Ship it?", code=4)
    project.counterfoil("answer", asked, "choose", "yes")
    project.counterfoil("resume", asked, code=4)
    viewer.go(page, "/inbox")
    followed(page)
    box = page.get_by_role("textbox", name="Answer")
    box.focus()
    page.keyboard.type("Counterfoil, the second")
    for _ in "second":
        page.keyboard.press("ArrowLeft")
    project.run("ask", "Ship another one?", code=4)
    shows(page, "Ship another one?")
    expect(box).to_have_value("Counterfoil, the second")
    expect(box).to_be_focused()
    page.keyboard.type("very ")
    expect(box).to_have_value("Counterfoil, the very second")

    # Everything can be reached with Tab, and it can be seen where one is.
    page.reload()
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        at = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e); return e === document.body ? null :
            [(e.textContent.trim() || e.ariaLabel || e.name || e.id).slice(0, 30), s.outlineStyle !== 'none' || s.boxShadow !== 'none'] }"""
        )
        if at is None:
            break
        reached.append(at)
    names = [name for name, _ in reached]
    for name in ["Skip to the content", "Runs", "Inbox", "◐", "yes", "no", "later", "Answer"]:
        viewer.check(name in names, f"'{name}' is not reached with Tab, but {names}")
    viewer.check(all(visible for _, visible in reached), f"the focus cannot be seen on some of {reached}")
    say(f"{len(reached)} stops with Tab")


play(scenario)
