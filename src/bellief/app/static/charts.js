// Plotly, in the page's colours. Labels are escaped, because Plotly reads some markup in texts.
/* global Plotly */
import { number } from "./dom.js";

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const colour = (place) => css(`--c${place % 8}`);
export const clean = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
export const label = (text, most = 28) => clean(shorten(String(text), most));

function faded(hex, alpha) {
  const value = parseInt(hex.slice(1), 16);
  return `rgba(${value >> 16}, ${(value >> 8) & 255}, ${value & 255}, ${alpha})`;
}

const drawn = new Map();

// Draw, and draw again when the theme or the size changes.
export function draw(target, make, said) {
  drawn.set(target, make);
  if (said !== undefined) target.setAttribute("aria-label", said);
  return render(target, make);
}

function render(target, make) {
  if (!target.offsetParent) return Promise.resolve();  // drawn when its page is shown
  const { data, layout = {} } = make();
  const ink = css("--ink");
  const axis = { gridcolor: css("--grid"), zerolinecolor: css("--line"), linecolor: css("--line"), tickcolor: css("--line"), automargin: true, fixedrange: true };
  const whole = {
    font: { color: ink, size: 13, family: "system-ui, sans-serif" },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 48, r: 16, t: 12, b: 44 }, showlegend: false, dragmode: false,
    hoverlabel: { bgcolor: css("--panel"), bordercolor: css("--line"), font: { color: ink } },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, bgcolor: "rgba(0,0,0,0)" },
    ...layout,
    xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis },
  };
  return Plotly.react(target, data, whole, { displayModeBar: false, responsive: true });
}

export function redraw() {
  for (const [target, make] of drawn) render(target, make);
}
window.addEventListener("bellief-theme", redraw);

// A hill with its range shaded and its mean as a dot.
export function hill(target, { density, mean, low, high, truth }, said, xtitle = "value from the start") {
  return draw(target, () => {
    const blue = colour(0);
    const inside = density.x.map((x, place) => [x, density.y[place]]).filter(([x]) => x >= low && x <= high);
    const at = (end) => interpolate(density, end);
    const shade = [[low, 0], [low, at(low)], ...inside, [high, at(high)], [high, 0]];
    const data = [
      { x: density.x, y: density.y, mode: "lines", line: { color: blue, width: 2 }, hoverinfo: "skip" },
      { x: shade.map((one) => one[0]), y: shade.map((one) => one[1]), mode: "lines", line: { width: 0 }, fill: "toself", fillcolor: faded(blue, 0.3), hoverinfo: "skip" },
      { x: [low, high], y: [0, 0], mode: "lines", line: { color: blue, width: 5 }, hoverinfo: "x" },
      { x: [mean], y: [0], mode: "markers", marker: { size: 11, color: blue, line: { color: css("--ground"), width: 2 } }, hovertemplate: "mean %{x:.4g}<extra></extra>" },
    ];
    if (truth !== undefined) data.push(line(truth));
    return { data, layout: { xaxis: { title: { text: clean(xtitle) } }, yaxis: { visible: false, range: [-0.06, 1.1] } } };
  }, said);
}

const line = (x) => ({ x: [x, x], y: [0, 1.05], mode: "lines", line: { color: css("--ink"), width: 2, dash: "dash" }, name: "true value", hoverinfo: "x" });

function interpolate({ x, y }, at) {
  const place = x.findIndex((one) => one >= at);
  if (place <= 0) return y[Math.max(place, 0)] ?? 0;
  const share = (at - x[place - 1]) / (x[place] - x[place - 1] || 1);
  return y[place - 1] + share * (y[place] - y[place - 1]);
}

// Several hills on one axis, told apart by colour and dashes.
const DASHES = ["solid", "dash", "dot", "dashdot"];
export function hills(target, curves, said, { truth, xtitle = "value from the start", range } = {}) {
  return draw(target, () => ({
    data: [
      ...curves.map((one, place) => ({
        x: one.density.x, y: one.density.y, mode: "lines", name: label(one.name), fill: "tozeroy",
        fillcolor: faded(colour(place), 0.12), line: { color: colour(place), width: 2.5, dash: DASHES[place % 4] }, hoverinfo: "name",
      })),
      ...(truth === undefined ? [] : [line(truth)]),
    ],
    layout: { showlegend: true, xaxis: { title: { text: clean(xtitle) }, ...(range ? { range } : {}) }, yaxis: { visible: false, range: [0, 1.1] } },
  }), said);
}

