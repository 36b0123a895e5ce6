// What pages need besides htmx: how long ago something was, keys, the theme, and forms that are sent
// to the API. Without it, every page can still be read.
(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector, root = document) => root.querySelector(selector);

  // Times.
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const elapsed = (seconds) => {
    const [unit, size] = units.find(([, size]) => seconds >= size) ?? units.at(-1);
    return `${Math.floor(seconds / size)} ${unit}`;
  };
  const ago = (seconds) => (seconds < 2 ? "now" : `${elapsed(seconds)} ago`);
  // In the words of the server, which says how long it took in the end.
  const worked = (seconds) => {
    const [large, small, units] = seconds < 3600
      ? [Math.floor(seconds / 60), seconds % 60, ["min", "s"]]
      : [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, ["h", "min"]];
    const parts = [[large, units[0]], [small, units[1]]].filter(([count]) => count > 0);
    return parts.map(([count, unit]) => `${count} ${unit}`).join(" ") || "0 s";
  };
  const tick = () => {
    for (const time of all("time[data-ago], time[data-elapsed], time[data-worked]")) {
      const date = Date.parse(time.getAttribute("datetime"));
      if (Number.isNaN(date)) continue;
      const seconds = Math.max(0, Math.round((Date.now() - date) / 1000));
      const words = "ago" in time.dataset ? ago : "worked" in time.dataset ? worked : elapsed;
      const text = words(seconds);
      if (time.textContent !== text) time.textContent = text;
    }
  };

  // Messages. One stays until the person closes it, or until the next one: it may say what is left to do.
  // It names its run, unless the page is about that run.
  const say = (text, address) => {
    one("#toast").hidden = false;
    const line = one("#toast-text");
    line.textContent = text;
    const [, page, run] = address.match(/^\/api\/v1(\/runs\/([^/]+))\//) ?? [];
    if (!run || location.pathname === page || location.pathname.startsWith(`${page}/`)) return;
    const link = document.createElement("a");
    link.href = page;
    link.textContent = `Run ${decodeURIComponent(run).slice(0, 13)}`;
    line.prepend(link, ": ");
  };
  const hush = () => { one("#toast").hidden = true; };
  // A message covers the end of the page: the page is longer by as much.
  new ResizeObserver(() => {
    const height = one("#toast").offsetHeight;
    document.documentElement.style.setProperty("--covered", height ? `${height + 32}px` : "0px");
  }).observe(one("#toast"));

  // Requests to the API. `crypto.randomUUID` is only there on pages by HTTPS or of this machine.
  const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const post = async (address, body, headers = {}) => {
    const response = await fetch(address, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": newKey(), ...headers },
      body: JSON.stringify(body),
    });
    const answer = await response.json().catch(() => ({}));
    const text = response.ok ? answer.message : [answer.detail, answer.hint].filter(Boolean).join("\n");
    return { ok: response.ok, text: text || response.statusText };
  };
  const busy = async (element, work) => {
    const buttons = element.matches("form") ? all("button", element) : [element];
    buttons.forEach((button) => { button.disabled = true; });
    let result;
    try {
      result = await work();
    } catch (error) {
      result = { ok: false, text: `The server cannot be reached: ${error.message}` };
    }
    if (!result.ok) buttons.forEach((button) => { button.disabled = false; });
    return result;
  };

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.dataset.action) return;
    event.preventDefault();
    const data = new FormData(form, event.submitter);
    const headers = form.dataset.digest ? { "If-Match": `"${form.dataset.digest}"` } : {};
    const result = await busy(form, () => post(form.dataset.action, Object.fromEntries(data), headers));
    const line = one(".result", form);
    // An update removes the form of a question that was answered, and what the form says with it.
    if (result.ok) say(result.text, form.dataset.action);
    line.textContent = result.ok ? "" : result.text;
    line.className = `result ${result.ok ? "good" : "bad"}`;
  });
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-post]");
    if (button) {
      if (button.dataset.confirm && !window.confirm(button.dataset.confirm)) return;
      const result = await busy(button, () => post(button.dataset.post, {}));
      say(result.text, button.dataset.post);
      return;
    }
    const size = event.target.closest("[data-graph]");
    if (size) fit(size.dataset.graph);
    if (event.target.closest("#toast-close")) hush();
    if (event.target.closest("#help")) one("#keys").showModal();
    if (event.target.closest("#theme")) {
      const root = document.documentElement;
      const dark = root.dataset.theme
        ? root.dataset.theme === "dark"
        : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      localStorage.setItem("theme", root.dataset.theme);
    }
    // A row leads where its link leads, unless text is selected or something in it was clicked.
    const row = event.target.closest("tr[data-href]");
    if (row && !event.target.closest("a, button, input") && !String(getSelection())) {
      if (event.metaKey || event.ctrlKey) window.open(row.dataset.href, "_blank", "noopener");
      else location.href = row.dataset.href;
    }
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("form[role=search] select")) event.target.form.requestSubmit();
  });

  // Keys.
  let chord = "";
  const rows = () => all("[data-rows] tbody tr:not(.wait)");
  const select = (row) => {
    rows().forEach((other) => other.classList.toggle("at", other === row));
    const link = one("a", row);
    (link || row).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  };
  const step = (by) => {
    const list = rows();
    if (!list.length) return;
    const at = list.findIndex((row) => row.classList.contains("at"));
    select(list[Math.min(list.length - 1, Math.max(0, at < 0 ? (by > 0 ? 0 : list.length - 1) : at + by))]);
  };
  // From a reply without violations to the nearest one that was rejected.
  const otherReply = (by) => {
    if (!one("#replies")) return;
    const tabs = all("#replies nav.tabs a");
    const at = tabs.findIndex((tab) => tab.ariaCurrent === "true");
    const rest = by > 0 ? tabs.slice(at + 1) : tabs.slice(0, Math.max(at, 0)).reverse();
    const rejected = rest.find((tab) => one(".bad", tab));
    if (!rejected) {
      const others = tabs.length > 1 ? `, and no ${by > 0 ? "later" : "earlier"} one was rejected` : "";
      say(`This reply has no violations${others}.`, "");
      return;
    }
    const address = new URL(rejected.href);
    address.hash = "violation-1";
    location.href = address;
  };
  const violation = (by) => {
    const list = all(".violation");
    if (!list.length) { otherReply(by); return; }
    const at = list.indexOf(document.activeElement.closest?.(".violation"));
    const next = list[(at < 0 ? (by > 0 ? 0 : list.length - 1) : (at + by + list.length) % list.length)];
    next.focus();
    next.scrollIntoView({ block: "center" });
  };
  const search = () => {
    const field = one("[data-search]");
    const around = field?.closest("details");
    if (around) around.open = true;
    field?.focus();
  };
  document.addEventListener("keydown", (event) => {
    // On some keyboards, brackets need AltGr (which may count as Ctrl and Alt) or Option.
    const isBracket = event.key === "[" || event.key === "]";
    if (event.metaKey || (!isBracket && (event.ctrlKey || event.altKey))) return;
    if (event.target.closest("input, textarea, select, dialog")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const goes = chord === "g" ? { r: "/", i: "/inbox", c: "/claims", h: "/health", p: "/playground" }[event.key] : undefined;
    chord = event.key === "g" ? "g" : "";
    if (goes) { location.href = goes; return; }
    const act = {
      j: () => step(1),
      k: () => step(-1),
      "/": search,
      Escape: hush,
      "?": () => one("#keys").showModal(),
      "[": () => violation(-1),
      "]": () => violation(1),
    }[event.key];
    if (act) { event.preventDefault(); act(); }
  });

  // The page that stays current.
  const LOST = one("#connection").textContent;
  const connection = (lost, why = LOST) => {
    const line = one("#connection");
    line.hidden = !lost;
    if (line.textContent !== why) line.textContent = why;
  };
  // A server that answers says why it does not show this page any more, which is no lost connection.
  const explain = async () => {
    const asking = new AbortController();
    try {
      const response = await fetch(main.getAttribute("hx-sse:connect"), { signal: asking.signal });
      if (response.status === 404) connection(true, (await response.json()).detail ?? LOST);
    } catch { /* The connection was lost by now, which the page says already. */ }
    asking.abort();
  };
  document.addEventListener("htmx:sse:error", (event) => {
    if (event.detail.status === 404) explain();
    else connection(true);
  });
  // The extension tries again only after it was connected once: the first connection is tried here.
  const main = one("main");
  let failures = 0;
  const connect = () => {
    if (main.isConnected && !main._htmx?.sse) htmx.ajax("GET", main.getAttribute("hx-sse:connect"), { source: main });
  };
  const retry = (status) => {
    if (!main?.hasAttribute("hx-sse:connect") || main._htmx?.sse) return;
    if (status === 404) explain();
    else connection(true);
    setTimeout(connect, Math.min(500 * 2 ** failures, 30000) * (0.7 + 0.6 * Math.random()));
    failures += 1;
  };
  document.addEventListener("htmx:sse:after:connection", () => { connection(false); failures = 0; });
  for (const failure of ["htmx:error", "htmx:response:error"]) {
    // Parts that a page loads are requests of other elements.
    document.addEventListener(failure, (event) => { if (event.target === main) retry(event.detail.ctx?.response?.status); });
  }
  // An update leaves alone what belongs to the person: the selected row, what is open, how large the
  // diagram is, and an answer that is being written, unless the question is another one by now.
  const kept = { class: "tr[data-href], .graph", open: "details", disabled: "button, fieldset.act", hidden: ".graph-tools", "aria-pressed": "[data-graph]" };
  const isWritten = (form) => form.contains(document.activeElement)
    || all("input, textarea", form).some((field) => field.value !== field.defaultValue)
    || one(".result.bad", form) !== null;
  const isSame = (old, next, ...names) => names.every((name) => old.getAttribute(name) === next.getAttribute(name));
  window.htmx?.registerExtension("counterfoil", {
    htmx_before_morph_attr: (element, { attrName }) => !(kept[attrName] && element.matches(kept[attrName])),
    htmx_before_morph_node: (old, { newNode }) => !(old.matches("form[data-action]")
      ? isSame(old, newNode, "data-action", "data-digest") && isWritten(old)
      // What was loaded into a page is not part of the page that is sent.
      : old.matches(".loaded") ? one(".fragment", old) !== null
      : old.matches("time[datetime]") && isSame(old, newNode, "datetime")),
  });
  // Forms work only with this script: without it, they would send an answer to nobody.
  const enable = () => all("fieldset.act:disabled").forEach((part) => { part.disabled = false; });
  document.addEventListener("htmx:after:swap", () => {
    enable();
    tick();
    document.title = `${one("#page-title").textContent} · Counterfoil`;
    // The focus stays with the selected row, wherever it is now.
    const row = one("tr.at");
    const link = row && one("a", row);
    const focused = document.activeElement;
    if (link && focused !== link && focused.closest?.("[data-rows]")) link.focus({ preventScroll: true });
  });

  // The diagram shows where the run is, and fits as far as that leaves it readable. It can be seen as a
  // whole, or in its actual size.
  const READABLE = 0.7;
  const fit = (mode) => {
    const graph = one(".graph");
    graph.classList.toggle("fit", mode === "fit");
    graph.classList.toggle("whole", mode === "whole");
    for (const button of all("[data-graph]")) button.ariaPressed = String(button.dataset.graph === mode);
    const place = one(".cf-current, .cf-waiting, .cf-interrupted, .cf-answered", graph) || one(".cf-end.cf-visited", graph) || all(".cf-visited", graph).pop()
      || one(".cf-start", graph);
    if (!place) return;
    const [box, around] = [place.getBoundingClientRect(), graph.getBoundingClientRect()];
    graph.scrollLeft += box.left - around.left - (around.width - box.width) / 2;
    graph.scrollTop += box.top - around.top - (around.height - box.height) / 2;
  };
  const drawing = one(".graph > svg");
  if (drawing) {
    one(".graph-tools").hidden = false;
    const smallest = READABLE * drawing.width.baseVal.value;
    const graph = drawing.parentElement;
    const isTooLarge = smallest > graph.clientWidth;
    graph.style.setProperty("--smallest", `${smallest}px`);
    // A diagram without size cannot be placed.
    one("#graph-picture").addEventListener("toggle", (event) => {
      if (event.target.open) fit(one("[data-graph][aria-pressed=true]").dataset.graph);
    });
    fit("fit");
    if (isTooLarge) one("#graph-table").open = true;
    // On a phone, the table comes first, and the diagram is there for who wants it.
    if (isTooLarge && matchMedia("(max-width: 46rem)").matches) one("#graph-picture").open = false;
  }

  // A link to a claim opens it.
  const reveal = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target?.matches("details")) target.open = true;
  };
  addEventListener("hashchange", reveal);
  reveal();

  const theme = localStorage.getItem("theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  tick();
  setInterval(tick, 1000);
  // What an update brings has the time of the server until it is counted here: that must not be seen.
  // Observers are called before the page is painted.
  if (main) new MutationObserver(tick).observe(main, { childList: true, characterData: true, subtree: true });
  enable();
  document.documentElement.classList.add("scripted");
})();
