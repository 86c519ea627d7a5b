// Sends what a button or the form of the notices page asks of the API, and says what came of it.
"use strict";

(() => {
  const done = document.getElementById("done");
  document.documentElement.classList.add("scripted");

  function say(text, isBad) {
    done.textContent = text;
    done.className = isBad ? "bad" : "good";
  }

  async function send(method, path, body) {
    // Gives the answer; throws an error with what the server said.
    const asked = { method, headers: { "content-type": "application/json" }, signal: AbortSignal.timeout(30_000) };
    const answer = await fetch(path, body === undefined ? asked : { ...asked, body: JSON.stringify(body) });
    const said = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error([said.error?.message ?? `the server answered ${answer.status}`, said.error?.hint].filter(Boolean).join("; "));
    return said;
  }

  async function attempt(button, method, path, body, words) {
    if (button.ariaDisabled === "true") return false;
    button.ariaDisabled = "true"; // a disabled one would lose the focus
    try {
      const said = await send(method, path, body);
      const held = said.held_until ? [`Not before ${said.held_until.slice(11, 16)} UTC of ${said.held_until.slice(0, 10)}: the receiver asked to wait.`] : [];
      say([words, ...held, ...(said.notes ?? [])].join(" "), false);
      await refresh();
      return true;
    } catch (error) {
      say(`Not done: ${error.message}.`, true);
      return false;
    } finally {
      button.ariaDisabled = null;
    }
  }

  function asked(form) {
    const said = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()]));
    const keys = [...form.querySelectorAll("[data-key]")].map((input) => input.name);
    const segment = Object.fromEntries(keys.filter((key) => said[key]).map((key) => [key, said[key]]));
    const words = Object.fromEntries(["lever", "policy", "receiver", "created_by", "comment"].filter((name) => said[name]).map((name) => [name, said[name]]));
    return { ...words, ...(Object.keys(segment).length ? { segment } : {}), for_s: Number(said.hours) * 3600 };
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.act");
    if (button) attempt(button, button.dataset.method, button.dataset.path, undefined, button.dataset.said);
  });
  const form = document.getElementById("silence-form");
  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button[type=submit]");
    if (await attempt(button, "POST", "api/silences", asked(form), "The silence has begun.")) form.elements.comment.value = "";
  });
})();
