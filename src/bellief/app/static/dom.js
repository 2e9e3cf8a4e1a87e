// Small helpers. Texts from data reach the page as text nodes only, never as markup.

export const $ = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat().map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return made;
}

export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat());
}

// Columns: { title, cell(row) -> text or node, number }, the first one being the name of the row.
export function table(target, caption, columns, rows, look = () => ({})) {
  const head = element("tr", {}, columns.map((one) => element("th", { scope: "col", class: one.number ? "n" : null }, one.title)));
  const body = rows.map((row) => element("tr", look(row), columns.map((one, place) => {
    const cell = one.cell(row);
    const attributes = { class: one.number ? "n" : null };
    return place === 0 ? element("th", { scope: "row", ...attributes }, cell) : element("td", attributes, cell);
  })));
  // Filled again, as by the next answer, a table keeps the keyboard's place.
  const place = [...target.querySelectorAll("button")].indexOf(document.activeElement);
  fill(target, element("caption", { class: "visually-hidden" }, caption), element("thead", {}, head), element("tbody", {}, body));
  if (place >= 0) target.querySelectorAll("button")[place]?.focus({ preventScroll: true });
}

export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-4 ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
  const [whole, rest] = text.split(".");
  const grouped = size >= 1e6 ? whole : whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return (rest === undefined ? grouped : `${grouped}.${rest}`).replace("-", "−");
}

export const whole = (value) => Number(value).toLocaleString("en-GB");

export function percent(share) {
  if (share === null || share === undefined) return "–";
  if (share < 0.0005) return "under 0.1%";
  if (share > 0.9995) return "over 99.9%";
  return `${(100 * share).toFixed(1)}%`;
}

export const notes = (target, texts) => fill(target, texts.map((text) => element("li", {}, text)));

export function problem(target, text) {
  target.hidden = !text;
  target.textContent = text || "";
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText($(button.dataset.copy).textContent);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren($(button.dataset.copy));
    button.textContent = "Selected: press Ctrl-C";
  }
  setTimeout(() => { button.textContent = said; }, 1500);
});

export function showHow(name, answer) {
  $(`${name}-command`).textContent = answer.command;
  $(`${name}-python`).textContent = answer.python;
}
