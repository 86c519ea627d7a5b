// Fetches this page again every few seconds and swaps the sections that changed. Focus, scroll, open details and what is typed stay.
"use strict";

const live = document.getElementById("live");
const everyMs = Number(live.dataset.everyS) * 1000;
const sections = (root) => [...root.querySelectorAll("main > section[id]")];
const shown = new Map(sections(document).map((section) => [section.id, section.outerHTML]));

function isBusy() {
  const selected = document.getSelection();
  return document.hidden || document.querySelector(":popover-open") !== null || (selected !== null && !selected.isCollapsed);
}

function successor(element, old, fresh) {
  // The element's place in a section made anew: a field's by its name, another's by its position among those that take the focus.
  for (const [key, field] of fields(old)) if (field === element) return fields(fresh).get(key);
  return focusable(fresh)[focusable(old).indexOf(element)];
}

function focusable(section) {
  return [...section.querySelectorAll("a[href], button, summary, input, select, textarea, [tabindex]")];
}

function isEdited(field) {
  if (field.tagName === "SELECT") return field.selectedIndex !== Math.max(0, [...field.options].findIndex((option) => option.defaultSelected));
  return ["checkbox", "radio"].includes(field.type) ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
}

function fields(root) {
  // Every field of the forms by its name, and which of that name it is.
  const seen = new Map();
  return new Map([...root.querySelectorAll("input:not([type=hidden]), select, textarea")].map((field) => {
    const nth = seen.get(field.name) ?? 0;
    seen.set(field.name, nth + 1);
    return [field.name + " " + nth, field];
  }));
}

function keepTyped(old, fresh) {
  const found = fields(fresh);
  for (const [key, field] of fields(old)) {
    const other = found.get(key);
    if (!other || !isEdited(field)) continue;
    if (field.tagName === "SELECT" && ![...other.options].some((option) => option.value === field.value)) continue;
    if (["checkbox", "radio"].includes(field.type)) other.checked = field.checked;
    else other.value = field.value;
  }
}

function caret(field) {
  // Where the text cursor stands; fields that have none say so by throwing, or by null.
  try {
    return field.selectionStart === null || field.selectionStart === undefined ? null : [field.selectionStart, field.selectionEnd];
  } catch {
    return null;
  }
}

function swap(old, fresh) {
  const open = [...old.querySelectorAll("details[open][id]")].map((details) => details.id);
  const scrolled = [...old.querySelectorAll(".scroll")].map((box) => box.scrollTop);
  const focused = old.contains(document.activeElement) ? successor(document.activeElement, old, fresh) : null;
  const at = focused && caret(document.activeElement);
  keepTyped(old, fresh);
  old.replaceWith(fresh);
  for (const id of open) fresh.querySelector("#" + CSS.escape(id))?.setAttribute("open", "");
  fresh.querySelectorAll(".scroll").forEach((box, n) => { box.scrollTop = scrolled[n] ?? 0; });
  focused?.focus({ preventScroll: true });
  if (at && caret(focused)) focused.setSelectionRange(...at);
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
      const isChoosing = old?.contains(document.activeElement) && document.activeElement.tagName === "SELECT"; // its list may be open
      if (old && !isChoosing && shown.get(fresh.id) !== fresh.outerHTML) {
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
