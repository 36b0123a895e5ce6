// The playground: sends the text to the API while it is typed, and shows the part of a page that the
// server answers with.
(() => {
  "use strict";
  const form = document.querySelector("#playground");
  if (!form) return;
  const { contract, definition, text } = form.elements;
  const shown = document.querySelector("#checked");
  const note = document.querySelector("#checking");
  const say = (message) => { if (note.textContent !== message) note.textContent = message; };
  const clear = (message) => { shown.replaceChildren(); say(message); };

  // The definition as the server gave it. While it is not edited, its name is sent.
  let known = contract.value ? definition.value : null;
  let waiting;
  let running = null;
  const request = () => {
    if (contract.value && definition.value === known) return { contract: contract.value, text: text.value };
    return { definition: definition.value, text: text.value };
  };
  const check = async () => {
    running?.abort();
    running = null;
    if (!text.value) { clear(""); return; }
    const body = request();
    if (body.definition !== undefined && !body.definition.trim()) {
      clear("Choose a contract, or write one.");
      return;
    }
    const own = new AbortController();
    running = own;
    try {
      const response = await fetch(form.dataset.check, {
        method: "POST",
        headers: { "Content-Type": "application/json", Accept: "text/html" },
        body: JSON.stringify(body),
        signal: own.signal,
      });
      const html = await response.text();
      if (running !== own) return;
      if (response.status === 429) { say("The server checks other texts; waiting."); later(1000); return; }
      if (response.status === 401) { clear("This browser is not signed in any more; reload the page."); return; }
      if (!(response.headers.get("Content-Type") ?? "").startsWith("text/html")) {
        clear(`The server refused the text (${response.status}).`);
        return;
      }
      // The server escapes everything that it shows.
      shown.innerHTML = html;
      const outcome = shown.querySelector(".outcome .mark");
      say(outcome ? `The result is ${outcome.textContent.trim().replace(/^\S+\s+/, "")}.` : "");
    } catch (error) {
      if (error.name !== "AbortError") clear(`The server cannot be reached: ${error.message}`);
    }
  };
  const later = (ms = 300) => { clearTimeout(waiting); waiting = setTimeout(check, ms); };

  text.addEventListener("input", () => later());
  definition.addEventListener("input", () => later());
  contract.addEventListener("change", async () => {
    const chosen = contract.value;
    known = null;
    if (!chosen) { later(0); return; }
    try {
      const response = await fetch(form.dataset.contracts + encodeURIComponent(chosen));
      const answer = await response.json();
      if (contract.value !== chosen) return;
      if (!response.ok) { say(answer.detail ?? response.statusText); return; }
      definition.value = answer.yaml;
      // What the field holds: browsers change line breaks.
      known = definition.value;
      later(0);
    } catch (error) {
      say(`The contract cannot be read: ${error.message}`);
    }
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); later(0); });
  later(0);
})();
