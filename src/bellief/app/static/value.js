// The page Value: one policy, its posterior, state by state, and what the range comes from.
import { $, element, fill, notes, number, percent, problem, showHow, table, whole } from "./dom.js";
import { ask, busy, emit, on, session } from "./session.js";
import { bars, hill, ranges } from "./charts.js";
import { checkLog } from "./log.js";

const FULL = 1000;
const QUICK = 200;
// Milliseconds: slower full answers are preceded by quick ones while a slider is dragged.
const SLOW = 150;
let chosenState = null;
let lastFull = 0;
let count = 0;

// Sliders move evenly over logarithms; these turn their places into numbers and back.
const stepsAhead = (place) => 10 ** (0.3 + (place / 100) * 2.7);
const discountAt = (place) => Number((1 - 1 / stepsAhead(place)).toFixed(place > 60 ? 4 : 3));
const placeOf = (discount) => Math.round(((Math.log10(1 / (1 - Math.min(discount, 0.999))) - 0.3) / 2.7) * 100);
const horizonAt = (place) => Math.round(10 ** (place / 15));
// At the place of the usual weight it is exactly that.
const usualPlace = () => Math.round(10 * (Math.log10(session.log?.prior_weight ?? 0.1) + 2));
const weightAt = (place) => (place === usualPlace() ? session.log?.prior_weight ?? 0.1 : Number((10 ** (-2 + place / 10)).toPrecision(2)));
let discount = 0.95;

export function settings() {
  const log = session.log;
  const range = rangeNow(log);
  return {
    discount, level: Number($("level").value) / 100,
    horizon: $("limited").checked ? horizonAt(Number($("horizon").value)) : null,
    prior_weight: weightAt(Number($("prior").value)),
    reward_range: range,
  };
}

function rangeNow(log) {
  const low = Number($("range-low").value), high = Number($("range-high").value);
  if (low === 100 && high === 0) return null;
  const width = log.reward_high - log.reward_low || 1;
  return [log.reward_low - ((100 - low) / 100) * width, log.reward_high + (high / 100) * width];
}

function tellSliders() {
  const now = settings();
  $("discount-said").textContent = `about ${number(1 / (1 - now.discount), 3)} steps (discount ${number(now.discount)})`;
  $("level-said").textContent = `${$("level").value}%`;
  $("horizon-said").textContent = now.horizon ? `${whole(now.horizon)} ${now.horizon === 1 ? "step" : "steps"}` : "for ever";
  $("prior-said").textContent = `as much as ${number(now.prior_weight, 2)} observations of each pair`;
  $("range-said").textContent = now.reward_range ? `${number(now.reward_range[0])} to ${number(now.reward_range[1])}` : "as seen in the log";
}

function reset() {
  discount = session.log?.discount ?? 0.95;
  $("discount").value = placeOf(discount);
  $("level").value = 90;
  $("limited").checked = false;
  $("horizon").value = 30;
  $("horizon").disabled = true;
  $("prior").value = usualPlace();
  $("range-low").value = 100;
  $("range-high").value = 0;
  tellSliders();
}

// While one question is being answered the newest one waits; those between are never asked.
let asking = false, waiting = null;
async function update(final) {
  if (!session.log) return;
  if (asking) {
    waiting = { final: final || waiting?.final };
    return;
  }
  asking = true;
  const draws = final || lastFull < SLOW ? FULL : QUICK;
  const log = session.log;
  const began = performance.now();
  const answer = await busy("value", "Computing the value", (signal) => ask("value", { ...settings(), policy: $("policy").value, draws }, signal));
  asking = false;
  if (log === session.log && !answer.stopped) {
    if (draws === FULL) lastFull = performance.now() - began;
    show(answer);
    if (draws === FULL && !answer.error) after(answer, final);
  }
  if (waiting) {
    const next = waiting;
    waiting = null;
    update(next.final);
  } else if (draws !== FULL) update(true);
}

export function valueSentence(answer) {
  const { mean, low, high } = answer.start;
  return `${said(answer.policy)} is worth about ${number(mean)} from the start; with ${Math.round(100 * answer.level)}% probability, ` +
    `between ${number(low)} and ${number(high)}.`;
}

