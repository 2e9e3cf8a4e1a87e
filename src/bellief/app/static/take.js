// The page Take away: files, commands and Python of every answer.
import { $, element, fill } from "./dom.js";
import { fileAddress, on, session } from "./session.js";

const KINDS = { value: "What it is worth", collect: "Where the range comes from", compare: "Policies compared", improve: "What the data recommend" };
const FILES = { "report.html": "Report (HTML)", "figure.svg": "Figure (SVG)", "numbers.csv": "Numbers (CSV)" };

function code(id, text, said) {
  return element("div", { class: "code" }, element("pre", { id, tabindex: 0, "aria-label": said }, text),
    element("button", { type: "button", class: "copy", "data-copy": id }, said));
}

function show() {
  const kinds = Object.keys(KINDS).filter((kind) => session.answers[kind]);
  $("take-none").hidden = kinds.length > 0;
  const parts = kinds.map((kind) => {
    const answer = session.answers[kind];
    const links = Object.entries(FILES).map(([file, text]) => element("a", { class: "button", href: fileAddress(kind, file), download: true, "data-file": `${kind}-${file}`, "aria-label": `${text} of: ${KINDS[kind]}` }, text));
    return element("section", { class: "take" }, element("h2", {}, KINDS[kind]), element("p", { class: "pair" }, links),
      code(`take-${kind}-command`, answer.command, "Copy the command"), code(`take-${kind}-python`, answer.python, "Copy the Python"));
  });
  const saved = session.saved.map((name) => element("a", { class: "button", href: fileAddress("policy", `${name}.csv`), download: true }, `${name}.csv`));
  if (saved.length) parts.push(element("section", { class: "take" }, element("h2", {}, "Policies of this page"), element("p", {}, "The commands above name these files."), element("p", { class: "pair" }, saved)));
  fill($("take-list"), parts);
}

for (const event of ["answer", "saved", "log"]) on(event, show);
