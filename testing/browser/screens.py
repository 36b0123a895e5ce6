"""Every screen opens, in light, dark and at the width of a phone, without a complaint of the browser."""

from dashboard import LOOKS, check, expect, look, play, say, shows


def scenario(project, viewer):
    first = viewer.sign_in()
    look(viewer, first, "empty", "No runs yet", "counterfoil demo")
    page = viewer.open("/inbox")
    look(viewer, page, "inbox-empty", "No open question")

    good = project.run("fix", "Write the notes")
    boast = project.run("fix", "Boast about the parser")
    blunder = project.run("fix", "Blunder over the contract", code=1)
    asking = project.run("ask", "Ship the release to everybody?", code=4)
    failed = project.report(blunder)["attempts"][0]
    check(failed["outcome"] == "contract", f"the attempt is {failed['outcome']}")
    attempt = "fix%231"
    expect(first.locator("[data-rows] tbody tr")).to_have_count(4)

    screens = {
        "runs": ("/", ["done", "failed", "waiting", "Boast about the parser", "contract"]),
        "runs-failed": ("/?view=failed", ["Blunder over the contract"]),
        "run": (f"/runs/{blunder}", ["Blunder over the contract", "failed", "Try again", "Workflow", "Attempts"]),
        "run-refuted": (f"/runs/{boast}", ["done", "refuted", "src/parser.rs"]),
        "attempt": (f"/runs/{blunder}/attempts/{attempt}", ["Violations", "C0201", "awful", "What the agent was asked"]),
        "attempt-good": (f"/runs/{good}/attempts/{attempt}", ["The notes are written.", "verified", "notes.txt", "Tool calls", "raw difference"]),
        "claims": (f"/runs/{boast}/claims", ["files_changed", "refuted", "src/parser.rs", "claimed", "observed"]),
        "inbox": ("/inbox", ["Ship the release to everybody?", "yes", "no", "later"]),
        "waiting": (f"/runs/{asking}", ["Ship the release to everybody?", "waiting"]),
    }
    for name, (path, texts) in screens.items():
        viewer.go(page, path)
        look(viewer, page, name, *texts)
        diagrams = page.locator(".graph svg").count()
        viewer.check(diagrams == (name in ("run", "run-refuted", "waiting")), f"{name} has {diagrams} diagrams")

    # What an address names may not exist.
    page = viewer.open("/runs/0199b8a6", expected="status of 404")
    look(viewer, page, "not-found", "Not Found")
    viewer.cookies = None
    page = viewer.open("/", expected="status of 401")
    look(viewer, page, "signed-out", "counterfoil ui")
    page = viewer.page(viewer.context(), expected="status of 401")
    page.goto(project.link)
    shows(page, "the link was used before")

    # The theme that was chosen stays, on every page.
    first.get_by_role("button", name="Change between light and dark").click()
    theme = first.evaluate("document.documentElement.dataset.theme")
    first.reload()
    check(first.evaluate("document.documentElement.dataset.theme") == theme, "the theme is another one after a reload")
    say(f"{len(screens)} screens in {len(LOOKS)} looks")


play(scenario)