export function said(policy) {
  if (policy === "behaviour") return "Acting as in the log";
  if (policy === "uniform") return "Acting at random";
  return policy.startsWith("always:") ? `Always doing “${policy.slice(7)}”` : `The policy “${policy}”`;
}

function show(answer) {
  problem($("value-problem"), answer.error);
  if (answer.error) return;
  const sentence = answer.cannot_tell ?? valueSentence(answer);
  for (const page of ["value", "log"]) {
    $(`${page}-sentence`).textContent = sentence;
    hill($(`${page}-chart`), { ...answer.start, density: answer.density }, sentence);
  }
  showSupport(answer);
  showHow("value", answer);
  document.body.dataset.value = String(++count);
  document.body.dataset.draws = String(answer.draws);
}

function showSupport(answer) {
  const facts = [];
  if (answer.cannot_tell) facts.push(element("div", { class: "fact warn" }, valueSentence(answer)));
  if (answer.supported !== null) {
    const share = answer.supported;
    const how = share > 0.95 ? "Almost everything" : share > 0.6 ? "Most" : share > 0.3 ? "Only part" : "Little";
    facts.push(element("div", { class: share > 0.6 ? "fact" : "fact warn" },
      `${how} of what this way of acting does was seen often enough: ${percent(share)} of its time is spent where the log has enough rows.`));
  }
  if (answer.bounds !== null) {
    facts.push(element("div", { class: "fact" },
      `Were all that was hardly ever seen as bad as possible, it would be worth ${number(answer.bounds[0])}; as good as possible, ${number(answer.bounds[1])}.`));
  }
  // What concerns hardly any of the policy's time is said further below only.
  if (answer.time_in_unvisited > 0.01 && answer.warnings.length && answer.warnings[0] !== answer.cannot_tell) facts.push(element("div", { class: "fact warn" }, answer.warnings[0]));
  fill($("value-support"), facts);
}

// What a full answer brings besides the picture, once the slider rests.
async function after(answer, final) {
  session.answers.value = answer;
  emit("answer", "value");
  showStates(answer);
  notes($("value-notes"), answer.sentences);
  if (chosenState !== null) showState(chosenState, false);
  if (final) await showCollect();
  if (session.log?.check_at_once && !session.log.checked) {
    session.log.checked = true;
    checkLog();
  }
}

function showStates(answer) {
  const { states, level } = answer;
  const range = `${Math.round(100 * level)}%`;
  const summary = `Value of each of ${states.length} states with its ${range} range; the table below has the numbers.`;
  ranges($("states-chart"), states, summary, true);
  const pick = (row) => element("button", { type: "button", onclick: () => showState(row.index, true) }, row.state);
  table($("states-table"), "Values of states", [
    { title: "state", cell: pick }, { title: "mean", cell: (row) => number(row.mean), number: true },
    { title: `${range} from`, cell: (row) => number(row.low), number: true }, { title: "to", cell: (row) => number(row.high), number: true },
    { title: "times seen", cell: (row) => whole(row.visits), number: true },
  ], states, (row) => ({ "data-state": row.index, class: row.index === chosenState ? "chosen" : null }));
  $("states-more").textContent = answer.more_states ? `And ${whole(answer.more_states)} states that were seen less often.` : "";
}

