// Light, dark, or what the system prefers. Runs before the page is drawn, so that it does not flash.
"use strict";
(() => {
  const names = ["system", "light", "dark"];
  const root = document.documentElement;
  const read = () => { try { return localStorage.getItem("bellief-theme") || "system"; } catch { return "system"; } };
  const apply = (name) => {
    if (name === "system") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", name);
  };
  apply(read());
  const changed = () => window.dispatchEvent(new Event("bellief-theme"));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const show = () => { button.textContent = `Theme: ${read()}`; };
    show();
    button.addEventListener("click", () => {
      const next = names[(names.indexOf(read()) + 1) % names.length];
      try { localStorage.setItem("bellief-theme", next); } catch { /* private windows may refuse */ }
      apply(next);
      show();
      changed();
    });
  });
})();
