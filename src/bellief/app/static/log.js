// The page Log: drop, pick, recognise, check.
import { $, element, fill, notes, number, showHow, table, whole } from "./dom.js";
import { ask, busy, emit, session, upload } from "./session.js";

const ROLES = {
  state: "Situation (state)", action: "What was done (action)", reward: "What it paid (reward)", next_state: "Situation after (next state)",
  terminated: "Over for good (terminated)", done: "Over in any way (done)", truncated: "Broken off (truncated)",
  episode: "Which case (episode)", step: "Which step (step)",
};

// Of several requests under way only the latest is shown: an earlier answer would undo what was chosen since.
let asked = 0;
async function open(text, work) {
  const mine = ++asked;
  const answer = await busy("log", text, work);
  if (mine === asked && !answer.stopped) show(answer);
}

export const openFirst = () => open("Reading the log", (signal) => ask("first", {}, signal));
const openFile = (file) => open(`Reading ${file.name}`, (signal) => upload("log", file, signal));

function show(answer) {
  const failed = Boolean(answer.error);
  session.log = failed ? null : answer;
  session.saved = answer.policies ?? [];
  $("log-error").hidden = !failed;
  $("log-error-text").textContent = answer.error ?? "";
  $("log-found").hidden = failed;
  $("log-columns-part").hidden = !answer.columns;
  $("log-check-part").hidden = failed;
  if (answer.columns) showColumns(answer, failed);
  if (!failed) {
    $("log-name").textContent = answer.name;
    const facts = {
      rows: whole(answer.rows), states: whole(answer.states), actions: whole(answer.actions), episodes: whole(answer.episodes),
      "of these ended": whole(answer.ends), rewards: `${number(answer.reward_low)} to ${number(answer.reward_high)}`,
    };
    fill($("log-numbers"), Object.entries(facts).map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
    notes($("check-list"), []);
    $("check-offer").hidden = answer.check_at_once;
  }
  emit("log", session.log);
  if (failed) $("log-error").scrollIntoView({ block: "nearest" });
  document.body.dataset.log = failed ? "failed" : "read";
}

function showColumns(answer, failed) {
  fill($("log-columns"), answer.roles.map((role) => {
    const id = `column-${role}`;
    const options = ["", ...answer.columns].map((name) => element("option", { value: name, selected: answer.taken[role] === name }, name || "none"));
    return element("div", { class: "field" }, element("label", { for: id }, ROLES[role] ?? role), element("select", { id, "data-role": role, onchange: assign }, options));
  }));
  $("log-unused").textContent = answer.unused?.length ? `Not used: ${answer.unused.join(", ")}.` : "";
  notes($("log-notes"), answer.notes ?? []);
  $("log-rows-title").textContent = failed && answer.row ? `Around row ${whole(answer.row)}` : "First rows";
  const rows = answer.preview.map((cells, place) => ({ cells, row: answer.first_row + place }));
  const columns = [{ title: "row", cell: (row) => whole(row.row), number: true },
    ...answer.columns.map((name, place) => ({ title: name, cell: (row) => row.cells[place] ?? "" }))];
  table($("log-rows"), "Rows of the file", columns, rows, (row) => (failed && row.row === answer.row ? { class: "bad" } : {}));
}

function assign() {
  const columns = {};
  for (const select of document.querySelectorAll("#log-columns select")) if (select.value) columns[select.dataset.role] = select.value;
  open("Reading the log again", (signal) => ask("columns", { columns }, signal));
}

export async function checkLog() {
  notes($("check-list"), ["Being checked."]);
  $("check-offer").hidden = true;
  const log = session.log;
  const answer = await busy("check", "Checking the log", (signal) => ask("check", {}, signal));
  if (session.log !== log) return;
  if (answer.error) {
    notes($("check-list"), [answer.stopped ? "The check was stopped." : answer.error]);
    $("check-offer").hidden = false;
    return;
  }
  const said = (p) => (p === null ? "too few data to tell" : p < 0.01 ? `no (p = ${number(p, 3)})` : `nothing speaks against it (p = ${number(p, 3)})`);
  notes($("check-list"), [
    `What comes next depends on state and action only: ${said(answer.markov)}.`,
    `The second half behaves like the first: ${said(answer.drift)}.`,
    `Rewards have no heavy tails: ${said(answer.reward_shape)}.`,
    `Stray rewards: ${answer.outliers.length}.`,
    ...answer.warnings,
  ]);
  showHow("check", answer);
  document.body.dataset.checked = "yes";
}

const drop = $("drop");
for (const name of ["dragenter", "dragover"]) {
  document.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
}
document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) drop.classList.remove("over"); });
document.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  const file = event.dataTransfer.files[0];
  if (!file) return;
  emit("show-page", "log");
  openFile(file);
});
$("file").addEventListener("change", (event) => {
  const file = event.target.files[0];
  if (file) openFile(file);
  event.target.value = "";
});
for (const button of document.querySelectorAll(".example")) {
  button.addEventListener("click", () => open("Reading the log", (signal) => ask("example", { name: button.dataset.example }, signal)));
}
$("go-value").addEventListener("click", () => emit("show-page", "value"));
$("check-start").addEventListener("click", checkLog);
