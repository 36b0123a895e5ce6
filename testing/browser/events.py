"""A run with many events: its list is long, the page is not, and what happens meanwhile comes to its end."""

import itertools
import random

from dashboard import accessibility_faults, check, expect, followed, play, say, shows, wait_until

# What the list may have in the page, however many events there are.
MAX_NODES = 300
# The run is long enough for jumps when it has this many events.
MANY = 20_000
JUMPS = 20

# What the list shows now.
LOOK = """() => {
  const view = document.querySelector(".events-view");
  const around = view.getBoundingClientRect();
  const rows = [...view.querySelectorAll("tbody tr")];
  const inside = rows.filter((row) => { const box = row.getBoundingClientRect(); return box.bottom > around.top + 1 && box.top < around.bottom - 1; });
  return {
    last: Number(document.querySelector("#events-end").textContent),
    count: Number(view.querySelector("table").getAttribute("aria-rowcount")) - 1,
    nodes: view.querySelectorAll("*").length,
    mounted: rows.map((row) => Number(row.id.replace("seq-", ""))),
    indexes: rows.map((row) => Number(row.getAttribute("aria-rowindex")) - 1),
    heights: [...new Set(rows.map((row) => row.getBoundingClientRect().height))],
    seen: inside.map((row) => Number(row.id.replace("seq-", ""))),
    texts: inside.map((row) => row.querySelector(".what")?.innerText ?? null),
    at: document.querySelector(".events-view tr.at")?.id ?? null,
    focused: document.activeElement.textContent.trim(),
    top: view.scrollTop,
  };
}"""
# Jumps to an event, as one who drags the scroll bar does.
JUMP = """(seq) => {
  const view = document.querySelector(".events-view");
  view.scrollTop = (seq - 1) * view.querySelector("tbody tr").getBoundingClientRect().height;
}"""


def look(page):
    seen = page.evaluate(LOOK)
    check(seen["nodes"] < MAX_NODES, f"the list has {seen['nodes']} elements in the page")
    check(all(b == a + 1 for a, b in itertools.pairwise(seen["mounted"])), f"a gap or an event twice: {seen['mounted']}")
    check(seen["indexes"] == seen["mounted"], f"a screen reader is told {seen['indexes']} and not {seen['mounted']}")
    check(len(seen["heights"]) == 1, f"rows have the heights {seen['heights']}")
    return seen


def loaded(page, seq):
    """Waits until an event is in the window, with its text and the texts around it, and returns what is seen."""

    def seen():
        # Until the script has begun, the page has the list that the server made.
        if page.locator(".events-view").count() == 0:
            return None
        now = look(page)
        return now if seq in now["seen"] and None not in now["texts"] else None

    return wait_until(f"event {seq} is shown", seen)


def press(page, key, seq):
    page.keyboard.press(key)
    seen = loaded(page, seq)
    check(seen["at"] == f"seq-{seq}", f"after {key}, {seen['at']} is selected and not {seq}")
    wait_until(f"event {seq} has the focus", lambda: look(page)["focused"] == str(seq))


