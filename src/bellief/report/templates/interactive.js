"use strict";
// Charts are drawn again from the data beside them, at the width there is; without this script the drawn-in ones stay.
(function () {
  const SVG = "http://www.w3.org/2000/svg";
  const root = document.documentElement;
  root.classList.add("scripted");

  function make(name, attributes, parent, text) {
    const node = document.createElementNS(SVG, name);
    for (const key of Object.keys(attributes)) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  }

  function show(value) {
    if (value === null) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(2);
    return Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 6 });
  }

  function short(value) {
    const size = Math.abs(value);
    if (size >= 1e6) return Number((value / 1e6).toPrecision(3)) + "M";
    if (size >= 1e4) return Number((value / 1e3).toPrecision(3)) + "k";
    return show(value);
  }

  function linearTicks(low, high, wanted) {
    const raw = (high - low) / wanted;
    const power = Math.pow(10, Math.floor(Math.log10(raw)));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
    const ticks = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) ticks.push(Number((at * step).toPrecision(12)));
    return ticks;
  }

  function logTicks(low, high, wanted) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    if (last - first < 1) return linearTicks(low, high, wanted).filter((value) => value > 0);
    const every = Math.max(1, Math.ceil((last - first + 1) / Math.max(wanted, 2)));
    const ticks = [];
    for (let power = first; power <= last; power += every) ticks.push(Math.pow(10, power));
    return ticks;
  }

  function Chart(figure) {
    const data = JSON.parse(figure.querySelector(".data").textContent);
    const plot = figure.querySelector(".plot"), spoken = figure.querySelector(".spoken");
    const buttons = Array.from(figure.querySelectorAll("button[data-curve]"));
    const state = { log: data.log, band: true, error: true, visible: data.curves.map(() => true), at: null };
    const readout = document.createElement("div");
    readout.className = "readout";
    readout.hidden = true;
    let view = null;

    const grid = (curve) => data.grids[curve.grid];
    const usable = (x) => x !== null && (!state.log || x > 0);

    function domain() {
      let left = Infinity, right = -Infinity, low = Infinity, high = -Infinity;
      const see = (value) => { if (value !== null && value !== undefined) { low = Math.min(low, value); high = Math.max(high, value); } };
      data.curves.forEach((curve, number) => {
        grid(curve).forEach((x, at) => {
          if (!usable(x)) return;
          left = Math.min(left, x); right = Math.max(right, x);
          if (!state.visible[number]) return;
          see(curve.mean[at]);
          if (state.band && curve.low) { see(curve.low[at]); see(curve.high[at]); }
          if (state.error && curve.error && curve.error[at] !== null && curve.mean[at] !== null) {
            see(curve.mean[at] - curve.error[at]); see(curve.mean[at] + curve.error[at]);
          }
        });
      });
      data.lines.forEach((line) => see(line[1]));
      if (left > right) { left = 1; right = 10; }
      if (low > high) { low = 0; high = 1; }
      if (left === right) { right = left + 1; }
      if (low === high) { low -= Math.abs(low) * 0.1 || 0.5; high += Math.abs(high) * 0.1 || 0.5; }
      const margin = (high - low) * 0.05;
      return { left, right, low: low - margin, high: high + margin };
    }

    function path(points) {
      let text = "", pen = "M";
      for (const point of points) {
        if (point === null) { pen = "M"; continue; }
        // A point between two gaps is a line of no length, which round ends make visible.
        text += pen + point[0].toFixed(1) + " " + point[1].toFixed(1) + (pen === "M" ? "h0" : "");
        pen = "L";
      }
      return text;
    }

    function drawCurve(svg, curve, number, X, Y) {
      const group = make("g", { class: "curve k" + curve.colour + (curve.ours ? " ours" : ""), "data-curve": number }, svg);
      const xs = grid(curve);
      const line = (values) => xs.map((x, at) => (usable(x) && values[at] !== null ? [X(x), Y(values[at])] : null));
      if (state.band && curve.low) {
        const upper = line(curve.high).filter(Boolean), lower = line(curve.low).filter(Boolean).reverse();
        if (upper.length > 1) make("path", { class: "band", d: path(upper.concat(lower)) + "Z" }, group);
      }
      if (state.error && curve.error) {
        for (const sign of [-1, 1]) {
          const values = curve.mean.map((value, at) => (value === null || curve.error[at] === null ? null : value + sign * curve.error[at]));
          make("path", { class: "error", d: path(line(values)) }, group);
        }
      }
      const points = line(curve.mean);
      make("path", { class: "mean d" + curve.dash, d: path(points) }, group);
      if (points.filter(Boolean).length === 1) {
        const only = points.find(Boolean);
        make("circle", { class: "dot", cx: only[0], cy: only[1], r: 4 }, group);
      }
    }

    function draw() {
      const width = Math.max(280, plot.clientWidth || 720), height = width < 520 ? 260 : 340;
      const box = domain();
      const yTicks = linearTicks(box.low, box.high, 6).map((value) => [value, show(value)]);
      const pad = { left: Math.max(...yTicks.map((tick) => tick[1].length)) * 7 + 34, right: 24, top: 14, bottom: 44 };
      const inner = width - pad.left - pad.right, tall = height - pad.top - pad.bottom;
      const scale = state.log ? Math.log : (value) => value;
      const X = (x) => pad.left + (inner * (scale(x) - scale(box.left))) / (scale(box.right) - scale(box.left));
      const Y = (y) => pad.top + (tall * (box.high - y)) / (box.high - box.low);
      const svg = make("svg", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": data.alt });
      const bottom = pad.top + tall;
      for (const [value, text] of yTicks) {
        make("line", { class: "grid", x1: pad.left, x2: width - pad.right, y1: Y(value), y2: Y(value) }, svg);
        make("text", { x: pad.left - 8, y: Y(value) + 4, "text-anchor": "end" }, svg, text);
      }
      const ticks = (state.log ? logTicks : linearTicks)(box.left, box.right, width < 520 ? 4 : 7);
      for (const value of ticks) {
        make("line", { class: "axis", x1: X(value), x2: X(value), y1: bottom, y2: bottom + 4 }, svg);
        make("text", { x: X(value), y: bottom + 18, "text-anchor": "middle" }, svg, short(value));
      }
      make("line", { class: "axis", x1: pad.left, x2: width - pad.right, y1: bottom, y2: bottom }, svg);
      make("text", { x: pad.left + inner / 2, y: height - 6, "text-anchor": "middle" }, svg, data.x + (state.log ? " (logarithmic)" : ""));
      make("text", { transform: "translate(13 " + (pad.top + tall / 2) + ") rotate(-90)", "text-anchor": "middle" }, svg, data.y);
      data.curves.forEach((curve, number) => { if (state.visible[number]) drawCurve(svg, curve, number, X, Y); });
      for (const [name, value] of data.lines) {
        make("line", { class: "level", x1: pad.left, x2: width - pad.right, y1: Y(value), y2: Y(value) }, svg);
        make("text", { class: "level-name", x: pad.left + 6, y: Y(value) - 6 }, svg, name + " " + show(value));
      }
      const cursor = make("g", {}, svg);
      view = { X, Y, box, pad, width, inner, cursor, bottom };
      plot.replaceChildren(svg, readout);
      if (state.at !== null) point(state.at, false);
    }

    function steps() {
      const all = new Set();
      data.curves.forEach((curve, number) => { if (state.visible[number]) grid(curve).forEach((x) => { if (usable(x)) all.add(x); }); });
      return Array.from(all).sort((a, b) => a - b);
    }

    function nearest(values, x, distance) {
      let best = -1;
      values.forEach((value, at) => { if (usable(value) && (best < 0 || distance(value, x) < distance(values[best], x))) best = at; });
      return best;
    }

    function distance(a, b) {
      return state.log ? Math.abs(Math.log(a) - Math.log(b)) : Math.abs(a - b);
    }

    // The values of all visible curves at a step; `aloud` says them to a screen reader too.
    function point(x, aloud) {
      state.at = x;
      view.cursor.replaceChildren();
      make("line", { class: "cursor", x1: view.X(x), x2: view.X(x), y1: view.pad.top, y2: view.bottom }, view.cursor);
      const table = document.createElement("table"), said = [data.x + " " + show(x)];
      data.curves.forEach((curve, number) => {
        if (!state.visible[number]) return;
        const at = nearest(grid(curve), x, distance);
        if (at < 0 || curve.mean[at] === null) return;
        make("circle", { class: "dot k" + curve.colour, cx: view.X(grid(curve)[at]), cy: view.Y(curve.mean[at]), r: 4 }, view.cursor);
        let value = show(curve.mean[at]);
        if (curve.error && curve.error[at] !== null) value += " ± " + show(Number(curve.error[at].toPrecision(2)));
        const range = curve.low && curve.low[at] !== null ? show(curve.low[at]) + " to " + show(curve.high[at]) : "";
        const row = table.insertRow();
        const name = row.insertCell();
        name.appendChild(buttons[number].querySelector(".swatch").cloneNode(true));
        name.append(curve.label);
        row.insertCell().textContent = value;
        row.insertCell().textContent = range;
        said.push(curve.label + " " + value);
      });
      const head = document.createElement("strong");
      head.textContent = data.x + " " + show(x);
      readout.replaceChildren(head, table);
      readout.hidden = false;
      const half = view.X(x) > view.pad.left + view.inner / 2;
      readout.style.left = half ? "auto" : view.X(x) + 12 + "px";
      readout.style.right = half ? view.width - view.X(x) + 12 + "px" : "auto";
      if (view.width < 520) { readout.style.left = half ? view.pad.left + "px" : "auto"; readout.style.right = half ? "auto" : "6px"; }
      if (aloud) spoken.textContent = said.join(", ");
    }

    function leave() {
      state.at = null;
      readout.hidden = true;
      if (view) view.cursor.replaceChildren();
    }

    plot.addEventListener("pointermove", (event) => {
      const seen = plot.getBoundingClientRect();
      const part = ((event.clientX - seen.left) * (view.width / seen.width) - view.pad.left) / view.inner;
      if (part < -0.05 || part > 1.05) return leave();
      const log = state.log, low = log ? Math.log(view.box.left) : view.box.left, high = log ? Math.log(view.box.right) : view.box.right;
      const x = low + Math.min(1, Math.max(0, part)) * (high - low), all = steps();
      if (all.length) point(all[nearest(all, log ? Math.exp(x) : x, distance)], false);
    });
    plot.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") leave(); });
    plot.addEventListener("blur", leave);
    plot.addEventListener("keydown", (event) => {
      const all = steps(), moves = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };
      if (event.key === "Escape") return leave();
      if (!(event.key in moves) || !all.length) return;
      event.preventDefault();
      const here = state.at === null ? (event.key === "ArrowLeft" ? all.length : -1) : all.indexOf(state.at);
      point(all[Math.min(all.length - 1, Math.max(0, here + moves[event.key]))], true);
    });
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", data.title + ": arrow keys read the values, Escape ends it");
    buttons.forEach((button, number) => button.addEventListener("click", () => {
      state.visible[number] = !state.visible[number];
      button.setAttribute("aria-pressed", String(state.visible[number]));
      draw();
    }));
    figure.querySelectorAll("button[data-switch]").forEach((button) => button.addEventListener("click", () => {
      const name = button.dataset.switch;
      state[name] = !state[name];
      button.setAttribute("aria-pressed", String(state[name]));
      draw();
    }));
    draw();
    return draw;
  }

  const draws = Array.from(document.querySelectorAll("figure.chart"), Chart);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) { width = window.innerWidth; draws.forEach((draw) => draw()); }
  });

  // Verdicts by kind: all, until some are chosen to be left out.
  const filters = Array.from(document.querySelectorAll("button.filter"));
  filters.forEach((button) => button.addEventListener("click", () => {
    button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
    const wanted = new Set(filters.filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.dataset.verdict));
    const rows = Array.from(document.querySelectorAll(".verdicts tbody tr"));
    rows.forEach((row) => { row.hidden = !wanted.has(row.dataset.verdict); });
    document.querySelector(".shown").textContent = rows.filter((row) => !row.hidden).length + " of " + rows.length + " claims shown";
  }));

  const theme = document.querySelector("button.theme"), themes = ["auto", "light", "dark"];
  function choose(name) {
    if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
    theme.querySelector("span").textContent = name;
  }
  let kept = "auto";
  try { kept = localStorage.getItem("bellief-theme") || "auto"; } catch (error) { /* a file may not be allowed to keep anything */ }
  choose(themes.includes(kept) ? kept : "auto");
  theme.addEventListener("click", () => {
    const now = root.dataset.theme || "auto", next = themes[(themes.indexOf(now) + 1) % themes.length];
    choose(next);
    try { localStorage.setItem("bellief-theme", next); } catch (error) { /* then it is forgotten */ }
  });

  document.querySelectorAll("button.copy").forEach((button) => button.addEventListener("click", () => {
    const code = button.parentElement.querySelector("code");
    const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 2000); };
    const select = () => {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      if (document.execCommand("copy")) done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select); else select();
  }));

  if (window.matchMedia("(max-width: 999px)").matches) document.querySelector(".contents details").removeAttribute("open");
})();