// Dots with ranges, one a row; a click chooses.
export function ranges(target, rows, said, choose) {
  target.style.height = `${Math.min(900, 70 + 24 * rows.length)}px`;
  const done = draw(target, () => ({
    data: [{
      x: rows.map((row) => row.mean), y: rows.map((_, place) => place), mode: "markers", type: "scatter",
      marker: { color: colour(0), size: 9 },
      error_x: { type: "data", symmetric: false, array: rows.map((row) => row.high - row.mean), arrayminus: rows.map((row) => row.mean - row.low), color: colour(0), thickness: 2.5, width: 0 },
      text: rows.map((row) => `${label(row.state)}: ${number(row.mean)}, from ${number(row.low)} to ${number(row.high)}`),
      hovertemplate: "%{text}<extra></extra>",
    }],
    layout: {
      xaxis: { title: { text: "value" } },
      yaxis: { range: [rows.length - 0.5, -0.5], tickvals: ticks(rows.length), ticktext: ticks(rows.length).map((place) => label(rows[place].state, 18)), showgrid: false, zeroline: false },
      margin: { l: 60, r: 16, t: 8, b: 40 },
    },
  }), said);
  if (choose && !target.dataset.listens && target.on) {
    target.dataset.listens = "yes";
    target.on("plotly_click", (event) => target.dispatchEvent(new CustomEvent("choose", { detail: event.points[0].y })));
  }
  return done;
}

const ticks = (count) => {
  const step = Math.max(1, Math.ceil(count / 34));
  return Array.from({ length: Math.ceil(count / step) }, (_, place) => place * step);
};

export function bars(target, rows, said, xtitle) {
  target.style.height = `${80 + 30 * rows.length}px`;
  return draw(target, () => ({
    data: [{
      type: "bar", orientation: "h", x: rows.map((row) => row.value), y: rows.map((_, place) => place),
      marker: { color: rows.map((row) => (row.strong ? colour(1) : colour(0))) }, text: rows.map((row) => clean(row.text)), textposition: "auto",
      hovertemplate: "%{text}<extra></extra>",
    }],
    layout: {
      xaxis: { title: { text: clean(xtitle) }, rangemode: "tozero", tickformat: ".2~p", nticks: 5 },
      yaxis: { range: [rows.length - 0.5, -0.5], tickvals: rows.map((_, place) => place), ticktext: rows.map((row) => label(row.name, 34)), showgrid: false },
      margin: { l: 80, r: 16, t: 8, b: 40 },
    },
  }), said);
}

export function lines(target, series, said, { xtitle, ytitle, reference, log = false, yrange } = {}) {
  return draw(target, () => ({
    data: [
      ...series.flatMap((one, place) => {
        const hue = colour(one.colour ?? place);
        const band = one.low ? [{ x: [...one.x, ...[...one.x].reverse()], y: [...one.high, ...[...one.low].reverse()], fill: "toself", fillcolor: faded(hue, 0.16), line: { width: 0 }, mode: "lines", hoverinfo: "skip", showlegend: false }] : [];
        return [...band, { x: one.x, y: one.y, mode: one.markers ? "lines+markers" : "lines", name: label(one.name), line: { color: hue, width: 2.5, dash: DASHES[(one.dash ?? place) % 4] }, error_y: one.error ? { type: "data", array: one.error, color: hue } : undefined }];
      }),
      ...(reference && series.length && series[0].x.length ? [{ x: [Math.min(...series.flatMap((one) => one.x)), Math.max(...series.flatMap((one) => one.x))], y: [reference.y, reference.y], mode: "lines", name: label(reference.name), line: { color: css("--ink"), dash: "dash", width: 1.5 } }] : []),
    ],
    layout: { showlegend: true, xaxis: { title: { text: clean(xtitle) }, type: log ? "log" : "linear" }, yaxis: { title: { text: clean(ytitle) }, ...(yrange ? { range: yrange } : {}) }, margin: { l: 64, r: 16, t: 12, b: 44 } },
  }), said);
}
