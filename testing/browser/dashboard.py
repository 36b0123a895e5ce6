"""What the tests of the dashboard in a browser have in common.

A script is started by `crates/counterfoil/tests/it/dashboard/browser.rs` with one argument, a JSON object that
says where the project and its server are. It plays a scenario, prints what it saw, and exits with 1 and a message
if something is wrong. Screenshots are in the folder `screenshots` of that object.
"""

import contextlib
import itertools
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import traceback

from playwright.sync_api import Error, expect, sync_playwright

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
]
# What htmx says of a request that ends because the page is left.
ABANDONED = r"htmx:(sse:)?error: (Failed to fetch|network error)"
# A busy machine is slow. What has to be quick is measured.
PATIENCE_MS = 20_000
expect.set_options(timeout=PATIENCE_MS)
# The whole scenario. The test that started it waits longer, so that what a scenario started is ended by it.
DEADLINE_S = 90


class Wrong(Exception):
    """The dashboard does not do what it should."""


def check(condition, message):
    if not condition:
        raise Wrong(message)


def say(*words, separator=" "):
    print(*words, sep=separator, flush=True)


def wait_until(what, poll):
    """Polls until something is true, and returns it."""
    end = time.monotonic() + PATIENCE_MS / 1000
    while True:
        found = poll()
        if found:
            return found
        check(time.monotonic() < end, f"timed out waiting until {what}")
        time.sleep(0.01)


def shows(page, *texts, where="body"):
    """Waits until a part of the page contains these texts."""
    part = page.locator(where)
    for text in texts:
        end = time.monotonic() + PATIENCE_MS / 1000
        while text not in (seen := " ".join(part.first.inner_text().split())):
            check(time.monotonic() < end, f"{page.url}: {where} does not show '{text}', but:\n{seen[:800]}")
            page.wait_for_timeout(20)


