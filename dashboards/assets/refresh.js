// Fetches this page again every few seconds and swaps the sections that changed. Focus, scroll and open details stay.
"use strict";

const live = document.getElementById("live");
const everyMs = Number(live.dataset.everyS) * 1000;
const sections = (root) => [...root.querySelectorAll("main > section[id]")];
const shown = new Map(sections(document).map((section) => [section.id, section.outerHTML]));

function isBusy() {
  const selected = document.getSelection();
  return document.hidden || document.querySelector(":popover-open") !== null || (selected !== null && !selected.isCollapsed);
}

function place(element) {
  // Where an element stands, so that its successor can be found: its id, else its position among its section's focusable ones.
  const section = element.closest("main > section[id]");
  return section && { section: section.id, index: focusable(section).indexOf(element) };
}

function focusable(section) {
  return [...section.querySelectorAll("a[href], button, summary, [tabindex]")];
}

function swap(old, fresh) {
  const open = [...old.querySelectorAll("details[open][id]")].map((details) => details.id);
  const scrolled = [...old.querySelectorAll(".scroll")].map((box) => box.scrollTop);
  const focused = old.contains(document.activeElement) ? place(document.activeElement) : null;
  old.replaceWith(fresh);
  for (const id of open) fresh.querySelector("#" + CSS.escape(id))?.setAttribute("open", "");
  fresh.querySelectorAll(".scroll").forEach((box, n) => { box.scrollTop = scrolled[n] ?? 0; });
  if (focused) focusable(fresh)[focused.index]?.focus({ preventScroll: true });
}

async function refresh() {
  if (isBusy()) return;
  try {
    const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(30_000) });
    if (!answer.ok) throw new Error(String(answer.status));
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (isBusy()) return;
    for (const fresh of sections(page)) {
      const old = document.getElementById(fresh.id);
      if (old && shown.get(fresh.id) !== fresh.outerHTML) {
        shown.set(fresh.id, fresh.outerHTML);
        swap(old, document.importNode(fresh, true));
      }
    }
    document.title = page.title;
    live.textContent = page.getElementById("live").textContent;
    live.classList.remove("late");
  } catch {
    if (!live.classList.contains("late")) live.textContent += ", not refreshed since";
    live.classList.add("late");
  }
}

async function keepOn() {
  await refresh();
  setTimeout(keepOn, everyMs);
}

setTimeout(keepOn, everyMs);