def scenario(project, viewer):
    viewer.sign_in().close()
    run = project.start_run("loop", "Go round and round")
    address = f"/runs/{run}/events"
    page = viewer.open(address)
    followed(page)
    expect(page.locator(".events-view")).to_be_visible()

    # At its end, the list follows the run.
    began = look(page)["last"]
    wait_until("more events are there", lambda: look(page)["last"] > began + 300)
    wait_until("the list is at its end", lambda: (seen := look(page))["seen"][-1] >= seen["count"] - 1)
    check(look(page)["seen"][-1] > began, "the list did not follow the run")

    # Elsewhere, it stays where it is.
    page.keyboard.press("Home")
    before = loaded(page, 1)
    wait_until("more events are there", lambda: look(page)["last"] > before["last"] + 300)
    after = look(page)
    check((after["top"], after["seen"], after["at"]) == (0, before["seen"], "seq-1"), f"the list moved: {after}")
    check(after["focused"] == "1", f"{after['focused']} has the focus and not event 1")
    shows(page, f"run {run} of loop", where=".events-view")
    viewer.screenshot(page, "events-running")

    # What is appended last comes as well.
    page.keyboard.press("End")
    # Its process is the last one that was started.
    project.children[-1].wait(60)
    check(project.report(run)["outcome"] == "done", "the run is not done")
    events = project.events(run)
    total = events[-1]["seq"]
    check(total >= MANY, f"the run has only {total} events")
    wait_until("the last event is known", lambda: look(page)["count"] == total)
    press(page, "End", total)
    shows(page, "the run is done", where=".events-view")

    # Jumps show what is there, whatever was asked for before.
    numbers = random.Random(1)
    for seq in [1, total, total // 2, *[numbers.randint(1, total) for _ in range(JUMPS)]]:
        page.evaluate(JUMP, seq)
        loaded(page, seq)
    for seq in range(1, total, total // 50):
        page.evaluate(JUMP, seq)
    page.evaluate(JUMP, total // 3)
    middle = loaded(page, total // 3)
    viewer.screenshot(page, "events-middle")
    say(f"{total} events, {middle['nodes']} elements in the list")

    # Every event once: the rows of all blocks, as the server makes them.
    seen = page.evaluate(
        """async ([address, total]) => {
        const numbers = [];
        for (let from = 1; from <= total; from += 100) {
          const text = await (await fetch(`${address}/rows?from=${from}`)).text();
          numbers.push(...[...text.matchAll(/data-seq="(\\d+)"/g)].map((found) => Number(found[1])));
        }
        return numbers;
      }""",
        [address, total],
    )
    check(seen == list(range(1, total + 1)), "the blocks have a gap, or an event twice")

    # Keys, and addresses of single events.
    viewer.go(page, f"{address}?from={total // 2}")
    loaded(page, total // 2)
    check(look(page)["seen"][0] == total // 2, f"the list begins with {look(page)['seen'][0]} and not {total // 2}")
    viewer.go(page, f"{address}#seq-777")
    check(loaded(page, 777)["at"] == "seq-777", "the event that the address names is not marked")
    for key, seq in [("j", 778), ("k", 777), ("k", 776), ("Home", 1), ("k", 1), ("j", 2), ("End", total), ("j", total)]:
        press(page, key, seq)
    page.keyboard.press("PageUp")
    wait_until("a page above is shown", lambda: total - 30 < int((look(page)["at"] or "seq-0")[4:]) < total - 5)
    page.locator("#main").evaluate("() => { location.hash = '#seq-4321'; }")
    check(loaded(page, 4321)["at"] == "seq-4321", "the event of the new address is not marked")
    page.locator("#seq-4322 th a").click()
    wait_until("the address is that of the event", lambda: page.url.endswith(f"{address}?from=4322#seq-4322"))
    viewer.complaints += accessibility_faults(page)

    # Only what went wrong, and without scripts: pages.
    viewer.go(page, f"{address}?show=trouble")
    shows(page, "matches")
    check(page.locator(".events-view").count() == 0, "a part of the events is shown as all of them")
    plain = viewer.open(address, java_script_enabled=False)
    expect(plain.locator(".events tbody tr")).to_have_count(100)
    expect(plain.locator(f"#seq-{total}")).to_be_visible()
    plain.get_by_role("link", name="« first").click()
    expect(plain.locator("#seq-1")).to_be_visible()
    plain.get_by_role("link", name="next ›").click()
    expect(plain.locator("#seq-101")).to_be_visible()

    # If the script of the list does not come, the page stays as it is.
    page = viewer.page(viewer.context(), expected="ERR_FAILED")
    page.route("**/events.js", lambda route: route.abort())
    viewer.go(page, address)
    followed(page)
    expect(page.locator(".events tbody tr")).to_have_count(100)


play(scenario)
