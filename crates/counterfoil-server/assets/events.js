// The list of events as one long list, however many there are. Only the rows near the window are in the
// page, and rows that leave it are used again. If anything fails before the first rows are there, the
// page stays as the server made it.
(() => {
  "use strict";
  const section = document.querySelector(".events[data-list]");
  const head = section?.querySelector("thead");
  if (!head) return;
  // The rows of one request; blocks begin at 1, 101, 201 and so on.
  const BLOCK = 100;
  const MAX_BLOCKS = 20;
  // The rows above and below the window.
  const BEYOND = 3;
  // Browsers limit the height of an element.
  const MAX_HEIGHT = 15_000_000;
  const RETRY_MS = 1000;

  const address = section.dataset.list;
  let last = Number(section.dataset.last);
  let height = 30;
  if (!last || last * height > MAX_HEIGHT) return;

  const make = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const body = make("tbody");
  const columns = section.querySelector("colgroup").cloneNode(true);
  const table = make("table", {}, columns, head.cloneNode(true), body);
  const tall = make("div", { class: "events-all" }, table);
  const view = make("div", { class: "events-view", tabindex: "0", role: "region", "aria-label": "All events" }, tall);
  const note = make("p", { class: "mute", role: "status" });
  table.querySelector("thead tr").setAttribute("aria-rowindex", "1");

  // The rows that were read, by the first number of their block; the one that was used last comes last.
  const blocks = new Map();
  const running = new Map();
  const startOf = (seq) => seq - ((seq - 1) % BLOCK);
  const isWhole = (start, until = last) => (blocks.get(start)?.length ?? 0) >= Math.min(BLOCK, until - start + 1);
  const contentOf = (seq) => blocks.get(startOf(seq))?.[(seq - 1) % BLOCK];
  const readBlock = async (start, signal) => {
    const response = await fetch(`${address}?from=${start}`, { signal });
    if (!response.ok) throw new Error(response.status === 401 ? "this browser is not signed in any more" : response.statusText);
    // The server escapes everything that it shows.
    const holder = make("template");
    holder.innerHTML = `<table><tbody>${await response.text()}</tbody></table>`;
    const rows = [...holder.content.querySelectorAll("tr")];
    if (Number(rows[0]?.dataset.seq) !== start) throw new Error("the run has other events now");
    blocks.delete(start);
    blocks.set(start, rows);
    if (blocks.size > MAX_BLOCKS) blocks.delete(blocks.keys().next().value);
  };
  const load = async (start) => {
    const own = new AbortController();
    running.set(start, own);
    const until = last;
    let problem = "";
    try {
      await readBlock(start, own.signal);
      if (!isWhole(start, until)) problem = "waiting for the newest events";
    } catch (error) {
      if (error.name === "AbortError") return;
      problem = `The events cannot be read: ${error.message}; trying again`;
    } finally {
      if (running.get(start) === own) running.delete(start);
    }
    if (note.textContent !== problem) note.textContent = problem;
    isWaiting = problem !== "";
    if (isWaiting) setTimeout(() => { isWaiting = false; draw(); }, RETRY_MS);
    draw();
  };
  // After a problem, nothing is asked for a while.
  let isWaiting = false;
  const request = (wanted) => {
    for (const [start, own] of running) {
      if (wanted.has(start)) continue;
      own.abort();
      running.delete(start);
    }
    for (const start of wanted) {
      if (!isWhole(start) && !running.has(start) && !isWaiting) load(start);
    }
  };

  // The rows in the page, by number, and those that wait to be used again.
  const mounted = new Map();
  const free = [];
  let at = 0;
  let takesFocus = false;
  let isFollowing = false;
  // What the rows in the page show, as it was read.
  const contents = new WeakMap();
  const placeholder = (seq) => {
    const name = make("th", { scope: "row", class: "number" }, String(seq));
    return make("tr", {}, name, make("td"), make("td"), make("td", { class: "mute" }, "…"));
  };
  const fill = (row, seq) => {
    const content = contentOf(seq) ?? placeholder(seq);
    // A block that was read again has mostly the same rows.
    if (!contents.get(row)?.isEqualNode(content)) {
      const hadFocus = row.contains(document.activeElement);
      row.replaceChildren(...document.importNode(content, true).childNodes);
      contents.set(row, content);
      if (hadFocus) row.querySelector("a")?.focus({ preventScroll: true });
    }
    if (row.id !== `seq-${seq}`) {
      row.id = `seq-${seq}`;
      row.setAttribute("aria-rowindex", seq + 1);
    }
    row.classList.toggle("at", seq === at);
  };
  const draw = () => {
    const top = view.scrollTop;
    const first = Math.max(1, Math.floor(top / height) + 1 - BEYOND);
    const end = Math.min(last, Math.ceil((top + view.clientHeight) / height) + BEYOND);
    const wanted = new Set();
    for (let seq = startOf(first); seq <= end; seq += BLOCK) wanted.add(seq);
    request(wanted);
    for (const [seq, row] of mounted) {
      if (seq >= first && seq <= end) continue;
      // The focus stays in the list.
      if (row.contains(document.activeElement)) view.focus({ preventScroll: true });
      row.remove();
      mounted.delete(seq);
      free.push(row);
    }
    let next = body.firstElementChild;
    for (let seq = first; seq <= end; seq += 1) {
      const row = mounted.get(seq) ?? free.pop() ?? make("tr");
      mounted.set(seq, row);
      fill(row, seq);
      if (row === next) next = next.nextElementSibling;
      else body.insertBefore(row, next);
    }
    const offset = `translateY(${(first - 1) * height}px)`;
    if (table.style.transform !== offset) table.style.transform = offset;
    const link = takesFocus && mounted.get(at)?.querySelector("a");
    if (link) {
      takesFocus = false;
      link.focus({ preventScroll: true });
    }
  };
  const measure = () => {
    tall.style.height = `${last * height}px`;
    table.setAttribute("aria-rowcount", last + 1);
  };
  // Rows of a phone are higher. The event at the top stays there.
  const fitRows = () => {
    const shown = body.firstElementChild?.getBoundingClientRect().height;
    if (!shown || shown === height) return;
    const above = view.scrollTop / height;
    height = shown;
    measure();
    view.scrollTop = above * height;
  };
  const isAtEnd = () => view.scrollTop + view.clientHeight >= last * height - 1.5 * height;

  // Moves the window so that an event is in it, at its top, its middle or where it is nearest.
  const show = (seq, block = "nearest") => {
    const top = (seq - 1) * height;
    const room = view.clientHeight - height;
    if (block === "start") view.scrollTop = top;
    else if (block === "center") view.scrollTop = top - room / 2;
    else if (top < view.scrollTop) view.scrollTop = top;
    else if (top > view.scrollTop + room) view.scrollTop = top - room;
    isFollowing = isAtEnd();
    draw();
  };
  const clamp = (seq) => Math.min(last, Math.max(1, seq));
  const select = (seq) => {
    at = clamp(seq);
    takesFocus = true;
    show(at);
  };
  const named = () => Number(/^#seq-(\d+)$/.exec(location.hash)?.[1] ?? 0);
  const reveal = () => {
    if (!named()) return;
    at = clamp(named());
    show(at, "center");
  };

  let isPlanned = false;
  view.addEventListener("scroll", () => {
    isFollowing = isAtEnd();
    if (isPlanned) return;
    isPlanned = true;
    requestAnimationFrame(() => { isPlanned = false; draw(); });
  });
  body.addEventListener("click", (event) => {
    const link = event.target.closest("th a");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    history.replaceState(null, "", link.href);
    select(named());
  });
  const onKey = (event) => {
    if (event.metaKey || event.ctrlKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    const page = Math.max(1, Math.floor(view.clientHeight / height) - 1);
    const nearest = Math.floor(view.scrollTop / height) + 1;
    const target = {
      j: at ? at + 1 : nearest,
      k: at ? at - 1 : nearest,
      Home: 1,
      End: last,
      PageDown: (at || nearest) + page,
      PageUp: (at || nearest) - page,
    }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    select(target);
  };
  // The page is kept current by its own connection, which changes the number of the last event.
  const grow = () => {
    const now = Number(document.querySelector("#events-end")?.textContent);
    if (!(now > last) || now * height > MAX_HEIGHT) return;
    last = now;
    measure();
    if (isFollowing) view.scrollTop = view.scrollHeight;
    draw();
  };

  const open = () => {
    measure();
    draw();
    fitRows();
    const query = new URLSearchParams(location.search);
    if (named()) reveal();
    else if (query.has("from")) show(clamp(Number(query.get("from"))), "start");
    else show(query.has("before") ? clamp(Number(query.get("before")) - 1) : last);
    new ResizeObserver(() => { fitRows(); draw(); }).observe(view);
    new MutationObserver(grow).observe(document.querySelector("#run-events-head"), { subtree: true, childList: true, characterData: true });
    addEventListener("hashchange", reveal);
    document.addEventListener("keydown", onKey);
    grow();
  };
  const begin = () => {
    const pages = [...section.childNodes];
    // The titles of the columns stay above the list.
    section.replaceChildren(...pages.filter((part) => part.matches?.(".events-columns")), view, note);
    try {
      open();
    } catch (error) {
      section.replaceChildren(...pages);
      throw error;
    }
  };
  readBlock(startOf(clamp(named() || Number(section.dataset.from)))).then(begin, () => {});
})();
