"""Measures how long a jump in the list of events takes, from the movement of the scroll bar until the event is shown.

The benchmark `crates/counterfoil-server/benches/dashboard.rs` starts it with one argument, a JSON object with the link that
signs in and the address of the list. It prints one JSON object and asserts nothing about times.
"""

import json
import random
import re
import sys

from dashboard import CHROMIUM, FLAGS, PATIENCE_MS, say
from playwright.sync_api import sync_playwright

JUMPS = 100

JUMP = """async (seq) => {
  const view = document.querySelector(".events-view");
  const height = view.querySelector("tbody tr").getBoundingClientRect().height;
  const started = performance.now();
  view.scrollTop = (seq - 1) * height;
  while (!document.querySelector(`#seq-${seq} .what`)) {
    await new Promise(requestAnimationFrame);
    if (performance.now() - started > 10_000) throw new Error(`event ${seq} is not shown`);
  }
  return performance.now() - started;
}"""


def main():
    context = json.loads(sys.argv[1])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=60_000)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE_MS)
        page.goto(context["link"])
        page.wait_for_url(re.compile("/$"))
        page.goto(context["list"])
        page.locator(".events-view tbody tr .what").first.wait_for()
        last = int(page.locator("#events-end").inner_text())
        numbers = random.Random(1)
        # The first jumps are not counted: they are slower in every browser.
        times, nodes = [], 0
        for at in range(JUMPS + 5):
            time = page.evaluate(JUMP, numbers.randint(1, last))
            nodes = max(nodes, page.locator(".events-view *").count())
            if at >= 5:
                times.append(time)
        browser.close()
    times.sort()
    at = lambda percent: round(times[min(len(times) - 1, len(times) * percent // 100)], 1)  # noqa: E731
    say(
        json.dumps(
            {"name": "scroll-jump", "count": len(times), "p50_ms": at(50), "p95_ms": at(95), "max_ms": at(100), "events": last, "nodes": nodes}
        )
    )


main()
