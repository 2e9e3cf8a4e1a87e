// The page Policies: compare, improve, edit, upload.
import { $, element, fill, notes, number, percent, problem, showHow, table, whole } from "./dom.js";
import { ask, busy, emit, on, session, upload } from "./session.js";
import { hills, lines } from "./charts.js";
import { policyOptions, settings } from "./value.js";

let chosen = ["behaviour", "uniform"];
let listed = [];

function showList() {
  const texts = { behaviour: "as in the log", uniform: "at random, all actions alike" };
  fill($("policy-list"), listed.map((name) => {
    const text = texts[name] ?? (name.startsWith("always:") ? `always ${name.slice(7)}` : name.slice(6));
    const box = element("input", { type: "checkbox", value: name, checked: chosen.includes(name), onchange: (event) => {
      chosen = event.target.checked ? [...chosen, name] : chosen.filter((one) => one !== name);
    } });
    return element("label", { class: "inline" }, box, element("span", {}, text));
  }));
}

function add(name, choose = true) {
  if (!listed.includes(name)) listed.push(name);
  if (choose && !chosen.includes(name)) chosen.push(name);
  showList();
}

export function setSaved(names, added) {
  session.saved = names;
  emit("saved", names);
  for (const name of names) add(`saved:${name}`, `saved:${name}` === added);
}

async function compare() {
  const policies = listed.filter((name) => chosen.includes(name));
  const answer = await busy("compare", "Comparing", (signal) => ask("compare", { ...settings(), policies, target: 0.95 }, signal));
  if (answer.stopped) return;
  problem($("compare-problem"), answer.error);
  if (answer.error) return;
  session.answers.compare = answer;
  emit("answer", "compare");
  $("compare-part").hidden = false;
  const best = answer.policies.find((row) => row.policy === answer.best);
  const sentence = `“${answer.best}” looks best: worth about ${number(best.mean)} from the start. It really is the best of these with probability ${percent(best.prob_best)}.`;
  const told = Object.entries(answer.cannot_tell).map(([name, text]) => `${name}: ${text}`);
  $("compare-sentence").textContent = [...told, sentence].join(" ");
  hills($("compare-chart"), answer.policies.map((row) => ({ name: row.policy, density: row.density })), sentence);
  const range = `${Math.round(100 * answer.level)}%`;
  table($("compare-table"), "Policies compared", [
    { title: "policy", cell: (row) => row.policy }, { title: "value", cell: (row) => number(row.mean), number: true },
    { title: `${range} from`, cell: (row) => number(row.low), number: true }, { title: "to", cell: (row) => number(row.high), number: true },
    { title: "is best", cell: (row) => percent(row.prob_best), number: true }, { title: "expected regret", cell: (row) => number(row.expected_regret), number: true },
  ], answer.policies, (row) => ({ class: row.policy === answer.best ? "chosen" : null }));
  $("compare-more").textContent = answer.notes.join(" ");
  $("forecast-part").hidden = answer.forecasts.length === 0;
  if (answer.forecasts.length) {
    const series = [{ name: "chance to choose the best", x: answer.forecasts.map((one) => one.transitions), y: answer.forecasts.map((one) => one.chance), error: answer.forecasts.map((one) => one.error ?? 0), markers: true }];
    lines($("forecast-chart"), series, answer.notes.join(" "), { xtitle: "more rows", ytitle: "chance", log: true, reference: { y: answer.target, name: "sure enough" }, yrange: [0.4, 1.02] });
  }
  notes($("compare-notes"), Object.entries(answer.warnings).flatMap(([name, texts]) => texts.filter((text) => text !== answer.cannot_tell[name]).map((text) => `${name}: ${text}`)));
  showHow("compare", answer);
  document.body.dataset.compared = String(answer.policies.length);
}

