"""What agents and users write is text, whatever it looks like, also in what comes to an open page later."""

from dashboard import check, expect, followed, play, say, shows

SCRIPT = "<script>window.__pwned = 'task'</script>"
TASK = f"""Deceive {SCRIPT}"><img src=x onerror="window.__pwned = 'task'"> </div></hx-partial><a href="javascript:alert(1)" hx-get="/x" hx-trigger="load">here</a>"""
REPLY = """<script>window.__pwned = 'reply'</script>"><img src=x onerror="window.__pwned = 'image'">javascript:alert(1)"""


def assert_harmless(viewer, page):
    check(page.evaluate("window.__pwned === undefined"), f"{page.url}: a script ran: {page.evaluate('window.__pwned')}")
    found = page.evaluate(
        """() => [...document.querySelectorAll("*")].flatMap((e) => [...e.attributes].map((a) => [e.tagName, a.name, a.value]))
        .filter(([tag, name, value]) => /^on|^hx-(get|post|trigger)/.test(name) || /^\\s*javascript:/i.test(value) && name !== "title"
          || (tag === "IMG" || tag === "SCRIPT") && !value.startsWith("/assets/") && name === "src")"""
    )
    check(not found, f"{page.url}: text became markup: {found}")
    check(page.locator("main script, main img, main iframe").count() == 0, f"{page.url}: text became elements")


def scenario(project, viewer):
    runs = viewer.sign_in()
    inbox = viewer.open("/inbox")
    for page in (runs, inbox):
        followed(page)
    # The pages are open while this comes.
    deceit = project.run("fix", TASK)
    asking = project.run("ask", TASK, code=4)
    blunder = project.run("fix", REPLY, code=1)
    shows(runs, SCRIPT, """onerror="window.__pwned = 'task'">""")
    shows(inbox, SCRIPT)
    expect(runs.locator("[data-rows] tbody tr")).to_have_count(3)
    expect(runs.locator("#runs-head, #runs-list")).to_have_count(2)
    for page in (runs, inbox):
        assert_harmless(viewer, page)

    screens = {
        f"/runs/{deceit}": [SCRIPT, REPLY],
        f"/runs/{deceit}/claims": [REPLY],
        f"/runs/{deceit}/attempts/fix%231": [REPLY, "refuted"],
        f"/runs/{asking}": [SCRIPT],
        f"/runs/{blunder}": [REPLY],
        f"/runs/{blunder}/attempts/fix%231": [REPLY, "Violations"],
        "/?q=%3Cscript%3Ewindow.__pwned%3D1%3C/script%3E%22%3E%3Cimg%20src%3Dx%20onerror%3D%22window.__pwned%3D1%22%3E": ["No run matches"],
        f"/runs/{deceit}/claims?q=%22%3E%3Cscript%3Ewindow.__pwned%3D1%3C/script%3E": ["No claim"],
    }
    page = viewer.open("/")
    links = set()
    for path, texts in screens.items():
        viewer.go(page, path)
        for text in texts:
            shows(page, " ".join(text.split()))
        page.wait_for_timeout(50)
        assert_harmless(viewer, page)
        links |= set(
            page.evaluate(
                "[...document.querySelectorAll('a')].map(a => String(a.href?.baseVal ? new URL(a.href.baseVal, location) : a.href))"
            )
        )
        if path == f"/runs/{deceit}":
            viewer.screenshot(page, "hostile-run")
    strange = [link for link in links if not link.startswith(project.base)]
    check(not strange, f"links lead away: {strange}")

    # The raw texts are never a page.
    raw = [link for link in links if "/api/" in link]
    check(len(raw) >= 4, f"the raw texts are {raw}")
    for link in raw:
        answer = page.context.request.get(link)
        kind = answer.headers["content-type"]
        check(answer.ok and kind.startswith("text/plain"), f"{link}: {answer.status} {kind}")
        check(answer.headers["x-content-type-options"] == "nosniff", f"{link} may be sniffed")
        page.goto(link)
        check(page.evaluate("window.__pwned === undefined"), f"{link}: a script ran")
    # A path that does not exist is said as text.
    wrong = viewer.open("/runs/%3Cimg%20src%3Dx%20onerror%3D%22window.__pwned%3D1%22%3E", expected=r"status of 404")
    shows(wrong, "Not Found")
    assert_harmless(viewer, wrong)
    say(f"{len(screens)} screens and {len(raw)} raw texts; {len(links)} links, none leads away")


play(scenario)
