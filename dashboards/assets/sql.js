// The SQL page with script: runs a statement without leaving, shows how long it takes, stops it, completes words, keeps questions.
"use strict";

const form = document.getElementById("editor");
const text = document.getElementById("text");
const offers = document.getElementById("offers");
const going = document.getElementById("going");
const said = document.getElementById("said");
const bar = document.getElementById("bar");
const stop = document.getElementById("stop");
const KEYWORDS = "select from where group by order limit join left using having with as and or not null case when then else end distinct count sum avg min max over partition qualify interval".split(" ");
let current = null;
let words = null;
let chosen = -1;
let held = [];

for (const hidden of document.querySelectorAll(".scripted")) hidden.hidden = false;

function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function ask(fields) {
  if (current) return;
  const query = new URLSearchParams(new FormData(fields));
  if (fields !== form) for (const name of ["x", "y", "series"]) if (!query.get("chart")) query.delete(name);
  current = { id: newId(), began: performance.now() };
  const mine = current;
  going.hidden = stop.hidden = false;
  said.textContent = "Running.";
  bar.removeAttribute("value");
  const watch = setInterval(() => follow(mine), 500);
  try {
    const answer = await fetch(`sql?${query}&run=${mine.id}`, { headers: { accept: "text/html" }, cache: "no-store" });
    take(new DOMParser().parseFromString(await answer.text(), "text/html"), query);
  } catch {
    said.textContent = "The server did not answer; try again.";
  } finally {
    clearInterval(watch);
    current = null;
    stop.hidden = true;
    bar.value = 0;
    bar.hidden = true;
  }
}

async function follow(run) {
  const answer = await fetch(`api/sql/${run.id}`, { cache: "no-store" }).catch(() => null);
  if (!answer || !answer.ok || current !== run) return;
  const state = await answer.json();
  bar.hidden = false;
  bar.max = state.limits.seconds;
  bar.value = state.state === "waiting" ? 0 : state.elapsed_s;
  said.textContent = state.state === "waiting" ? "Waiting for other statements to end." : `Running, ${state.elapsed_s.toFixed(1)} s of at most ${state.limits.seconds} s.`;
}

function take(page, query) {
  const fresh = page.getElementById("answer");
  if (!fresh) {
    const failed = page.getElementById("failed");
    said.textContent = failed ? failed.textContent.trim().replace(/\s+/g, " ") : "The answer cannot be read.";
    return;
  }
  for (const id of ["answer", "parameters"]) {
    const old = document.getElementById(id);
    const focused = old.contains(document.activeElement) ? document.activeElement.name || document.activeElement.id : "";
    const next = document.importNode(page.getElementById(id), true);
    if (id === "parameters") next.querySelector("#stop").replaceWith(stop);
    old.replaceWith(next);
    if (focused) (next.querySelector(`[name="${CSS.escape(focused)}"]`) || next.querySelector(`#${CSS.escape(focused)}`))?.focus();
  }
  document.title = page.title;
  history.pushState(null, "", `sql?${query}`);
  const heading = document.querySelector("#answer h2, #answer .headline strong, #answer .empty");
  said.textContent = heading ? heading.textContent : "";
}

function cancel() {
  if (!current) return false;
  said.textContent = "Stopping.";
  fetch(`api/sql/${current.id}`, { method: "DELETE", keepalive: true }).catch(() => {});
  return true;
}

document.addEventListener("submit", (event) => {
  if (event.target !== form && event.target.id !== "drawn") return;
  event.preventDefault();
  close();
  ask(event.target);
});
document.addEventListener("click", (event) => { if (event.target === stop) cancel(); });
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && offers.hidden && cancel()) event.preventDefault(); });
addEventListener("pagehide", cancel);
addEventListener("popstate", () => location.reload());