async function improve() {
  const answer = await busy("improve", "Looking for a better policy", (signal) => ask("improve", { ...settings(), objective: $("objective").value }, signal));
  if (answer.stopped) return;
  problem($("compare-problem"), answer.error);
  if (answer.error) return;
  session.answers.improve = answer;
  emit("answer", "improve");
  $("improve-part").hidden = false;
  $("improve-sentence").textContent = `${answer.cannot_tell ? `${answer.cannot_tell} ` : ""}It is worth about ${number(answer.start.mean)} from the start (${number(answer.start.low)} to ${number(answer.start.high)}), and more than what the log did with probability ${percent(answer.prob_better)}. ` +
    `It differs from the usual action in ${whole(answer.changed)} of ${whole(answer.policy.length)} states.`;
  table($("improve-table"), "The recommended policy", [
    { title: "state", cell: (row) => row.state }, { title: "do", cell: (row) => row.action }, { title: "usual so far", cell: (row) => row.usual_action ?? "–" },
    { title: "times tried", cell: (row) => whole(row.visits_of_action), number: true }, { title: "value", cell: (row) => number(row.value), number: true },
  ], answer.policy, (row) => ({ class: row.action !== row.usual_action ? "chosen" : null }));
  showHow("improve", answer);
  setSaved(answer.policies, "saved:improved");
  document.body.dataset.improved = "yes";
}

let base = null;
async function loadTable() {
  base = $("edit-base").value;
  const answer = await ask("policy-table", { policy: base });
  problem($("compare-problem"), answer.error);
  if (answer.error) return;
  const actions = session.log.action_names;
  const cell = (row, place) => element("input", {
    type: "number", min: 0, max: 100, step: "any", value: Number((100 * row.probabilities[place]).toFixed(1)),
    "aria-label": `${row.state}, ${actions[place]}, percent`, oninput: (event) => { event.target.closest("tr").dataset.changed = "yes"; },
  });
  table($("edit-table"), "Shares of actions in percent", [
    { title: "state", cell: (row) => row.state }, ...actions.map((name, place) => ({ title: name, cell: (row) => cell(row, place) })),
  ], answer.rows, (row) => ({ "data-row": row.index }));
  $("edit-more").textContent = answer.more ? `And ${whole(answer.more)} states that stay as they are.` : "";
  $("edit-part").hidden = false;
  $("edit-said").textContent = "";
}

async function saveTable() {
  // Rows that were not changed keep their exact shares; the others are shown, and meant, to a tenth of a percent.
  const rows = [...document.querySelectorAll("#edit-table tr[data-changed]")].map((row) => {
    const shares = [...row.querySelectorAll("input")].map((input) => Number(input.value) / 100);
    const sum = shares.reduce((total, share) => total + share, 0);
    return { index: Number(row.dataset.row), probabilities: Math.abs(sum - 1) < 0.005 ? shares.map((share) => share / sum) : shares };
  });
  const answer = await ask("save-policy", { base, rows, name: $("edit-name").value });
  $("edit-said").textContent = answer.error ?? `Saved as “${answer.saved.slice(6)}”: it is in the list to compare, and on the page Value.`;
  if (!answer.error) setSaved(answer.policies, answer.saved);
}

on("log", (log) => {
  chosen = ["behaviour", "uniform"];
  listed = ["behaviour", "uniform"];
  for (const id of ["compare-part", "improve-part", "edit-part"]) $(id).hidden = true;
  problem($("compare-problem"), "");
  $("compare-sentence").textContent = "Choose two or more, then compare.";
  if (!log) return;
  for (const name of session.saved) listed.push(`saved:${name}`);
  showList();
  fill($("always"), log.action_names.map((name) => element("option", { value: `always:${name}` }, name)));
  policyOptions($("edit-base"), "behaviour");
});
on("saved", () => policyOptions($("edit-base"), $("edit-base").value));
$("always-add").addEventListener("click", () => add($("always").value));
$("compare-start").addEventListener("click", compare);
$("improve-start").addEventListener("click", improve);
$("edit-load").addEventListener("click", loadTable);
$("edit-save").addEventListener("click", saveTable);
$("policy-file").addEventListener("change", async (event) => {
  const file = event.target.files[0];
  event.target.value = "";
  if (!file) return;
  const answer = await upload("policy", file);
  problem($("compare-problem"), answer.error);
  if (!answer.error) setSaved(answer.policies, answer.saved);
});