def answers(port):
    with contextlib.closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Project:
    """The project of a test, and its server."""

    def __init__(self, context):
        self.program = context["program"]
        self.root = pathlib.Path(context["root"])
        self.repo = pathlib.Path(context["repo"])
        self.state = context["state"]
        self.server = context["server"]
        self.link = context["link"]
        self.base = self.link.split("/sign-in")[0]
        self.screenshots = pathlib.Path(context["screenshots"])
        self.children = []

    def command(self, *arguments):
        folders = ["--state", self.state]
        if arguments[0] in ("run", "serve"):
            folders += ["--repo", str(self.repo)]
        return [self.program, *arguments, *folders]

    def counterfoil(self, *arguments, code=0):
        """Runs the program to its end, and returns what it printed."""
        done = subprocess.run(
            self.command(*arguments), check=False, cwd=self.root, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        check(done.returncode == code, f"counterfoil {arguments} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def start(self, *arguments, stderr=subprocess.DEVNULL):
        """Starts the program in a process of its own, which ends with the scenario."""
        process = subprocess.Popen(
            self.command(*arguments), cwd=self.root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr
        )
        self.children.append(process)
        return process

    def listed(self):
        """All runs, the newest first."""
        return json.loads(self.counterfoil("runs", "--format", "json"))

    def run(self, workflow, task, code=0):
        """Runs a workflow to its end, and returns the id of the run."""
        self.counterfoil("run", f"repo/{workflow}.yaml", "--task", task, "--agent", "command:python3 agent.py", code=code)
        return self.listed()[0]["run"]

    def start_run(self, workflow, task):
        """Starts a run in another process, and returns its id as soon as it is known."""
        log = self.root / f"run-{len(self.children)}.log"
        with log.open("w") as stderr:
            self.start("run", f"repo/{workflow}.yaml", "--task", task, "--agent", "command:python3 agent.py", stderr=stderr)
        return wait_until("the run is there", lambda: re.search(r"^run (\S+) of", log.read_text()))[1]

    def let(self, step):
        """Lets a step of `steps` go on."""
        (self.repo / "go").mkdir(exist_ok=True)
        (self.repo / "go" / step).touch()

    def report(self, run):
        return json.loads(self.counterfoil("show", run, "--format", "json"))

    def events(self, run):
        return [json.loads(line) for line in self.counterfoil("show", run, "--events").splitlines()]

    def stop_server(self, sign):
        os.kill(self.server, sign)
        # It is the child of the test, so that it may stay as a zombie; but it answers nobody any more.
        port = int(self.base.rpartition(":")[2])
        wait_until("the server has stopped", lambda: not answers(port))

    def start_server(self, port, *options):
        """Starts another server, and returns its link."""
        log = self.root / "serve-again.log"
        with log.open("w") as stderr:
            self.start("serve", "--port", str(port), *options, stderr=stderr)
        return wait_until("the server has started", lambda: re.search(r"http://\S+", log.read_text()))[0]

    def end_children(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()


class Viewer:
    """One browser. Whatever goes wrong in it is remembered."""

    def __init__(self, playwright, project, flags=()):
        self.project = project
        self.browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *flags], timeout=60_000)
        self.complaints = []
        self.cookies = None
        self.pages = []
        self.dialogs = {}

    def context(self, **options):
        """A browser without anything of another one, except that it is signed in if one is."""
        context = self.browser.new_context(storage_state=self.cookies, **{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(PATIENCE_MS)
        return context

    def page(self, context, expected=None):
        """A new page. What its console says has to match `expected`, or the scenario fails."""
        page = context.new_page()
        self.pages.append(page)

        def complain(kind, text):
            if not (re.search(ABANDONED, text) or expected and re.search(expected, text)):
                self.complaints.append(f"{page.url}: {kind}: {text}")

        page.on(
            "console",
            lambda message: (
                message.type in ("error", "warning") and complain(message.type, f"{message.text} {message.location.get('url', '')}")
            ),
        )
        page.on("pageerror", lambda error: complain("exception", str(error)))
        page.on("dialog", lambda dialog: self.on_dialog(page, dialog))
        page.on("response", lambda response: response.status >= 400 and complain("response", f"status of {response.status} {response.url}"))
        page.add_init_script(
            "document.addEventListener('securitypolicyviolation', e => console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`))"
        )
        return page

    def answer_dialogs(self, page, asked):
        """From now on, questions of the page are put into a list and answered with yes."""
        self.dialogs[page] = asked

    def on_dialog(self, page, dialog):
        if page in self.dialogs:
            self.dialogs[page].append(dialog.message)
            dialog.accept()
        else:
            self.complaints.append(f"{page.url}: dialog: {dialog.message}")
            dialog.dismiss()

    def sign_in(self, link=None, expected=None, **options):
        """Signs in with the link that the server printed. Later contexts are signed in, too."""
        context = self.context(**options)
        page = self.page(context, expected)
        page.goto(link or self.project.link)
        page.wait_for_url(re.compile("/$"))
        self.cookies = context.storage_state()
        return page

    def open(self, path, expected=None, **options):
        """Opens a page in a context of its own."""
        page = self.page(self.context(**options), expected)
        self.go(page, path)
        return page

    def go(self, page, path):
        page.goto(self.project.base + path)
        return page

    def screenshot(self, page, name):
        self.project.screenshots.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=self.project.screenshots / f"{name}.png", full_page=True)

    def check(self, condition, message):
        """Like `check`, but the scenario goes on, so that it tells all that is wrong."""
        if not condition:
            self.complaints.append(message)

    def assert_quiet(self):
        check(not self.complaints, "the scenario was played, with complaints")


def followed(page):
    """Waits until the page is followed: then every change reaches it."""
    # Not `wait_for_function`, which the policy of the page refuses.
    wait_until("the page is followed", lambda: page.evaluate("document.querySelector('main')._htmx?.sse?.status") == 200)


NAMED = {
    "button", "checkbox", "combobox", "DisclosureTriangle", "dialog", "img", "image", "graphics-document", "link", "listbox",
    "progressbar", "radio", "region", "searchbox", "SvgRoot", "textbox", "textarea",
}  # fmt: skip


def in_order(nodes):
    """The nodes of an accessibility tree as they are read, and not level by level."""
    by_id = {node["nodeId"]: node for node in nodes}
    ordered, stack = [], nodes[:1]
    while stack:
        node = stack.pop()
        ordered.append(node)
        stack.extend(by_id[child] for child in reversed(node.get("childIds", [])) if child in by_id)
    return ordered


def accessibility_faults(page):
    """What is wrong in what the browser tells a screen reader: everything that can be used or that is a picture has a name,
    headings are in order, the page has a title, a language and one main part, and nothing needs scrolling to the side."""
    session = page.context.new_cdp_session(page)
    nodes = in_order(session.send("Accessibility.getFullAXTree")["nodes"])
    session.detach()
    faults, levels, mains = [], [], 0
    for node in nodes:
        role = node.get("role", {}).get("value")
        if node.get("ignored"):
            continue
        name = node.get("name", {}).get("value", "").strip()
        if not name and (role in NAMED or role == "heading"):
            faults.append(f"a {role} has no name: {described(page, node)}")
        if role == "heading":
            levels += [one["value"]["value"] for one in node["properties"] if one["name"] == "level"]
        mains += role == "main"
    if levels[:1] != [1] or levels.count(1) != 1:
        faults.append(f"not one heading of level 1 before all others: {levels}")
    if any(after > before + 1 for before, after in itertools.pairwise(levels)):
        faults.append(f"a level of headings is left out: {levels}")
    if mains != 1:
        faults.append(f"{mains} main parts")
    if not page.title().strip():
        faults.append("no title")
    facts = page.evaluate(
        """() => {
        const ids = [...document.querySelectorAll("[id]")].map((e) => e.id), root = document.documentElement;
        return { language: root.lang, twice: ids.filter((id, at) => ids.indexOf(id) !== at), wide: root.scrollWidth - root.clientWidth };
      }"""
    )
    if facts != {"language": "en", "twice": [], "wide": 0}:
        faults.append(f"the language, ids that are there twice, or pixels beyond the window: {facts}")
    return faults


def described(page, node):
    """The element of a node of the accessibility tree."""
    session = page.context.new_cdp_session(page)
    try:
        return session.send("DOM.getOuterHTML", {"backendNodeId": node["backendDOMNodeId"]})["outerHTML"][:200]
    except (Error, KeyError):
        return ""


def pale_texts(page):
    """Texts with less contrast to what is behind them than WCAG asks for (4.5, or 3 for large ones)."""
    return page.evaluate(
        """() => {
        const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
        const rgba = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
        const light = (color) => { const [r, g, b] = color.map((c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const over = (top, below) => { const a = top[3] / 255; return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)).concat(255); };
        const behind = (element) => { const layers = []; for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor)); return layers.reverse().reduce((below, top) => over(top, below), rgba(getComputedStyle(document.documentElement).colorScheme.startsWith("dark") ? "#121212" : "white")); };
        const found = [];
        const walk = document.createTreeWalker(document.querySelector("body"), NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) {
          const element = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
          if (!text || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || element.closest("svg, .out, :disabled")) continue;
          const style = getComputedStyle(element), ground = behind(element);
          const [one, two] = [light(over(rgba(style.color), ground)), light(ground)];
          const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
          const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
          if (contrast < (large ? 3 : 4.5)) found.push(`${contrast.toFixed(2)} <${element.tagName.toLowerCase()} class="${element.className}"> ${text.slice(0, 40)}`);
        }
        return [...new Set(found)];
      }"""
    )


WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
LOOKS = {"light": ("light", WIDE), "dark": ("dark", WIDE), "phone": ("light", PHONE)}


def look(viewer, page, name, *texts):
    """Looks at a page, which has to contain these texts."""
    shows(page, *texts)
    for look, (scheme, size) in LOOKS.items():
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(size)
        faults = accessibility_faults(page) + [f"a pale text: {text}" for text in pale_texts(page)]
        viewer.complaints += [f"{name} in {look}: {fault}" for fault in faults]
        viewer.screenshot(page, f"{name}-{look}")


def play(scenario, flags=None):
    """Plays a scenario with the project that the first argument names, and ends the process."""
    project = Project(json.loads(sys.argv[1]))
    began = time.monotonic()

    def late(*_):
        raise Wrong(f"the scenario took longer than {DEADLINE_S} s")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(DEADLINE_S)
    code = 1
    try:
        with sync_playwright() as playwright:
            viewer = Viewer(playwright, project, flags(project) if flags else ())
            try:
                scenario(project, viewer)
                viewer.assert_quiet()
                code = 0
            except Exception as error:  # noqa: BLE001
                for frame in traceback.extract_tb(error.__traceback__):
                    if "site-packages" not in frame.filename:
                        say(f"{frame.filename}:{frame.lineno}: {frame.line}")
                say(f"FAILED: {type(error).__name__}: {str(error).split('Call log')[0][:1500]}")
                if viewer.complaints:
                    say("complaints:", *viewer.complaints, separator="\n  ")
                for number, page in enumerate(viewer.pages):
                    with contextlib.suppress(Error):
                        viewer.screenshot(page, f"failed-{pathlib.Path(sys.argv[0]).stem}-{number}")
                say(f"screenshots are in {project.screenshots}")
            finally:
                viewer.browser.close()
    finally:
        project.end_children()
    say(f"{pathlib.Path(sys.argv[0]).stem}: {time.monotonic() - began:.1f} s")
    sys.exit(code)
