"""A server that is called by a name, over HTTP, as in a team: for a browser, such a page is not secure. Everything works."""

from dashboard import check, followed, play, say, shows

NAME = "runs.test"
# What a browser says of every page of such a server: the header is for secure pages.
IGNORED = "Cross-Origin-Opener-Policy header has been ignored"


def scenario(project, viewer):
    run = project.run("ask", "Ship the release?", code=4)
    link = project.start_server(0, "--name", NAME).replace("127.0.0.1", NAME)
    project.base = link.split("/sign-in")[0]
    page = viewer.sign_in(link, IGNORED)
    check(page.url.startswith(f"http://{NAME}:"), f"the page is {page.url}")
    check(not page.evaluate("isSecureContext"), "the page is secure, so that this says nothing")
    viewer.go(page, "/inbox")
    followed(page)
    shows(page, "Ship the release?")
    page.get_by_role("button", name="yes", exact=True).click()
    shows(page, "It was answered, and waits to be resumed.")
    answers = [event for event in project.events(run) if event["kind"] == "answered"]
    check(len(answers) == 1, f"the answers are {answers}")
    page.get_by_role("button", name="Close the message").click()
    page.get_by_role("button", name="Resume").click()
    shows(page, "What is it called?")
    viewer.answer_dialogs(page, [])
    viewer.go(page, f"/runs/{run}")
    followed(page)
    page.get_by_role("button", name="Cancel").click()
    shows(page, "cancelled")
    viewer.go(page, "/playground")
    page.get_by_role("textbox", name="Text of the agent").fill('{"approved": true, "findings": []}')
    shows(page, "accepted", where="#checked")
    say("an answer, a resumed run, a cancelled one and a check, by name and without TLS")


play(scenario, flags=lambda _: [f"--host-resolver-rules=MAP {NAME} 127.0.0.1"])
