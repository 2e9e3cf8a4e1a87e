// The page Agents: learning curves and the value posterior while agents run.
import { $, element, fill, number, showHow, whole } from "./dom.js";
import { ask, fileAddress, on } from "./session.js";
import { hills, lines } from "./charts.js";

let curves = {}, names = [], optimum = null, history = [], running = new Set(), paused = false, frame = null, latest = null;

function begin(agents) {
  names = agents;
  curves = Object.fromEntries(agents.map((name) => [name, { name, x: [], y: [], low: [], high: [] }]));
  history = [];
  latest = null;
  running = new Set(agents);
  paused = false;
  $("posterior-part").hidden = true;
  $("curves-none").hidden = true;
  $("curves-part").hidden = false;
  buttons();
}

function buttons() {
  $("agents-pause").disabled = $("agents-stop").disabled = running.size === 0;
  $("agents-pause").textContent = paused ? "Go on" : "Pause";
}

// Events may come faster than pictures can be drawn.
function later() {
  frame ??= requestAnimationFrame(() => {
    frame = null;
    show();
  });
}

function show() {
  const series = names.map((name) => curves[name]).filter((one) => one.x.length);
  const told = series.map((one) => `${one.name} ${number(one.y.at(-1))}`).join(", ");
  lines($("curves-chart"), series, `Reward per step: ${told}.`, { xtitle: "step", ytitle: "reward per step", reference: optimum === null ? null : { y: optimum, name: "best possible" } });
  if (latest) showPosterior();
}

function showPosterior() {
  $("posterior-part").hidden = false;
  $("posterior-agent").textContent = latest.agent;
  $("posterior-step").textContent = `after ${whole(latest.step)} ${latest.step === 1 ? "step" : "steps"}`;
  const [low, , high] = latest.intervals.joint, [gaussianLow, , gaussianHigh] = latest.intervals.gaussian;
  const said = `After ${latest.step} steps: joint belief from ${number(low)} to ${number(high)}, the paper's Gaussian from ${number(gaussianLow)} to ${number(gaussianHigh)}, true value ${number(latest.truth)}.`;
  hills($("posterior-chart"), [{ name: "joint belief", density: latest.joint }, { name: "the paper's Gaussian", density: latest.gaussian }], said, { truth: latest.truth, xtitle: "value of the best policy, from the first state" });
  const x = history.map((one) => Math.max(1, one.step));
  const part = (kind, place) => history.map((one) => one.intervals[kind][place]);
  const series = [["joint", "joint belief"], ["gaussian", "the paper's Gaussian"]].map(([kind, name], place) => ({ name, x, y: part(kind, 1), low: part(kind, 0), high: part(kind, 2), colour: place }));
  lines($("contraction-chart"), series, said, { xtitle: "step", ytitle: "value", log: true, reference: { y: latest.truth, name: "true value" } });
}

function ended(name, text) {
  running.delete(name);
  $("agents-said").textContent = text;
  if (running.size === 0) document.body.dataset.agents = "done";
  buttons();
}

on("agents-began", (told) => { optimum = told.optimum; });
on("curve", ({ agent, points }) => {
  const curve = curves[agent];
  if (!curve) return;
  for (const [step, mean, low, high] of points) {
    // Another run may bring a step that was there already.
    let place = curve.x.length;
    while (place > 0 && curve.x[place - 1] >= step) place -= 1;
    const again = curve.x[place] === step ? 1 : 0;
    curve.x.splice(place, again, step); curve.y.splice(place, again, mean);
    curve.low.splice(place, again, low); curve.high.splice(place, again, high);
  }
  document.body.dataset.steps = String(names.reduce((sum, name) => sum + (curves[name].x.at(-1) ?? 0), 0));
  later();
});
on("posterior", (told) => {
  if (!curves[told.agent]) return;
  latest = told;
  history.push(told);
  document.body.dataset.posterior = String(history.length);
  later();
});
on("agent-done", ({ agent, final, seconds }) => ended(agent, `${agent} is done: ${number(final)} a step at the end (${number(seconds, 2)} seconds).`));
on("agent-stopped", ({ agent }) => ended(agent, `${agent} was stopped.`));
on("agent-failed", ({ agent, error }) => ended(agent, `${agent}: ${error}`));

$("agents-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const agents = [...document.querySelectorAll('input[name="agent"]:checked')].map((box) => box.value);
  document.body.dataset.agents = "running";
  $("agents-said").textContent = "Starting; the first steps take a few seconds, because programs are compiled.";
  begin(agents);
  const question = { env: $("env").value, agents, steps: Number($("steps").value), runs: Number($("runs").value), seed: 0, watch: $("watch").value, pace: $("pace").value };
  const answer = await ask("agents", question);
  if (answer.error) {
    running.clear();
    buttons();
    $("agents-said").textContent = answer.error;
    return;
  }
  showHow("agents", answer);
  $("agents-download").href = fileAddress("agents", "curves.csv");
  $("agents-download").hidden = false;
});
function watchable() {
  const names = [...document.querySelectorAll('input[name="agent"]:checked')].map((box) => box.value);
  const before = $("watch").value;
  const chosen = names.includes(before) ? before : names.includes("psrl-paper") ? "psrl-paper" : names[0];
  fill($("watch"), names.map((name) => element("option", { value: name, selected: name === chosen }, name)));
}
for (const box of document.querySelectorAll('input[name="agent"]')) box.addEventListener("change", watchable);
$("agents-pause").addEventListener("click", async () => {
  paused = !paused;
  buttons();
  await ask("agents-control", { do: paused ? "pause" : "resume" });
  $("agents-said").textContent = paused ? "Paused." : "Going on.";
});
$("agents-stop").addEventListener("click", () => ask("agents-control", { do: "stop" }));
$("pace").addEventListener("change", () => { if (running.size) ask("agents-control", { do: "pace", pace: $("pace").value }); });
