"""Connections break, and the server stops: the page says so, and shows what is true as soon as it can."""

import re
import signal
import socket
import threading
from urllib.parse import urlsplit

from dashboard import check, expect, followed, play, say, shows, wait_until

STEPS = ["one", "two", "three", "four"]


class Proxy:
    """Passes bytes between a browser and the server, until it is cut."""

    def __init__(self, port):
        self.target = port
        self.cut = False
        self.open = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            browser, _ = self.listener.accept()
            if self.cut:
                browser.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                browser.close()
                continue
            self.open += [browser, server]
            for one, other in [(browser, server), (server, browser)]:
                threading.Thread(target=self.copy, args=(one, other), daemon=True).start()

    def copy(self, one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
        except OSError:
            pass
        for each in (one, other):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def break_connections(self):
        self.cut = True
        for each in self.open:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.open.clear()


proxy = None


def flags(project):
    """The browser reaches `localhost` through the proxy, and calls the server by the same name and port as without."""
    global proxy
    port = urlsplit(project.base).port
    proxy = Proxy(port)
    return [f"--host-resolver-rules=MAP localhost:{port} 127.0.0.1:{proxy.port}"]


def rows(page):
    return [" ".join(row.split()) for row in page.locator("[data-rows] tbody tr th").all_inner_texts()]


def scenario(project, viewer):
    project.base = project.base.replace("127.0.0.1", "localhost")
    project.link = project.link.replace("127.0.0.1", "localhost")
    lost = r"ERR_|status (of )?401"
    first = viewer.page(viewer.context())
    first.goto(project.link)
    first.wait_for_url(re.compile("/$"))
    viewer.cookies = first.context.storage_state()
    first.close()
    run = project.start_run("steps", "Wait for the files")
    page = viewer.page(viewer.context(), expected=lost)
    viewer.go(page, f"/runs/{run}")
    followed(page)
    check(proxy.open, "the browser does not use the proxy")
    project.let("one")
    expect(page.locator("[data-rows] tbody tr")).to_have_count(2)
    line = page.locator("#connection")
    expect(line).to_be_hidden()

    # The first connection of a page fails: it says so, and tries again.
    late = viewer.page(viewer.context(), expected=lost)
    late.route("**/live/**", lambda route: route.abort())
    viewer.go(late, f"/runs/{run}")
    shows(late, "connection lost", where="#connection")
    late.unroute("**/live/**")
    followed(late)
    expect(late.locator("#connection")).to_be_hidden()
    late.close()

    # The connection breaks; meanwhile the run goes on. Afterwards everything is there, once.
    proxy.break_connections()
    expect(line).to_be_visible()
    shows(page, "connection lost", where="#connection")
    viewer.screenshot(page, "connection-lost")
    for step in STEPS[1:] + ["agent"]:
        project.let(step)
    wait_until("the run is done", lambda: project.report(run)["outcome"] == "done")
    check("running" in page.locator(".outcome").inner_text(), "the page shows what it cannot know")
    proxy.cut = False
    shows(page, "✓ done")
    expect(line).to_be_hidden()
    expected = ["one", "two", "three", "four", "five fixer"]
    check(rows(page) == expected, f"the attempts are {rows(page)} and not {expected}")
    say("after a lost connection, the page has every attempt once")

    # A short break while nothing happens changes nothing.
    page.evaluate("window.__kept = document.querySelector('[data-rows] tbody tr')")
    proxy.break_connections()
    expect(line).to_be_visible()
    proxy.cut = False
    expect(line).to_be_hidden()
    check(page.evaluate("window.__kept.isConnected"), "the page was replaced though nothing had changed")
    check(rows(page) == expected, f"the attempts are {rows(page)}")

    # The server stops, while the run does not, and another one has its port: it knows no session.
    port = urlsplit(project.base).port
    project.stop_server(signal.SIGTERM)
    expect(line).to_be_visible()
    link = project.start_server(port).replace("127.0.0.1", "localhost")
    page.wait_for_timeout(2500)
    expect(line).to_be_visible()
    viewer.screenshot(page, "connection-session-lost")
    other = page.context.new_page()
    other.goto(link)
    other.wait_for_url(re.compile("/$"))
    expect(other.locator("[data-rows] tbody tr")).to_have_count(1)
    expect(line).to_be_hidden()
    project.run("fix", "Write the notes")
    expect(other.locator("[data-rows] tbody tr")).to_have_count(2)
    say("after a restart, the page says that it is not current until the browser is signed in again")


play(scenario, flags)
