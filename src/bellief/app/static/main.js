// The frame: pages as tabs, and the way from one to the next.
import { $ } from "./dom.js";
import { connect, emit, on, session } from "./session.js";
import { redraw } from "./charts.js";
import { openFirst } from "./log.js";
import "./value.js";
import "./policies.js";
import "./agents.js";
import "./take.js";

const tabs = [...document.querySelectorAll('[role="tab"]')];

export function showPage(name, focus = false) {
  for (const tab of tabs) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    $(tab.getAttribute("aria-controls")).hidden = !chosen;
    if (chosen && focus) tab.focus();
  }
  redraw();
  emit("page", name);
}

for (const [place, tab] of tabs.entries()) {
  tab.addEventListener("click", () => showPage(tab.id.slice(4)));
  tab.addEventListener("keydown", (event) => {
    const next = { ArrowRight: place + 1, ArrowLeft: place - 1 + tabs.length, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    showPage(tabs[next % tabs.length].id.slice(4), true);
  });
}
on("show-page", (name) => showPage(name, true));

on("log", () => {
  for (const part of document.querySelectorAll(".with-log")) part.hidden = session.log === null;
  for (const part of document.querySelectorAll(".needs-log")) part.hidden = session.log !== null;
});

const made = await connect();
if (made) {
  document.body.dataset.ready = "yes";
  if (made.has_log) await openFirst();
}