// Completion: tables and columns of the store, metrics with their formula, functions, keywords.
async function learn() {
  if (words) return words;
  words = KEYWORDS.map((name) => ({ name, what: "" }));
  const answer = await fetch("api/schema").catch(() => null);
  if (!answer || !answer.ok) return words;
  const known = await answer.json();
  const found = new Map();
  for (const table of known.tables) {
    found.set(table.name, { name: table.name, what: table.what, table: "" });
    for (const column of table.columns) {
      const held = found.get(column.name);
      if (held) held.table += ` ${table.name}`;
      else found.set(column.name, { name: column.name, what: [column.unit, column.what].filter(Boolean).join(": "), table: ` ${table.name}` });
    }
  }
  for (const { name, what } of known.functions) if (!found.has(name)) found.set(name, { name, what });
  for (const metric of known.metrics) if (!found.has(metric.name)) found.set(metric.name, { name: metric.name, what: `metric, ${metric.unit}: ${metric.formula}`, insert: metric.name });
  words = [...found.values(), ...words.filter(({ name }) => !found.has(name))];
  return words;
}

function typed() {
  return /[A-Za-z_]\w*$/.exec(text.value.slice(0, text.selectionStart))?.[0] ?? "";
}

async function offer(everything) {
  const known = await learn();
  const start = typed().toLowerCase();
  if (text.selectionStart !== text.selectionEnd || (!everything && start.length < 2)) return close();
  const used = new Set(text.value.toLowerCase().match(/\w+/g) ?? []);
  const rank = (word) => (word.table && word.table.split(" ").some((table) => used.has(table)) ? 0 : 1);
  held = known.filter(({ name }) => name.startsWith(start) && name !== start).sort((a, b) => rank(a) - rank(b)).slice(0, 8);
  if (!held.length) return close();
  offers.replaceChildren(...held.map(({ name, what }, n) => {
    const item = document.createElement("li");
    item.id = `offer-${n}`;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    const code = document.createElement("code");
    code.textContent = name;
    const told = document.createElement("span");
    told.className = "small";
    told.textContent = what;
    item.append(code, " ", told);
    item.addEventListener("mousedown", (event) => { event.preventDefault(); insert(name, typed().length); });
    return item;
  }));
  chosen = -1;
  offers.hidden = false;
}

function close() {
  offers.hidden = true;
  chosen = -1;
  text.removeAttribute("aria-activedescendant");
}

function choose(step) {
  chosen = (chosen + step + held.length) % held.length;
  [...offers.children].forEach((item, n) => item.setAttribute("aria-selected", String(n === chosen)));
  text.setAttribute("aria-activedescendant", `offer-${chosen}`);
}

function insert(name, over) {
  text.setRangeText(name, text.selectionStart - over, text.selectionEnd, "end");
  text.focus();
  close();
}

text.setAttribute("aria-autocomplete", "list");
text.setAttribute("aria-controls", "offers");
text.addEventListener("input", () => offer(false));
text.addEventListener("blur", close);
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    form.requestSubmit();
  } else if (event.key === " " && event.ctrlKey) {
    event.preventDefault();
    offer(true);
  } else if (!offers.hidden && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    event.preventDefault();
    choose(event.key === "ArrowDown" ? 1 : -1);
  } else if (!offers.hidden && (event.key === "Tab" || (event.key === "Enter" && chosen >= 0)) && !event.shiftKey) {
    event.preventDefault();
    insert(held[Math.max(0, chosen)].name, typed().length);
  } else if (!offers.hidden && event.key === "Escape") {
    event.preventDefault();
    event.stopPropagation();
    close();
  }
});

// Names of tables, columns and functions are put into the statement by a click.
for (const name of document.querySelectorAll("[data-insert]")) {
  if (name.closest("summary")) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "insert";
  button.title = "put it into the statement";
  name.replaceWith(button);
  button.append(name);
  button.addEventListener("click", () => insert(name.dataset.insert, 0));
}

document.getElementById("save")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const saved = document.getElementById("saved");
  const fields = Object.fromEntries(new FormData(event.target));
  const params = {};
  for (const input of document.querySelectorAll("#parameters input[name^='p.']")) if (input.value) params[input.name.slice(2)] = input.value;
  const body = JSON.stringify({ ...fields, sql: text.value, params });
  const answer = await fetch("api/questions", { method: "POST", headers: { "content-type": "application/json" }, body }).catch(() => null);
  const told = answer ? await answer.json().catch(() => ({})) : {};
  saved.textContent = answer?.ok ? `Saved as ${told.name}, version ${told.version}.` : told.error?.message ?? "The server did not answer; try again.";
});