async function showState(index, focus) {
  chosenState = index;
  const answer = await ask("state", { state: index });
  if (answer.error) return;
  for (const row of document.querySelectorAll("#states-table tr[data-state]")) row.classList.toggle("chosen", Number(row.dataset.state) === index);
  $("state-title").textContent = `State ${answer.state}`;
  const sentence = `Starting here is worth about ${number(answer.mean)}; with ${Math.round(100 * answer.level)}% probability, between ${number(answer.low)} and ${number(answer.high)}.`;
  $("state-sentence").textContent = sentence;
  $("state-chart").hidden = false;
  $("state-table-part").hidden = false;
  hill($("state-chart"), answer, sentence, "value of this state");
  const leads = (pair) => {
    const shown = pair.leads_to.map((one) => `${whole(one.times)}× ${one.ends && one.state !== "the end" ? `${one.state}, the end` : one.state}`);
    if (pair.more) shown.push(`and ${pair.more} more`);
    return shown.length ? element("ul", { class: "plain" }, shown.map((text) => element("li", {}, text))) : "never tried";
  };
  table($("state-table"), "What was done in this state", [
    { title: "action", cell: (pair) => pair.action }, { title: "policy", cell: (pair) => (pair.share === 0 ? "–" : percent(pair.share)), number: true },
    { title: "seen", cell: (pair) => `${whole(pair.seen)}×`, number: true }, { title: "paid", cell: (pair) => number(pair.reward), number: true },
    { title: "led to", cell: leads },
  ], answer.pairs);
  if (focus) $("state-title").focus();
  document.body.dataset.state = answer.state;
}

async function showCollect() {
  const log = session.log;
  const answer = await ask("collect", { ...settings(), policy: $("policy").value });
  if (answer.error || log !== session.log) return;
  session.answers.collect = answer;
  emit("answer", "collect");
  const share = (pair) => (pair.variance_reduction === null ? "never seen: it could be anything" : `${number(100 * (pair.share ?? 0), 2)}%`);
  const largest = Math.max(...answer.pairs.map((pair) => pair.share ?? 0), 0.001);
  const rows = answer.pairs.map((pair) => ({
    name: `${pair.state} / ${pair.action}`, value: pair.variance_reduction === null ? 1.15 * largest : pair.share ?? 0, text: `${share(pair)}, seen ${whole(pair.seen)}×`, strong: pair.seen < 5,
  }));
  const first = answer.pairs[0];
  const summary = first ? `Most would be learned from state ${first.state}, action ${first.action}, seen ${whole(first.seen)} times.` : "No pair is used.";
  bars($("collect-chart"), rows, summary, "uncertainty that one more visit removes (share of the variance)");
  table($("collect-table"), "Pairs that contribute most", [
    { title: "state", cell: (pair) => pair.state }, { title: "action", cell: (pair) => pair.action },
    { title: "seen", cell: (pair) => `${whole(pair.seen)}×`, number: true }, { title: "one more visit removes", cell: share, number: true },
  ], answer.pairs);
  showHow("collect", answer);
  document.body.dataset.collect = "yes";
}

export function policyOptions(select, chosen) {
  const log = session.log;
  const all = [["behaviour", "as in the log"], ["uniform", "at random, all actions alike"],
    ...log.action_names.map((name) => [`always:${name}`, `always ${name}`]), ...session.saved.map((name) => [`saved:${name}`, name])];
  fill(select, all.map(([value, text]) => element("option", { value, selected: value === chosen }, text)));
}

on("log", (log) => {
  chosenState = null;
  session.answers = {};
  emit("answer", null);
  $("state-title").textContent = "No state chosen";
  $("state-sentence").textContent = "";
  for (const id of ["state-chart", "state-table-part"]) $(id).hidden = true;
  $("log-sentence").textContent = "";
  if (!log) return;
  policyOptions($("policy"), "behaviour");
  reset();
  update(true);
});
on("saved", () => policyOptions($("policy"), $("policy").value));

$("discount").addEventListener("input", () => { discount = discountAt(Number($("discount").value)); });
$("limited").addEventListener("input", () => { $("horizon").disabled = !$("limited").checked; });
for (const id of ["discount", "level", "horizon", "limited", "prior", "range-low", "range-high"]) {
  $(id).addEventListener("input", () => { tellSliders(); update(false); });
  $(id).addEventListener("change", () => update(true));
}
$("policy").addEventListener("change", () => update(true));
$("value-form").addEventListener("submit", (event) => event.preventDefault());
$("value-reset").addEventListener("click", () => { reset(); update(true); });
$("states-chart").addEventListener("choose", (event) => {
  const row = session.answers.value?.states[event.detail];
  if (row) showState(row.index, false);
});
